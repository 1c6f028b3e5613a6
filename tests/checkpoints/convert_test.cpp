#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/message_support.h"

// Tests `stretto convert` on the checkpoints of real runs.
namespace stretto {
namespace {

using ::testing::HasSubstr;

constexpr const char* settings = "evaluate.every=never checkpoint.every=4 checkpoint.keep_last=0 ";

class ConvertProgram : public ::testing::Test {
 protected:
  void train(const std::string& name, const std::string& more = "") const {
    workspace_.train(name, 2, settings + more);
  }
  ShellResult convert(const std::string& arguments) const {
    return shell(fmt::format("cd {} && exec {} convert {}", workspace_.path(), STRETTO_PROGRAM, arguments));
  }
  void converts(const std::string& arguments) const {
    const ShellResult result = convert(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr(" -> "));
  }
  std::string predictions(const std::string& model) const {
    return shell(
               fmt::format(
                   "exec {} predict --model {} --output logits --text 'the film was good' --text 'a dull plot'",
                   STRETTO_PROGRAM, workspace_.path(model)))
        .out;
  }

  Workspace workspace_;
};

TEST_F(ConvertProgram, TheModelFolderIsThatOfTheRun) {
  for (const char* strategy : {"ddp", "zero2", "fsdp"}) {
    train(strategy, fmt::format("training.strategy={}", strategy));
    const std::string run = strategy, model = run + "-converted";
    converts(run + " " + model);  // the newest checkpoint
    for (const char* name : {"config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"})
      EXPECT_TRUE(workspace_.read(model + "/" + name) == workspace_.read(run + "/model/" + name))
          << strategy << name;
  }
  converts("ddp/checkpoints/step-00000004 half-way");
  EXPECT_FALSE(workspace_.read("half-way/model.safetensors") ==
               workspace_.read("ddp/model/model.safetensors"));
}

TEST_F(ConvertProgram, ShardedFoldersAreReadLikeModelFolders) {
  train("run");
  converts("run whole");
  converts("run shards --max-shard-size 6KB");
  EXPECT_TRUE(workspace_.has("shards/model.safetensors.index.json"));
  EXPECT_FALSE(workspace_.has("shards/model.safetensors"));
  EXPECT_THAT(predictions("whole"), HasSubstr("logits"));
  EXPECT_EQ(predictions("shards"), predictions("whole"));
  for (const char* model : {"whole", "shards"}) {
    workspace_.train(
        std::string("from-") + model, 2,
        fmt::format(
            "evaluate.every=never training.max_steps=3 model.config=null tokenizer.path=null model.path={}",
            workspace_.path(model)));
  }
  EXPECT_EQ(workspace_.losses("from-shards"), workspace_.losses("from-whole"));
}

TEST_F(ConvertProgram, WeightsAreWrittenInAnotherType) {
  train("run");
  converts("run narrow --dtype bf16");
  EXPECT_THAT(workspace_.read("narrow/config.json"), HasSubstr("\"torch_dtype\": \"bfloat16\""));
  converts("run/model narrow-too --dtype bfloat16");  // a model folder
  for (const char* name : {"model.safetensors", "vocab.txt", "tokenizer_config.json"})
    EXPECT_TRUE(workspace_.read(std::string("narrow-too/") + name) ==
                workspace_.read(std::string("narrow/") + name))
        << name;
  converts("narrow-too wide --dtype fp32 --max-shard-size 6KB");
  EXPECT_TRUE(workspace_.has("wide/model.safetensors.index.json"));
  EXPECT_THAT(predictions("wide"), HasSubstr("logits"));
}

// Neither the run nor the tokenizer that it was started with is needed.
TEST_F(ConvertProgram, ACheckpointCarriesItsTokenizer) {
  train("run");
  std::filesystem::rename(workspace_.path("run/checkpoints/step-00000004"), workspace_.path("step-00000004"));
  const std::string vocabulary = workspace_.read("run/model/vocab.txt"),
                    config = workspace_.read("run/model/tokenizer_config.json");
  for (const char* gone : {"run", "model"}) std::filesystem::remove_all(workspace_.path(gone));
  converts("step-00000004 alone");
  EXPECT_EQ(workspace_.read("alone/vocab.txt"), vocabulary);
  EXPECT_EQ(workspace_.read("alone/tokenizer_config.json"), config);
  EXPECT_THAT(predictions("alone"), HasSubstr("logits"));
  workspace_.write("step-00000004/vocab.txt", vocabulary + "damage\n");
  EXPECT_THAT(
      shell(fmt::format("exec {} checkpoints verify {}", STRETTO_PROGRAM, workspace_.path("step-00000004")))
          .out,
      HasSubstr("vocab.txt"));
}

// A checkpoint's weights that are exported and imported again continue the run bitwise.
TEST_F(ConvertProgram, ARunResumesFromAConvertedCheckpoint) {
  train("run", "training.strategy=zero1");
  converts("run/checkpoints/step-00000004 exported --max-shard-size 6KB");
  converts("exported step-00000004 --state run/checkpoints/step-00000004");
  workspace_.train("resumed", 2,
                   settings + ("training.strategy=zero1 resume=" + workspace_.path("step-00000004")));
  EXPECT_TRUE(workspace_.read("resumed/model/model.safetensors") ==
              workspace_.read("run/model/model.safetensors"));
  EXPECT_EQ(workspace_.losses("resumed").back(), workspace_.losses("run").back());
}

TEST_F(ConvertProgram, WhatCannotBeConvertedIsRefused) {
  train("run");
  converts("run exported");
  const auto refuses = [&](const std::string& arguments, const auto&... named) {
    const ShellResult result = convert(arguments);
    EXPECT_NE(result.exit_code, 0) << arguments;
    EXPECT_THAT(result.err, has_all(named...)) << arguments;
  };
  refuses("run exported", "exported exists already", "name of a new folder");
  refuses("nowhere new", "there is no folder nowhere");
  refuses("run/logger_logs new", "run/logger_logs holds no checkpoints");
  refuses("exported new", "exported is a model folder", "with model.path, without conversion");
  refuses("exported new --state run --like exported", "--like: ", "applies to checkpoints",
          "exported is a model folder");
  refuses("run new --state run", "--state: ", "applies to model folders", "run is a checkpoint");
  refuses("run new --max-shard-size 5Gb", "\"5Gb\" is not a size", "such as 5GB");
  workspace_.write("run/checkpoints/step-00000008/rank-00000.safetensors", "short");
  refuses("run new", "run/checkpoints/step-00000008/rank-00000.safetensors");
  EXPECT_FALSE(workspace_.has("new"));
}

}  // namespace
}  // namespace stretto
