#include "tests/support/shell.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/strings.h"
#include "stretto/base/temp_folder.h"

namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Doctor, PrintsTheMachineAndMeasuresIt) {
  const TempFolder folder;
  const std::string report = (folder.path() / "rates.json").string();
  const ShellResult result = shell(STRETTO_PROGRAM " doctor -N 2 --report " + report);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("processor  "), HasSubstr("cores      "), HasSubstr("127.0.0.1")));
  EXPECT_THAT(result.err, AllOf(ContainsRegex("libtorch   [0-9]+\\.[0-9]+"), HasSubstr("GFLOP/s per rank"),
                                ContainsRegex("copying    [0-9.]+ GB/s"), HasSubstr("25 MiB"),
                                HasSubstr("over 2 ranks"), ContainsRegex("no problems found|fix        ")));
  EXPECT_GT(nlohmann::json::parse(read_file(report)).at("copy_gb_per_s"), 0.1);
  const std::string script = STRETTO_SOURCE_DIR "/examples/llama/7b/pretrain.sh";
  const ShellResult plan =
      shell(STRETTO_PROGRAM " plan " + script + " --rates " + report + " --strategy zero1");
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out, AllOf(HasSubstr("32 ranks on 1 host: tp 8 x dp 4, bf16"), HasSubstr("of " + report),
                              HasSubstr("this machine has ")));
  const ShellResult other = shell(STRETTO_PROGRAM " plan " + script + " --rates " + script);
  EXPECT_THAT(other.err, HasSubstr("expected the figures of `stretto doctor --report FILE`"));
  const std::string notes = (folder.path() / "notes.txt").string();
  write_file_atomic(notes, "notes");
  for (const auto& [file, problem] :
       {std::pair<std::string, std::string>{notes, "is no report of stretto doctor"},
        {report + "/rates.json", "there is no folder"}}) {
    const ShellResult refused = shell(STRETTO_PROGRAM " doctor -N 1 --report " + file);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr(problem));
    EXPECT_EQ(refused.out, "") << "before anything is measured";
  }
}

TEST(Doctor, OptionsOfAPlanThatDoNotApplyToJobScriptsAreRefused) {
  const std::string example = STRETTO_SOURCE_DIR "/examples/llama/7b";
  std::string text = read_file(example + "/pretrain.sh");
  const std::string flag = "--use_sequence_parallel ";
  ASSERT_NE(text.find(flag + "1"), std::string::npos);
  text.replace(text.find(flag + "1"), flag.size() + 1, flag + "0");
  const TempFolder folder;
  const std::string script = (folder.path() / "job.sh").string();
  write_file_atomic(script, text);
  const std::string plan =
      STRETTO_PROGRAM " plan " + script + " HERE=" + example + " --gflops 50 --copy 100 --json ";
  const auto planned = [&](const std::string& more) {
    const ShellResult result = shell(plan + more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  EXPECT_NE(planned("--memory 4000"), planned("--memory 4000 --sequence-parallel"));
  // Divided rows are proposed where nothing else fits.
  EXPECT_THAT(planned("--memory 4000"), Not(HasSubstr("\"sequence_parallel\": true")));
  EXPECT_THAT(planned("--memory 40"),
              AllOf(HasSubstr("\"sequence_parallel\": false"), HasSubstr("\"sequence_parallel\": true")));
  EXPECT_THAT(shell(plan + "--steps 3").err, HasSubstr("--steps is for recipes"));
  EXPECT_THAT(shell(plan + "--deepspeed ds.json").err, HasSubstr("files of other tools are for recipes"));
  EXPECT_THAT(shell(STRETTO_PROGRAM " plan " + example + " --gflops 50").err,
              has_all("it is a folder", "a recipe (a YAML file) or a job script", example + "/pretrain.sh"));
}

TEST(Doctor, APlanOfAJobScriptFitsATerminal) {
  const std::string plan = STRETTO_PROGRAM " plan " STRETTO_SOURCE_DIR
                                           "/examples/llama/70b/pretrain.sh --nodes 32 --tp 32 --cores 64 "
                                           "--gflops 1000 --copy 200 --network 100 --memory 1024 ";
  for (const char* more : {"", "--scale 8,16,1024"}) {
    const ShellResult result = shell(plan + more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    for (const std::string_view line : split(result.out, '\n')) EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(Doctor, RefusesNoRanks) {
  const ShellResult result = shell(STRETTO_PROGRAM " doctor -N 0");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("nproc-per-node: \"0\" is not a whole number from 1 to 4096"));
}

TEST(Doctor, RefusesMoreRanksThanFitInMemory) {
  const ShellResult result = shell(STRETTO_PROGRAM " doctor -N 4096");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("4096 ranks need at least 1.5 TiB of memory"));
}

}  // namespace
}  // namespace stretto
