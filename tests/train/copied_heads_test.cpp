#include "tests/train/decoder_workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

// Language models with fewer heads of keys and values than ranks of training.mesh.tp, of which neighbours
// have copies, take the steps of whole models; and batches and checkpoints that do not fit a mesh. All runs
// compute in float64 with dropout.
namespace stretto {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(CopiedHeads, TakeTheStepsOfWholeModels) {
  const DecoderWorkspace workspace;
  for (const auto& [model, how] : {std::pair<std::string, std::string>{"llama-2", ""},
                                   {"llama-1", " ema.decay=0.9 training.grad_accumulation_steps=2"}}) {
    const std::string settings = " resume=false model.config=" + workspace.path(model + ".json") + how;
    workspace.train(model, 1, settings);
    for (const auto& [ranks, mesh] : {std::pair(2, "tp=2"),
                                      {4, "tp=4"},
                                      {4, "tp=2 training.strategy=zero1"},
                                      {8, "tp=4 training.strategy=zero1 training.shared_parameters=off"},
                                      {8, "tp=4 training.strategy=fsdp"}}) {
      workspace.train("divided", ranks, fmt::format("{} training.mesh.{}", settings, mesh));
      expect_same_steps(workspace, model, "divided");
    }
  }
}

// Runs on 1 and 2 data ranks have equal bits.
TEST(CopiedHeads, DeterministicRunsRepeatTheirBits) {
  const DecoderWorkspace workspace;
  const std::string settings =
      "training.deterministic=true training.batch_size=2 training.mesh.tp=4 model.config=" +
      workspace.path("llama-2.json");
  workspace.train("one", 4, settings);
  workspace.train("two", 8, settings);
  EXPECT_EQ(workspace.losses("one"), workspace.losses("two"));
  EXPECT_TRUE(workspace.read("one/model/model.safetensors") == workspace.read("two/model/model.safetensors"));
}

// Four, two and no ranks have copies of the head.
TEST(CopiedHeads, ResumeOnAnyMesh) {
  const DecoderWorkspace workspace;
  const std::string settings = "ema.decay=0.9 model.config=" + workspace.path("llama-1.json");
  workspace.train("whole", 1, settings);
  workspace.train("parts", 4, settings + " training.mesh.tp=4 training.steps_this_run=3");
  workspace.train("parts", 4,
                  settings + " training.mesh.tp=2 training.strategy=zero1 training.steps_this_run=3");
  EXPECT_THAT(workspace.losses("parts"), SizeIs(6));
  workspace.train("parts", 2, settings);
  expect_same_steps(workspace, "whole", "parts");
}

// The last batch of 64 samples has 4, which 2 data ranks divide; a batch of 3 is smaller than tp; one of 1
// leaves a data rank without samples.
TEST(DividedBatches, MayBeUnevenAndSmallerThanTheRanks) {
  const DecoderWorkspace workspace;
  for (const int batch : {6, 3, 1}) {
    const std::string settings = fmt::format("resume=false training.global_batch_size={} ", batch);
    workspace.train("whole", 1, settings);
    for (const std::string mesh : {"tp=4", "tp=2", "tp=2 training.strategy=zero1"}) {
      workspace.train("divided", 4, settings + "training.mesh." + mesh);
      expect_same_steps(workspace, "whole", "divided");
    }
  }
}

TEST(DividedCheckpoint, OfAnotherModelIsRefused) {
  const DecoderWorkspace workspace;
  workspace.train("gpt2", 2, "training.mesh.tp=2 training.max_steps=2 checkpoint.every=2");
  const std::string other = "training.mesh.tp=2 resume=" + workspace.path("gpt2/checkpoints/step-00000002") +
                            " model.config=" + workspace.path("llama.json");
  EXPECT_THAT(workspace.refusal_of("llama", 2, other), HasSubstr("model.config: "));
  EXPECT_THAT(workspace.refusal_of("llama", 2,
                                   other + " checkpoint.accept_changes=[model.config,training.max_steps]"),
              HasSubstr("it is a checkpoint of another model"));
}

}  // namespace
}  // namespace stretto
