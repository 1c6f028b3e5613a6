#include "stretto/trainer/folder/run_folder.h"

#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/file_faults.h"
#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"

namespace stretto::trainer {
namespace {

constexpr const char* run_files[] = {"config.yaml",        "metrics.jsonl",
                                     "texts.jsonl",        "results.json",
                                     "model/weights",      "predictions.json",
                                     "losses.jsonl",       "models/best/weights",
                                     "tensorboard/events", "checkpoints/step-00000004/manifest.json"};

// A folder with a finished run.
void make_run(const std::filesystem::path& folder, const std::string& content) {
  for (const char* name : run_files) {
    make_folders((folder / name).parent_path());
    std::ofstream(folder / name) << content;  // without fsync, which takes most of the time
  }
}

// Returns the folders that contain `name` of an earlier run.
std::string places_of(const std::filesystem::path& folder, const char* name) {
  std::string places;
  for (const char* place : {".", "previous.new", "previous-1", "previous-2", "previous-3"}) {
    const std::filesystem::path file = folder / place / name;
    if (std::filesystem::exists(file) && read_file(file) == "earlier") places += std::string(" ") + place;
  }
  return places;
}

// Calls `begin` with each fault in a folder with a finished run. No file of that run may be lost, and the
// next start must move all of them.
void expect_earlier_run_kept(const std::function<void(const RunFolder&)>& begin) {
  const TempFolder temporary;
  const std::filesystem::path path = temporary.path() / "run";
  make_run(path, "earlier");
  make_run(path / "previous-1", "before that");
  const RunFolder folder(path);
  begin(folder);
  for (const char* name : run_files) EXPECT_NE(places_of(path, name), "") << name;
  folder.begin_run("a: 1\n", EarlierFiles::kept);
  for (const char* name : run_files) {
    EXPECT_EQ(places_of(path, name), " previous-2") << name;
    EXPECT_EQ(read_file(path / "previous-1" / name), "before that");
  }
  EXPECT_EQ(read_file(path / "config.yaml"), "a: 1\n");
  EXPECT_FALSE(std::filesystem::exists(path / "previous-3"));
}

TEST(RunFolder, AnEarlierRunIsMovedCompletely) {
  int64_t faults = 0;
  for (bool hit = true; hit; ++faults) {
    expect_earlier_run_kept([&](const RunFolder& folder) {
      const file_faults::Injection injection({.call = faults + 1, .error = EIO});
      try {
        folder.begin_run("a: 1\n", EarlierFiles::kept);
      } catch (const IoError& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr(folder.path().string())) << injection.hit();
      }
      hit = !injection.hit().empty();
    });
  }
  EXPECT_GT(faults, 20);
}

TEST(RunFolderDeathTest, AnEarlierRunIsMovedCompletely) {
  using file_faults::Effect;
  for (const Effect effect : {Effect::kill_before, Effect::kill_after}) {
    int64_t call = 1;
    for (bool hit = true; hit; ++call) {
      SCOPED_TRACE(fmt::format("dies at call {}", call));
      expect_earlier_run_kept([&](const RunFolder& folder) {
        const pid_t child = ::fork();
        if (child == 0) {
          const file_faults::Injection injection({.call = call, .effect = effect});
          folder.begin_run("a: 1\n", EarlierFiles::kept);
          ::_exit(0);
        }
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        hit = WIFSIGNALED(status);
      });
    }
    EXPECT_GT(call, 20);
  }
}

TEST(RunFolder, ARunWithAModelOrCheckpointsIsKept) {
  for (const char* name :
       {"model/weights", "models/best/weights", "checkpoints/step-00000004/manifest.json", "metrics.jsonl"}) {
    const TempFolder temporary;
    const std::filesystem::path file = temporary.path() / name;
    make_folders(file.parent_path());
    write_file_atomic(file, "earlier");
    RunFolder(temporary.path()).begin_run("a: 1\n", EarlierFiles::kept);
    const bool is_kept = std::string_view(name) != "metrics.jsonl";
    EXPECT_EQ(places_of(temporary.path(), name), is_kept ? " previous-1" : "");
  }
}

// A start was interrupted, and then its checkpoints were moved back manually.
TEST(RunFolder, ARunThatContinuesKeepsWhatWasBeingSetAside) {
  const TempFolder temporary;
  make_run(temporary.path() / "previous.new", "earlier");
  RunFolder(temporary.path()).begin_run("a: 1\n", EarlierFiles::continued);
  for (const char* name : run_files) EXPECT_EQ(places_of(temporary.path(), name), " previous-1") << name;
}

}  // namespace
}  // namespace stretto::trainer
