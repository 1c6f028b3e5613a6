#include "stretto/base/file_faults.h"

#include <csignal>
#include <functional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/file_writer.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/replaced_folder.h"
#include "stretto/base/temp_folder.h"

namespace stretto::file_faults {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::KilledBySignal;

// An operation on a folder filled by `prepare`, and a check of the folder that must pass after any fault.
struct Operation {
  std::function<void(const std::filesystem::path&)> prepare, run, check;
};

// Runs the operation once for each of its calls, each in a new folder, with `fault` at that call. Returns the
// number of calls.
int64_t replay_errors(const Operation& operation, Fault fault) {
  for (fault.call = 1;; ++fault.call) {
    const TempFolder folder;
    operation.prepare(folder.path());
    Injection injection(fault);
    bool threw = false;
    try {
      operation.run(folder.path());
    } catch (const IoError&) {
      threw = true;
    }
    const std::string hit = injection.hit();
    if (hit.empty()) return fault.call - 1;
    SCOPED_TRACE("at call " + std::to_string(fault.call) + ": " + hit);
    EXPECT_EQ(threw, fault.effect == Effect::error);
    operation.check(folder.path());
  }
}

// Like replay_errors, but the process dies at the call.
void replay_deaths(const Operation& operation, Effect effect, bool without_exchange = false) {
  const auto calls = [&] {
    const TempFolder folder;
    operation.prepare(folder.path());
    const Injection counts({.without_exchange = without_exchange});
    operation.run(folder.path());
    return counts.calls();
  }();
  ASSERT_GT(calls, 0);
  for (int64_t call = 1; call <= calls; ++call) {
    SCOPED_TRACE("dies at call " + std::to_string(call));
    const TempFolder folder;
    operation.prepare(folder.path());
    const auto dies = [&] {
      const Injection injection({.call = call, .effect = effect, .without_exchange = without_exchange});
      operation.run(folder.path());
    };
    EXPECT_EXIT(dies(), KilledBySignal(SIGKILL), "");
    operation.check(folder.path());
  }
}

std::set<std::string> names(const std::filesystem::path& folder) {
  std::set<std::string> result;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    result.insert(entry.path().filename());
  return result;
}

const std::string long_text(100'000, 'n');

const Operation atomic_write = {
    .prepare = [](const auto& folder) { write_file_atomic(folder / "a", "old"); },
    .run =
        [](const auto& folder) {
          write_file_atomic(folder / "a", [](const WritePiece& write) {
            write(long_text);
            write("end");
          });
        },
    .check =
        [](const auto& folder) { EXPECT_THAT(read_file(folder / "a"), AnyOf("old", long_text + "end")); },
};

TEST(FileFaults, AtomicWriteKeepsOldOrNewContentAndNoOtherFile) {
  Operation operation = atomic_write;
  operation.check = [](const auto& folder) {
    atomic_write.check(folder);
    EXPECT_EQ(names(folder), std::set<std::string>{"a"});
  };
  for (const int error : {ENOSPC, EIO}) {
    // open, two writes, fsync, rename, fsync of the folder
    EXPECT_EQ(replay_errors(operation, {.error = error}), 6);
  }
  EXPECT_EQ(replay_errors(operation, {.effect = Effect::short_write}), 6);
}

TEST(FileFaults, DiskThatStaysFullKeepsTheOldContent) {
  const TempFolder folder;
  atomic_write.prepare(folder.path());
  const Injection injection({.call = 2, .error = ENOSPC, .sticky = true});
  EXPECT_THAT(message_of<IoError>([&] { atomic_write.run(folder.path()); }),
              HasSubstr("No space left on device"));
  EXPECT_EQ(read_file(folder.path() / "a"), "old");
  EXPECT_EQ(names(folder.path()), std::set<std::string>{"a"});  // files can be removed on a full disk
}

TEST(FileFaults, AtomicWriteKeepsOldOrNewWhenTheProcessDies) {
  for (const Effect effect : {Effect::kill_before, Effect::kill_after, Effect::torn_write}) {
    replay_deaths(atomic_write, effect);
  }
}

TEST(FileFaults, InterruptedAndShortWritesAreContinued) {
  for (const Fault& fault :
       {Fault{.call = 2, .error = EINTR}, Fault{.call = 2, .effect = Effect::short_write}}) {
    const TempFolder folder;
    const Injection injection(fault);
    write_file_atomic(folder.path() / "a", "content");
    EXPECT_EQ(injection.hit().substr(0, 6), "write ");
    EXPECT_EQ(read_file(folder.path() / "a"), "content");
  }
}

TEST(FileFaults, FailedFsyncIsNotRetried) {
  const TempFolder folder;
  FileWriter file(folder.path() / "a");
  file.write("x");
  const Injection injection({.call = 1, .error = EIO});
  EXPECT_THAT(message_of<IoError>([&] { file.finish(); }), HasSubstr("cannot fsync"));
  EXPECT_EQ(injection.calls(), 1);
}

TEST(FileFaults, AppendedBytesAreWholeOrAbsent) {
  const TempFolder folder;
  const auto path = folder.path() / "log";
  const auto grow = [&] {
    AppendFile log(path);
    log.write("one\n");
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit half_a_line = {
        6, 6};  // maximum file size in bytes: a write beyond it is short, the next one fails
    ::setrlimit(RLIMIT_FSIZE, &half_a_line);
    try {
      log.write("two\n");
      ::_exit(0);
    } catch (const IoError& error) {
      ::_exit(std::string_view(error.what()).ends_with("File too large") ? 1 : 2);
    }
  };
  EXPECT_EXIT(grow(), testing::ExitedWithCode(1), "");
  EXPECT_EQ(read_file(path), "one\n");
}

// A folder with two files of the same generation.
void make_pair(const std::filesystem::path& folder, const char* generation) {
  make_folders(folder);
  for (const char* name : {"a", "b"}) {
    FileWriter file(folder / name);
    file.write(generation);
    file.finish();
  }
}

std::string pair_in(const std::filesystem::path& folder) {
  return read_file(folder / "a") + read_file(folder / "b");
}

const Operation staged_folder = {
    .prepare = [](const auto&) {},
    .run =
        [](const auto& folder) {
          make_pair(folder / "x.partial", "1");
          rename_folder(folder / "x.partial", folder / "x");
        },
    .check =
        [](const auto& folder) {
          EXPECT_TRUE(!std::filesystem::exists(folder / "x") || pair_in(folder / "x") == "11");
        },
};

const Operation removed_folder = {
    .prepare = [](const auto& folder) { make_pair(folder / "x", "1"); },
    .run = [](const auto& folder) { remove_folder(folder / "x"); },
    .check =
        [](const auto& folder) {
          EXPECT_TRUE(!std::filesystem::exists(folder / "x") || pair_in(folder / "x") == "11");
          remove_folder(folder / "x");
          EXPECT_THAT(names(folder), IsEmpty());  // removes leftovers of an interrupted call, too
        },
};

const Operation replaced_folder = {
    .prepare = [](const auto& folder) { make_pair(folder / "x", "1"); },
    .run =
        [](const auto& folder) {
          make_pair(folder / "fresh", "2");
          replace_folder(folder / "fresh", folder / "x");
        },
    .check = [](const auto& folder) { EXPECT_THAT(pair_in(folder / "x"), AnyOf("11", "22")); },
};

TEST(FileFaults, ANamedFolderIsCompleteAfterAnyError) {
  EXPECT_EQ(replay_errors(staged_folder, {.error = ENOSPC}),
            10);  // mkdir, fsync, twice open, write, fsync; rename, fsync
  EXPECT_EQ(replay_errors(removed_folder, {.error = EIO}), 5);  // rename, fsync, twice unlink, rmdir
  EXPECT_EQ(replay_errors(replaced_folder, {.error = EIO}),
            13);  // mkdir, fsync, two files, rename, fsync, the old folder
}

TEST(FileFaults, ANamedFolderIsCompleteWhenTheProcessDies) {
  for (const Operation& operation : {staged_folder, removed_folder, replaced_folder}) {
    replay_deaths(operation, Effect::kill_before);
    replay_deaths(operation, Effect::kill_after);
  }
}

TEST(FileFaults, AFolderIsReplacedOnFileSystemsThatCannotExchange) {
  // mkdir, fsync, two files, two renames with fsync, the old folder
  EXPECT_EQ(replay_errors(replaced_folder, {.error = EIO, .without_exchange = true}), 15);
  Operation restored = replaced_folder;
  restored.check = [](const auto& folder) {
    restore_replaced(folder / "x");
    replaced_folder.check(folder);
    replaced_folder.run(folder);
    EXPECT_EQ(names(folder), std::set<std::string>{"x"});
  };
  for (const Effect effect : {Effect::kill_before, Effect::kill_after})
    replay_deaths(restored, effect, /*without_exchange=*/true);
}

TEST(FileFaults, OnlyTheNamedPathIsCountedAndHit) {
  const TempFolder folder;
  const Injection injection({.call = 1, .error = ENOSPC, .path = "checkpoints"});
  write_file_atomic(folder.path() / "log", "fine");
  EXPECT_EQ(injection.calls(), 0);
  EXPECT_THROW(make_folders(folder.path() / "checkpoints"), IoError);
  EXPECT_EQ(injection.hit(), "mkdir " + (folder.path() / "checkpoints").string());
}

}  // namespace
}  // namespace stretto::file_faults
