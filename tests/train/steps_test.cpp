#include "tests/train/workspace.h"
#include <gtest/gtest.h>

// laws_test.cpp tests rank threads; this file tests the same law on processes, which share memory and are
// started independently.
namespace stretto {
namespace {

TEST(TrainSteps, AreTheSameOnAnyRanksUnderEveryStrategy) {
  const Workspace workspace;
  const std::string settings = "training.max_steps=12 evaluate.every=never ";
  workspace.train("one", 1, settings);
  for (const auto& [ranks, strategy] :
       {std::pair(4, "ddp"), {2, "zero1"}, {2, "zero2"}, {3, "fsdp"}, {4, "hsdp training.dp_shard=2"}}) {
    workspace.train("more", ranks, settings + "resume=false training.strategy=" + strategy);
    expect_same_steps(workspace, "one", "more");
  }
}

TEST(TrainSteps, TheSeedDeterminesEveryByte) {
  const Workspace workspace;
  const std::string settings =
      "training.max_steps=6 evaluate.every=never checkpoint.every=6 training.precision=fp32 training.seed=";
  workspace.train("first", 2, settings + "1");
  workspace.train("again", 2, settings + "1");
  workspace.train("other", 2, settings + "2");
  const std::string weights = "/model/model.safetensors", checkpoint = "/checkpoints/step-00000006/";
  for (const std::string& file :
       {weights, checkpoint + "rank-00000.safetensors", checkpoint + "rank-00001.safetensors"}) {
    EXPECT_TRUE(workspace.read("first" + file) == workspace.read("again" + file)) << file;
  }
  EXPECT_FALSE(workspace.read("first" + weights) == workspace.read("other" + weights));
}

}  // namespace
}  // namespace stretto
