#include "tests/train/decoder_workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

// Language models whose layers are divided among ranks (training.mesh.tp) take the steps of whole ones. All
// runs compute in float64 with dropout.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

struct Division {
  int ranks;
  std::string settings;
};
const Division divisions[] = {
    {2, "training.mesh.tp=2"},
    {4, "training.mesh.tp=4"},
    {4, "training.mesh.tp=2 training.mesh.dp=2"},
    {4, "training.mesh.tp=2 training.strategy=zero1"},
    {4, "training.mesh.tp=2 training.strategy=zero1 training.shared_parameters=off"},
};

TEST(Divided, ModelsTakeTheStepsOfWholeOnes) {
  const DecoderWorkspace workspace;
  for (const std::string model : {"gpt2", "llama"}) {
    const std::string settings = " model.config=" + workspace.path(model + ".json") +
                                 " evaluate.every=6 training.grad_accumulation_steps=2";
    workspace.train(model, 2, settings);
    EXPECT_THAT(workspace.losses(model), SizeIs(12));
    const auto evaluated = [&](const std::string& run) {
      std::vector<double> losses;
      for (const nlohmann::json& record : workspace.metrics(run))
        if (record.contains("eval_loss")) losses.push_back(record["eval_loss"]);
      return losses;
    };
    for (const auto& [ranks, mesh] : divisions) {
      workspace.train("divided", ranks, settings + " resume=false " + mesh);
      expect_same_steps(workspace, model, "divided");
      EXPECT_LT(relative_difference(evaluated(model), evaluated("divided")), 1e-9) << mesh;
    }
    EXPECT_THAT(evaluated(model), SizeIs(2));
  }
}

TEST(Divided, OtherWaysToTrainTakeTheSameSteps) {
  const DecoderWorkspace workspace;
  for (const std::string settings :
       {"training.activation_checkpointing=1", "training.kernels=reference", "ema.decay=0.9",
        "training.max_grad_value=0.01", "training.max_tokens=100 training.global_batch_size=null"}) {
    workspace.train("whole", 2, settings + " resume=false");
    workspace.train("divided", 4, settings + " resume=false training.mesh.tp=2");
    expect_same_steps(workspace, "whole", "divided");
  }
}

// Runs on 1 and 2 data ranks have equal bits if the mesh of the model is the same.
TEST(Divided, DeterministicRunsRepeatTheirBits) {
  const DecoderWorkspace workspace;
  const std::string settings = "training.deterministic=true training.batch_size=2 training.mesh.tp=2";
  EXPECT_THAT(workspace.train("one", 2, settings),
              AllOf(HasSubstr("per group x 1 group of 2 ranks"), Not(HasSubstr("\ncomm "))));
  EXPECT_THAT(workspace.train("two", 4, settings),
              AllOf(HasSubstr("per group x 2 groups of 2 ranks"), HasSubstr("\ncomm ")));
  EXPECT_EQ(workspace.losses("one"), workspace.losses("two"));
  EXPECT_EQ(workspace.read("one/model/model.safetensors"), workspace.read("two/model/model.safetensors"));
}

TEST(Divided, RunsResumeOnAnyMesh) {
  const DecoderWorkspace workspace;
  const std::string settings = "ema.decay=0.9";
  workspace.train("whole", 2, settings);
  std::vector<Division> meshes(std::begin(divisions), std::end(divisions));
  meshes.push_back({2, "training.strategy=fsdp"});
  meshes.push_back({3, ""});
  for (size_t first = 0; first < meshes.size(); ++first) {
    for (const size_t second : {(first + 1) % meshes.size(), (first + 3) % meshes.size()}) {
      const std::string run = fmt::format("from-{}-on-{}", first, second);
      workspace.train(run, meshes[first].ranks,
                      settings + " training.steps_this_run=5 " + meshes[first].settings);
      EXPECT_THAT(workspace.losses(run), SizeIs(5));
      workspace.train(run, meshes[second].ranks, settings + " " + meshes[second].settings);
      expect_same_steps(workspace, "whole", run);
    }
  }
}

TEST(Divided, WhatCannotBeCombinedIsRefused) {
  const DecoderWorkspace workspace;
  const auto refusal = [&](int ranks, const std::string& settings) {
    return workspace.refusal_of("refused", ranks, settings);
  };
  EXPECT_THAT(refusal(3, "training.mesh.tp=2"),
              HasSubstr("training.mesh.tp: 3 ranks cannot be divided into groups of 2"));
  EXPECT_THAT(refusal(4, "training.mesh.tp=2 training.mesh.dp=4"),
              HasSubstr("training.mesh.dp: dp (4) x tp (2) = 8 ranks, but the job has 4"));
  EXPECT_THAT(refusal(2, "training.mesh.dp=several"), HasSubstr("training.mesh.dp"));
  EXPECT_THAT(
      refusal(3, "training.mesh.tp=3"),
      HasSubstr("4 attention heads, and its 4 heads of keys and values, cannot be divided evenly among 3"));
  for (const char* strategy : {"zero2", "fsdp", "hsdp"}) {
    EXPECT_THAT(
        refusal(4, fmt::format("training.mesh.tp=2 training.strategy={}", strategy)),
        HasSubstr(fmt::format("strategy {} cannot be combined with tp yet; choose ddp or zero1", strategy)));
  }
  for (const char* optimizer : {"Muon", "Lamb", "Adafactor", "LBFGS"}) {
    EXPECT_THAT(
        refusal(2, fmt::format("training.mesh.tp=2 optimizer.type={} training.max_grad_norm=0", optimizer)),
        HasSubstr("needs whole parameters, and "))
        << optimizer;
  }
  EXPECT_THAT(refusal(2, "training.mesh.tp=2 parameters.freeze=[transformer.h.0.*]"),
              HasSubstr("is frozen, and cut over tp"));
}

// A BERT of 4 heads with 33 words.
TEST(Divided, ClassifiersTakeTheStepsOfWholeOnes) {
  const ThreadWorkspace workspace;
  const std::string settings = "training.max_steps=12 ";
  workspace.train("whole", 2, settings);
  for (const auto& [ranks, mesh] : divisions) {
    workspace.train("divided", ranks, settings + "resume=false " + mesh);
    expect_same_steps(workspace, "whole", "divided");
  }
}

}  // namespace
}  // namespace stretto
