#include "tests/support/shell.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/checkpoint_format/folder.h"
#include "stretto/checkpoint_format/run_lock.h"

// Tests `stretto checkpoints ls|verify|rm` on folders like those of a run.
namespace stretto {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

const std::string file_name = "rank-00000.safetensors";

class CheckpointsProgram : public ::testing::Test {
 protected:
  CheckpointsProgram() { make_folders(folder()); }

  std::filesystem::path run() const { return temp_.path() / "run"; }
  std::filesystem::path folder() const { return run() / "checkpoints"; }
  std::filesystem::path checkpoint(int64_t step) const {
    return checkpoint_format::checkpoint_path(folder(), step);
  }

  // A checkpoint of one tensor of eight bytes after a header of four.
  void add(int64_t step, std::optional<double> score = std::nullopt) const {
    make_folders(checkpoint(step));
    write_file_atomic(checkpoint(step) / file_name, "head12345678");
    checkpoint_format::Manifest manifest;
    manifest.step = step;
    manifest.world_size = 2;
    manifest.files[file_name] = {12, 4, hash64("head")};
    manifest.tensors["w"] = {"F64", {}, {{whole_region({}), file_name, 4, 8, hash64("12345678")}}};
    if (score) manifest.score = checkpoint_format::Score{"accuracy", *score, true};
    write_file_atomic(checkpoint(step) / checkpoint_format::manifest_name,
                      checkpoint_format::to_text(manifest));
  }
  void damage(int64_t step) const { write_file_atomic(checkpoint(step) / file_name, "head12345679"); }

  ShellResult checkpoints(const std::string& arguments) const {
    return shell(fmt::format("exec {} checkpoints {}", STRETTO_PROGRAM, arguments));
  }
  ShellResult remove(const std::string& which) const {
    return checkpoints(fmt::format("rm {} {}", run().string(), which));
  }
  std::vector<int64_t> steps() const {
    std::vector<int64_t> steps;
    for (const auto& checkpoint : checkpoint_format::list_checkpoints(folder()))
      steps.push_back(checkpoint.step);
    return steps;
  }

  TempFolder temp_;
};

TEST_F(CheckpointsProgram, CheckpointsAreListed) {
  add(5);
  add(10, 0.875);
  const ShellResult result = checkpoints("ls " + run().string());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              MatchesRegex("step +saved +ranks +size +score +path\n"
                           "5 +[-0-9]+ [:0-9]+ +2 +[0-9]+ B +- +[^ ]+/run/checkpoints/step-00000005\n"
                           "10 +[-0-9]+ [:0-9]+ +2 +[0-9]+ B +accuracy 0.875 +[^ ]+/step-00000010\n"));
}

TEST_F(CheckpointsProgram, RunsFoldersAndSingleCheckpointsAreAccepted) {
  for (const int64_t step : {1, 2}) add(step);
  for (const auto& name : {run().string(), folder().string(), folder().string() + "/"}) {
    EXPECT_EQ(checkpoints("verify " + name).out, "step 1: valid\nstep 2: valid\n") << name;
  }
  EXPECT_EQ(checkpoints("verify " + checkpoint(2).string()).out, "step 2: valid\n");
  EXPECT_EQ(checkpoints("verify " + checkpoint(2).string() + "/").out, "step 2: valid\n");
  EXPECT_EQ(
      shell(fmt::format("cd {} && exec {} checkpoints verify .", checkpoint(2).string(), STRETTO_PROGRAM))
          .out,
      "step 2: valid\n");
  std::filesystem::rename(checkpoint(2), temp_.path() / "moved");
  EXPECT_EQ(checkpoints("verify " + (temp_.path() / "moved").string()).out, "step 2: valid\n");
}

TEST_F(CheckpointsProgram, DamageIsNamedByFileAndTensor) {
  for (const int64_t step : {1, 2, 3, 4}) add(step);
  damage(2);
  std::filesystem::remove(checkpoint(3) / file_name);
  std::filesystem::remove(checkpoint(4) / checkpoint_format::manifest_name);
  const ShellResult result = checkpoints("verify " + run().string());
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, MatchesRegex(fmt::format(
                              "step 1: valid\n"
                              "step 2: {}: tensor w is damaged [^\n]*bytes 4 to 12[^\n]*\n"
                              "step 3: {}: [^\n]*missing\n"
                              "step 4: {}: [^\n]*missing\n",
                              (checkpoint(2) / file_name).string(), (checkpoint(3) / file_name).string(),
                              (checkpoint(4) / checkpoint_format::manifest_name).string())));
  const ShellResult listed = checkpoints("ls " + run().string());
  EXPECT_EQ(listed.exit_code, 1);
  EXPECT_THAT(listed.out, HasSubstr("\n4 "));
  EXPECT_THAT(listed.err,
              has_all((checkpoint(4) / checkpoint_format::manifest_name).string() + ":", "missing"));
}

TEST_F(CheckpointsProgram, AreRemovedByStepOrAge) {
  for (const int64_t step : {1, 2, 3, 4, 5, 6}) add(step);
  const ShellResult result = remove("--step 2 --step 4");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, MatchesRegex("removed step 2 \\([0-9]+ B\\)\nremoved step 4 \\([0-9]+ B\\)\n"));
  EXPECT_THAT(steps(), ElementsAre(1, 3, 5, 6));
  EXPECT_EQ(remove("--keep-last 2").exit_code, 0);
  EXPECT_THAT(steps(), ElementsAre(5, 6));
  EXPECT_EQ(remove("--keep-last 2").out, "nothing to remove: found 2 checkpoints\n");
}

TEST_F(CheckpointsProgram, TheOnlyWholeCheckpointIsKeptWithoutAll) {
  for (const int64_t step : {1, 2, 3}) add(step);
  damage(2);
  damage(3);
  for (const char* which : {"--step 1", "--keep-last 2", "--step 1 --step 2"}) {
    const ShellResult result = remove(which);
    EXPECT_EQ(result.exit_code, 2) << which;
    EXPECT_THAT(result.err, has_all("nothing was removed", "step 1 ", "--all"));
    EXPECT_THAT(steps(), ElementsAre(1, 2, 3));
  }
  EXPECT_EQ(remove("--step 3").exit_code, 0);
  EXPECT_EQ(checkpoints("rm " + folder().string() + " --all").exit_code,
            0);  // as the message about `resume: false` suggests
  EXPECT_THAT(steps(), IsEmpty());
}

TEST_F(CheckpointsProgram, AllRemovesPartialCheckpointsToo) {
  add(5);
  for (const char* name : {"step-00000007.partial", "step-00000004.removing"}) {
    make_folders(folder() / name);
    write_file_atomic(folder() / name / file_name, "12345");
  }
  write_file_atomic(folder() / "notes", "a user's own");
  const ShellResult result = remove("--all");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, MatchesRegex("removed step 5 \\([0-9]+ B\\)\n"
                                       "removed step-00000004.removing \\(5 B\\)\n"
                                       "removed step-00000007.partial \\(5 B\\)\n"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder()), {}), 1) << "the notes stay";

  make_folders(folder() / "step-00000008.partial");
  EXPECT_EQ(remove("--all").out, "removed step-00000008.partial (0 B)\n") << "without any checkpoint too";
  EXPECT_THAT(remove("--all").err, HasSubstr("holds no checkpoints"));
}

TEST_F(CheckpointsProgram, AllIsRefusedDuringARun) {
  add(5);
  make_folders(folder() / "step-00000007.partial");
  {
    const checkpoint_format::RunLock run_lock(run());
    for (const auto& named : {run(), folder()}) {
      const ShellResult result = checkpoints(fmt::format("rm {} --all", named.string()));
      EXPECT_EQ(result.exit_code, 2) << named;
      EXPECT_THAT(result.err, has_all("nothing was removed", run().string() + ";", "stop it"));
    }
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder()), {}), 2);
  }
  EXPECT_EQ(remove("--all").exit_code, 0);
}

TEST_F(CheckpointsProgram, MissingCheckpointsAreReported) {
  const ShellResult none = checkpoints("ls " + run().string());
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, has_all(run().string() + " holds no checkpoints", "output folder of a run"));
  const ShellResult absent = checkpoints("verify " + (run() / "absent").string());
  EXPECT_EQ(absent.exit_code, 2);
  EXPECT_THAT(absent.err, HasSubstr("there is no folder " + (run() / "absent").string()));
  add(5);
  add(7);
  EXPECT_THAT(remove("--step 7 --step 6").err, has_all("--step 6:", "found 5, 7"));
  EXPECT_THAT(checkpoints("rm " + checkpoint(5).string() + " --all").err,
              has_all(checkpoint(5).string() + " is a single checkpoint", "the folder that contains it"));
  EXPECT_THAT(steps(), ElementsAre(5, 7));
}

TEST_F(CheckpointsProgram, WhatToRemoveMustBeGiven) {
  for (const int64_t step : {1, 2}) add(step);
  for (const auto& [which, message] :
       {std::pair("", "Exactly 1 option from [--step,--all,--keep-last] is required"),
        {"--all --step 1", "and 2 were given"},
        {"--keep-last 0", "--keep-last: \"0\" is not a whole number from 1 to 1000000000"},
        {"--step x", "--step: \"x\" is not a whole number from 0 to"}}) {
    const ShellResult result = remove(which);
    EXPECT_EQ(result.exit_code, 2) << which;
    EXPECT_THAT(result.err, HasSubstr(message)) << which;
  }
  EXPECT_THAT(steps(), ElementsAre(1, 2));
}

TEST_F(CheckpointsProgram, AnUnknownVerbIsNamedWithTheKnownOnes) {
  const auto refusal = [](const std::string& words) {
    const ShellResult result = shell(std::string(STRETTO_PROGRAM) + " checkpoints" + words);
    EXPECT_EQ(result.exit_code, 2) << words;
    return result.err;
  };
  EXPECT_THAT(refusal(""), has_all("stretto checkpoints:", "ls, verify, rm;"));
  EXPECT_THAT(refusal(" verfy run"), has_all("\"verfy\"", "ls, verify, rm;", "did you mean \"verify\"?"));
}

}  // namespace
}  // namespace stretto
