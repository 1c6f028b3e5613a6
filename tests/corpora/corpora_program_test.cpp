#include <csignal>
#include <map>
#include <random>
#include <thread>

#include "tests/support/shell.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/strings.h"

// Tests `stretto data tokenize` and `stretto data inspect` from the command line, also when they are
// interrupted.
namespace stretto {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class CorporaProgram : public testing::Test {
 protected:
  fs::path path(const std::string& name) const { return folder_.path() / name; }
  std::string write(const std::string& name, const std::string& content) const {
    write_file_atomic(path(name), content);
    return path(name);
  }

  // Returns the command "stretto data tokenize text --tokenizer ... -o OUTPUT" with further options.
  std::string tokenize(const std::string& output, const std::string& options = "") const {
    return fmt::format("{} data tokenize {} --tokenizer {}/roberta -o {} --shard-tokens 700000 {}",
                       STRETTO_PROGRAM, path("text").string(), GOLDEN_TOKENIZERS, path(output).string(),
                       options);
  }
  ShellResult inspect(const std::string& corpus, const std::string& options = "") const {
    return shell(fmt::format("{} data inspect {} {}", STRETTO_PROGRAM, path(corpus).string(), options));
  }

  std::map<std::string, std::string> files_of(const std::string& corpus) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(path(corpus))) {
      if (entry.is_regular_file()) files[fs::relative(entry.path(), path(corpus))] = read_file(entry.path());
    }
    return files;
  }

  void write_text(size_t bytes) const {
    std::mt19937 random(1);
    std::string text;
    while (text.size() < bytes)
      text += random() % 12 == 0 ? "film.\n" : random() % 2 == 0 ? "the " : "review ";
    write("text", text);
  }
  // Runs `command` repeatedly, each time interrupted by `interrupt` after a while, until it finishes. Returns
  // the number of runs.
  int run_in_pieces(const std::string& command,
                    const std::function<void(BackgroundShell&, int)>& interrupt) const {
    for (int pieces = 1;; ++pieces) {
      BackgroundShell run("exec " + command);
      interrupt(run, pieces);
      const ShellResult result = run.wait();
      if (result.exit_code == 0) return pieces;
      EXPECT_THAT(result.err, Not(HasSubstr("error")));
    }
  }

  TempFolder folder_;
};

TEST_F(CorporaProgram, AKillAtAnyMomentDoesNotChangeTheBytes) {
  write_text(12'000'000);
  ASSERT_EQ(shell(tokenize("whole", "-j 1")).exit_code, 0);
  const auto expected = files_of("whole");
  // Each kill comes when slightly more has been written than by the previous run.
  const auto written = [&] {
    uintmax_t bytes = 0;
    std::error_code missing;
    for (int shard = 0; shard < 20; ++shard) {
      const auto size = fs::file_size(path("killed") / fmt::format("tokens-{:05}.bin", shard), missing);
      if (!missing) bytes += size;
    }
    return bytes;
  };
  std::mt19937 random(2);
  const int pieces =
      run_in_pieces(tokenize("killed", "-j 2 --save-every 1"), [&](BackgroundShell& run, int piece) {
        if (piece > 20) return;
        const uintmax_t enough = written() + random() % 2'000'000;
        while (run.running() && written() <= enough)
          std::this_thread::sleep_for(std::chrono::microseconds(50));
        ::kill(run.pid(), SIGKILL);
      });
  EXPECT_GT(pieces, 1);
  EXPECT_TRUE(files_of("killed") == expected);
}

TEST_F(CorporaProgram, TornWritesAndKillsAroundEachWriteChangeNothing) {
  write_text(2'500'000);
  ASSERT_EQ(shell(tokenize("whole")).exit_code, 0);
  const auto expected = files_of("whole");
  int hits = 0;
  for (const char* effect : {"kill", "kill-after", "torn"}) {
    for (int call = 1; call < 60; call += 4) {
      const std::string command = tokenize("killed", "-j 1 --save-every 1");
      const ShellResult killed =
          shell(with_file_fault(fmt::format("{}@{}:path=killed", effect, call)) + command);
      hits += killed.exit_code == 128 + SIGKILL;
      ASSERT_EQ(shell(command).exit_code, 0) << effect << call;
      ASSERT_TRUE(files_of("killed") == expected) << effect << call;
      fs::remove_all(path("killed"));
    }
  }
  EXPECT_GT(hits, 20);
}

TEST_F(CorporaProgram, AStopBySignalIsReportedAndCanBeContinued) {
  write_text(12'000'000);
  ASSERT_EQ(shell(tokenize("whole", "-j 1")).exit_code, 0);
  for (const int signal : {SIGINT, SIGTERM}) {
    BackgroundShell run("exec " + tokenize("stopped", "-j 1 --save-every 1"));
    ASSERT_TRUE(eventually([&] { return fs::exists(path("stopped/tokens-00000.bin")); }));
    ::kill(run.pid(), signal);
    const ShellResult result = run.wait();
    EXPECT_EQ(result.exit_code, 128 + signal);
    EXPECT_THAT(result.err, HasSubstr("the same command continues"));
    const ShellResult early = inspect("stopped");
    EXPECT_EQ(early.exit_code, 2);
    EXPECT_THAT(early.err, has_all("not complete", "data tokenize"));
    const ShellResult rest = shell(tokenize("stopped"));
    EXPECT_EQ(rest.exit_code, 0);
    EXPECT_THAT(rest.err, HasSubstr("going on after"));
    EXPECT_TRUE(files_of("stopped") == files_of("whole"));
    fs::remove_all(path("stopped"));
  }
}

TEST_F(CorporaProgram, AFileThatDoesNotExistIsRefused) {
  const ShellResult result = shell(tokenize("none"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, has_all(": there is no such file", "a file of text"));
  EXPECT_FALSE(fs::exists(path("none")));
}

TEST_F(CorporaProgram, AFileThatIsNotTextLeavesNoFolder) {
  write_text(1000);
  write("second", std::string("not\0text", 8));
  const ShellResult result = shell(tokenize("none", path("second")));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("the file is not text"));
  EXPECT_FALSE(fs::exists(path("none")));
}

TEST_F(CorporaProgram, AFullDiskIsReportedAndTheSameCommandContinues) {
  write_text(4'000'000);
  ASSERT_EQ(shell(tokenize("whole")).exit_code, 0);
  make_folders(path("disk"));
  const std::string disk = path("disk").string(), command = tokenize("disk/corpus", "-j 2 --save-every 1");
  const ShellResult result = shell(fmt::format(
      "unshare -rm sh -c '(mount -t tmpfs -o size=3m none {0} || exit 77) && {{ {1}; echo $? >&2; "
      "mount -o remount,size=64m {0} && {1} && cp -r {0}/corpus {2}; }}'",
      disk, command, path("kept").string()));
  if (result.exit_code == 77) GTEST_SKIP() << "no file system can be mounted here: " << result.err;
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, has_all("No space left on device", "\n1\n", "going on after"));
  EXPECT_EQ(result.err.find("error"), result.err.rfind("error")) << result.err;
  EXPECT_TRUE(files_of("kept") == files_of("whole"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadow memory would be counted
TEST_F(CorporaProgram, MemoryDoesNotDependOnTheSizeOfADocument) {
  write_text(60'000'000);
  BackgroundShell run("exec " + tokenize("corpus", "-j 2"));
  int64_t most = 0;
  while (run.running()) {
    const std::string status = read_proc(fmt::format("/proc/{}/status", run.pid()));
    for (const std::string_view line : split(status, '\n')) {
      if (line.starts_with("VmHWM:"))
        most = std::max<int64_t>(most, std::stoll(std::string(line.substr(6))) >> 10);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(run.wait().exit_code, 0);
  EXPECT_GT(most, 5);
  EXPECT_LE(most, 60);  // MiB
}
#endif

TEST_F(CorporaProgram, InspectPrintsCountsSamplesAndChecksums) {
  write("text", "a");
  EXPECT_THAT(shell(tokenize("one", "--no-special --no-eos")).err, HasSubstr(": 1 document, 1 token, "));
  write("text", "A good film.\n\nNobody came\nto see it.\n");
  ASSERT_EQ(shell(tokenize("corpus", "--document blank-line")).exit_code, 0);
  const ShellResult text = inspect("corpus", "--samples 5 --check");
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, has_all("documents  2", "uint16", "RobertaTokenizer", "<s>A good film.</s>",
                                "Nobody came\nto see it.", "all checksums are right"));
  const auto json = nlohmann::json::parse(inspect("corpus", "--json --samples 1").out);
  EXPECT_EQ(json["documents"], 2);
  EXPECT_EQ(json["text_bytes"], 34);
  EXPECT_EQ(json["samples"].size(), 1);
  EXPECT_DOUBLE_EQ(json["bytes_per_token"], 34.0 / json["tokens"].get<double>());
  std::string bytes = read_file(path("corpus/tokens-00000.bin"));
  bytes[4] ^= 1;
  write("corpus/tokens-00000.bin", bytes);
  const ShellResult damaged = inspect("corpus", "--check");
  EXPECT_EQ(damaged.exit_code, 2);
  EXPECT_THAT(damaged.err, has_all("tokens-00000.bin", "damaged"));
}

// The corpus of rows is that of the same rows as JSON Lines.
TEST_F(CorporaProgram, ParquetAndArrowFilesAreReadAsJsonLines) {
#ifndef STRETTO_HAS_ARROW
  GTEST_SKIP() << "this build has no Arrow C++ (scripts/setup.sh arrow)";
#endif
  const auto tokenize_rows = [&](const std::string& file, const std::string& options) {
    fs::remove_all(path("corpus"));
    return shell(fmt::format("{} data tokenize {}/{} --tokenizer {}/roberta -o {} {}", STRETTO_PROGRAM,
                             GOLDEN_COLUMNAR, file, GOLDEN_TOKENIZERS, path("corpus").string(), options));
  };
  const auto corpus_of = [&](const std::string& file, const std::string& options) {
    const ShellResult result = tokenize_rows(file, options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return std::pair(read_file(path("corpus/tokens-00000.bin")), read_file(path("corpus/documents.bin")));
  };
  for (const char* options : {"", "--column kind -j 2"}) {
    const auto expected = corpus_of("rows.jsonl", options);
    for (const char* file : {"rows.parquet", "rows.arrow", "rows.feather"})
      EXPECT_TRUE(corpus_of(file, options) == expected) << file << " " << options;
  }
  corpus_of("saved", "");
  EXPECT_THAT(inspect("corpus", "--samples 4").out,
              has_all("documents  4", "<s>text 0</s>", "<s>text 1</s>"));
  const auto refused = [&](const std::string& file, const std::string& options, const auto& message) {
    const ShellResult result = tokenize_rows(file, options);
    EXPECT_EQ(result.exit_code, 2) << options;
    EXPECT_THAT(result.err, message);
  };
  refused("rows.parquet", "--column txt",
          has_all("rows.parquet:1: there is no key \"txt\" among answers, bytes,", "did you mean \"text\"?",
                  "set --column"));
  refused("rows.parquet", "--column label", HasSubstr("rows.parquet:1: \"label\" is 1; expected a text"));
  refused("rows.arrow", "--column tokens", HasSubstr("rows.arrow:1: \"tokens\" is a list; expected a text"));
  refused("", "", HasSubstr("a folder without a state.json"));
  make_folders(path("dict"));
  write("dict/dataset_dict.json", "{}");
  EXPECT_THAT(shell(fmt::format("{} data tokenize {} --tokenizer {}/roberta -o {}", STRETTO_PROGRAM,
                                path("dict").string(), GOLDEN_TOKENIZERS, path("corpus").string()))
                  .err,
              has_all("a folder with several splits of a data set", "dict/train"));
}

TEST_F(CorporaProgram, OptionsThatDoNotFitAreRefused) {
  write_text(100);
  const auto refused = [&](const std::string& options, const auto& message) {
    const ShellResult result = shell(tokenize("corpus", options));
    EXPECT_EQ(result.exit_code, 2) << options;
    EXPECT_THAT(result.err, message);
  };
  refused("--keep-newlines", has_all("--keep-newlines", "--document line"));
  refused("--eos '<s>' --no-eos", has_all("--eos", "--no-eos"));
  refused("--eos none", has_all("--eos", "\"none\""));
  refused("--document paragraph", has_all("--document", "paragraph"));
  refused("-j -1", has_all("--threads", "-1"));
  ASSERT_EQ(shell(tokenize("corpus")).exit_code, 0);
  refused("--no-eos --no-special", has_all("special tokens", "--overwrite", "--output"));
  EXPECT_THAT(shell(std::string(STRETTO_PROGRAM) + " data").err, has_all("tokenize", "inspect"));
}

}  // namespace
}  // namespace stretto
