#include <filesystem>
#include <span>

#include "tests/train/decoder_workspace.h"
#include "tests/train/meshes.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/message_support.h"
#include "stretto/checkpoint_format/folder.h"
#include "stretto/weights/export.h"

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
    {4, "training.mesh.tp=4 training.mesh.sequence_parallel=true"},
    {4, "training.mesh.tp=2 training.mesh.dp=2"},
    {4, "training.mesh.tp=2 training.strategy=zero1 training.mesh.sequence_parallel=true"},
    {4, "training.mesh.tp=2 training.strategy=zero1 training.shared_parameters=off"},
    {4, "training.mesh.tp=2 training.strategy=zero2"},
    {4, "training.mesh.tp=2 training.strategy=fsdp"},
    {4, "training.mesh.tp=2 training.strategy=fsdp training.shared_parameters=off"},
    {8, "training.mesh.tp=2 training.strategy=hsdp training.dp_shard=2"},
};
// For what does not depend on how optimizer state and gradients are held.
const Division few_divisions[] = {
    {2, "training.mesh.tp=2"},
    {4, "training.mesh.tp=4 training.mesh.sequence_parallel=true"},
    {4, "training.mesh.tp=2 training.strategy=fsdp training.shared_parameters=off"},
    {8, "training.mesh.tp=2 training.strategy=hsdp training.dp_shard=2"},
};

TEST(Divided, ModelsTakeTheStepsOfWholeOnes) {
  const DecoderWorkspace workspace;
  for (const std::string model : {"gpt2", "llama"}) {
    const std::string settings = " model.config=" + workspace.path(model + ".json") +
                                 " evaluate.every=4 training.grad_accumulation_steps=2";
    workspace.train(model, 2, settings);
    EXPECT_THAT(workspace.losses(model), SizeIs(8));
    const auto evaluated = [&](const std::string& run) {
      std::vector<double> losses;
      for (const nlohmann::json& record : workspace.metrics(run))
        if (record.contains("eval_loss")) losses.push_back(record["eval_loss"]);
      return losses;
    };
    const auto all = std::span<const Division>(divisions);
    for (const auto& [ranks, mesh] : model == "gpt2" ? all : std::span<const Division>(few_divisions)) {
      workspace.train("divided", ranks, settings + " resume=false " + mesh);
      expect_same_steps(workspace, model, "divided");
      EXPECT_LT(relative_difference(evaluated(model), evaluated("divided")), 1e-9) << mesh;
    }
    EXPECT_THAT(evaluated(model), SizeIs(2));
  }
}

TEST(Divided, OtherWaysToTrainTakeTheSameSteps) {
  const DecoderWorkspace workspace;
  bool is_shared = false;
  for (const std::string& settings : std::initializer_list<std::string>{
           "training.activation_checkpointing=1", "training.kernels=reference", "ema.decay=0.9",
           "training.max_grad_value=0.01", "training.max_tokens=100 training.global_batch_size=null",
           "training.global_batch_size=5", "training.global_batch_size=1",
           "training.offload_optimizer=" + workspace.path()}) {
    workspace.train("whole", 2, settings + " resume=false");
    is_shared = !is_shared;
    for (const std::string strategy : {"ddp", is_shared ? "fsdp" : "fsdp training.shared_parameters=off"}) {
      workspace.train("divided", 4,
                      settings + " resume=false training.mesh.tp=2 training.strategy=" + strategy);
      expect_same_steps(workspace, "whole", "divided");
    }
  }
}

// OptimizersAndStrategies of the layer parallel combines them with all strategies.
TEST(Divided, EveryOptimizerTakesTheStepsOfWholeTensors) {
  const DecoderWorkspace workspace;
  // Directions of Muon depend on rounding more than those of other rules, and weights are saved in fp32.
  const auto expect_same_losses = [&](const std::string& run) {
    const auto weights = [&](const std::string& of) {
      return read_weights(workspace.path(of + "/model/model.safetensors"));
    };
    EXPECT_LT(relative_difference(workspace.losses("whole"), workspace.losses(run)), 1e-9);
    EXPECT_LT(weight_difference(weights("whole"), weights(run)), 1e-6);
  };
  for (const auto& [optimizer, strategy] :
       {std::pair<std::string, std::string>{"Muon", "fsdp"},
        {"Lamb", "zero1"},
        {"Adafactor", "fsdp"},
        {"SparseAdam", "ddp"},
        {"LBFGS optimizer.max_iter=3 optimizer.line_search_fn=strong_wolfe training.max_grad_norm=0",
         "ddp"}}) {
    SCOPED_TRACE(optimizer);
    const std::string settings = " resume=false optimizer.type=" + optimizer;
    workspace.train("whole", 2, settings);
    workspace.train("divided", 4, settings + " training.mesh.tp=2 training.strategy=" + strategy);
    expect_same_losses("divided");
    // Their state moves to whole tensors and back.
    for (const auto& [ranks, mesh] :
         {Division{2, "training.mesh.tp=2"}, {2, ""}, {4, "training.mesh.tp=4"}}) {
      workspace.train("moved", ranks,
                      fmt::format("optimizer.type={} training.steps_this_run=3 {}", optimizer, mesh));
    }
    expect_same_losses("moved");
    std::filesystem::remove_all(workspace.path("moved"));
  }
}

// The texts of evaluate.samples, and the results of `stretto test`, also of a text with fewer blocks than
// ranks.
TEST(Divided, TextsAndTestsAreThoseOfWholeModels) {
  const DecoderWorkspace workspace;
  workspace.write("short.txt", workspace.read("dev.txt").substr(0, workspace.read("dev.txt").find('\n') + 1));
  const std::string settings = "evaluate.every=4 evaluate.samples=[good,bad,film] ";
  workspace.train("whole", 1, settings);
  const auto results_of = [&](const std::string& run, const std::string& text, int ranks,
                              const std::string& mesh) {
    workspace.test(run, ranks, settings + mesh + " data.test=" + workspace.path(text));
    return nlohmann::json::parse(workspace.read(run + "/test_results.json")).at("loss").get<double>();
  };
  const double whole = results_of("whole", "dev.txt", 1, ""),
               whole_short = results_of("whole", "short.txt", 1, "");
  for (const auto& [ranks, mesh] : few_divisions) {
    SCOPED_TRACE(mesh);
    workspace.train("divided", ranks, settings + "resume=false " + mesh);
    EXPECT_EQ(workspace.read("divided/texts.jsonl"), workspace.read("whole/texts.jsonl"));
    EXPECT_NEAR(results_of("divided", "dev.txt", ranks, mesh), whole, 1e-9);
    EXPECT_NEAR(results_of("divided", "short.txt", ranks, mesh), whole_short, 1e-9);
  }
}

// Within the noise of bf16: the losses of fp64 are as close.
TEST(Divided, LowerPrecisionsStayClose) {
  const DecoderWorkspace workspace;
  workspace.train("fp64", 2);
  for (const auto& [precision, limit] : {std::pair{"fp32", 1e-4}, std::pair{"bf16", 0.03}}) {
    for (const auto& [ranks, mesh] : few_divisions) {
      const std::string settings = fmt::format("resume=false training.precision={} {}", precision, mesh);
      workspace.train("divided", ranks, settings);
      EXPECT_LT(relative_difference(workspace.losses("fp64"), workspace.losses("divided")), limit)
          << settings;
    }
  }
}

// Runs on any number of data ranks have equal bits if the mesh of the model is the same.
TEST(Divided, DeterministicRunsRepeatTheirBits) {
  const DecoderWorkspace workspace;
  using Groups = std::vector<std::pair<int, std::string>>;
  const Groups of_pairs = {{2, "ddp"}, {2, "zero1"}, {3, "fsdp"}, {4, "fsdp training.shared_parameters=off"}};
  const Groups of_fours = {{2, "ddp"}, {2, "fsdp"}};
  for (const std::string precision : {"fp32", "bf16"}) {
    for (const int tp : {2, 4}) {
      const std::string settings = fmt::format(
          "training.deterministic=true training.batch_size=2 resume=false training.precision={} "
          "training.mesh.tp={} training.mesh.sequence_parallel={} ",
          precision, tp, tp == 4);
      EXPECT_THAT(
          workspace.train("one", tp, settings),
          AllOf(HasSubstr(fmt::format("per group x 1 group of {} ranks", tp)), Not(HasSubstr("\ncomm "))));
      for (const auto& [groups, strategy] : tp == 2 ? of_pairs : of_fours) {
        const std::string log =
            workspace.train("more", groups * tp, settings + "training.strategy=" + strategy);
        EXPECT_THAT(log, HasSubstr("\ncomm "));
        if (groups == 2) {
          EXPECT_THAT(log, HasSubstr(fmt::format("per group x 2 groups of {} ranks", tp)));
        }
        EXPECT_EQ(workspace.losses("one"), workspace.losses("more")) << settings << groups << strategy;
        EXPECT_TRUE(workspace.read("one/model/model.safetensors") ==
                    workspace.read("more/model/model.safetensors"))
            << settings << groups << strategy;
      }
    }
  }
}

// Each mesh is left for the two that follow it, and entered from the two before it: what a file holds does
// not depend on who reads it (Stages, of the layer checkpoint, and SessionTest leave each mesh for each other
// one). ReplayOnAMesh resumes each on itself, bit for bit.
TEST(Divided, RunsResumeOnAnyMesh) {
  const DecoderWorkspace workspace;
  const std::string settings = "ema.decay=0.9 training.max_steps=7 ";
  workspace.train("whole", 2, settings);
  for (size_t first = 0; first < std::size(run_meshes); ++first) {
    const std::string begun = fmt::format("from-{}", run_meshes[first].name);
    workspace.train(begun, run_meshes[first].ranks,
                    settings + "training.steps_this_run=4 " + run_meshes[first].settings);
    EXPECT_THAT(workspace.losses(begun), SizeIs(4));
    for (const size_t further : {1, 2}) {
      const RunMesh& second = run_meshes[(first + further) % std::size(run_meshes)];
      SCOPED_TRACE(fmt::format("{} to {}", begun, second.name));
      std::filesystem::remove_all(workspace.path("moved"));
      std::filesystem::copy(workspace.path(begun), workspace.path("moved"),
                            std::filesystem::copy_options::recursive);
      workspace.train("moved", second.ranks, settings + second.settings);
      expect_same_steps(workspace, "whole", "moved");
    }
  }
}

// Initial values, in the saved model and converted from a checkpoint. On 4 ranks, all have the head of keys
// and values.
TEST(Divided, EqualValuesAreEqualBytesOnAnyMesh) {
  const DecoderWorkspace workspace;
  const auto files_of = [&](const Division& on) {
    for (const char* folder : {"still", "converted"}) std::filesystem::remove_all(workspace.path(folder));
    workspace.train("still", on.ranks,
                    fmt::format("model.config={} optimizer.lr=0 training.max_steps=1 checkpoint.every=1 {}",
                                workspace.path("llama-1.json"), on.settings));
    weights::export_model(checkpoint_format::checkpoint_path(workspace.path("still/checkpoints"), 1),
                          workspace.path("converted"));
    return std::pair(workspace.read("still/model/model.safetensors"),
                     workspace.read("converted/model.safetensors"));
  };
  const auto whole = files_of({2, ""});
  for (const Division& on : few_divisions) EXPECT_TRUE(files_of(on) == whole) << on.settings;
}

TEST(Divided, WhatCannotBeCombinedIsRefused) {
  const DecoderWorkspace workspace;
  const auto refusal = [&](int ranks, const std::string& settings) {
    return workspace.refusal_of("refused", ranks, settings);
  };
  EXPECT_THAT(refusal(3, "training.mesh.tp=2"), has_all("training.mesh.tp: 3 ranks ", "groups of 2"));
  EXPECT_THAT(refusal(4, "training.mesh.tp=2 training.mesh.dp=4"),
              has_all("training.mesh.dp: dp (4) x tp (2) = 8 ranks", "the job has 4"));
  EXPECT_THAT(refusal(2, "training.mesh.dp=several"), HasSubstr("training.mesh.dp"));
  EXPECT_THAT(refusal(2, "training.mesh.sequence_parallel=true"),
              has_all("training.mesh.sequence_parallel: rows are divided", "training.mesh.tp is 1"));
  EXPECT_THAT(refusal(3, "training.mesh.tp=3"),
              has_all("4 attention heads", "4 heads of keys and values", "evenly among 3"));
  EXPECT_THAT(
      refusal(4, "training.mesh.tp=2 training.strategy=zero1 optimizer.type=LBFGS training.max_grad_norm=0"),
      has_all("LBFGS needs all", "choose strategy ddp"));
  EXPECT_THAT(refusal(2, "training.mesh.tp=2 parameters.freeze=[transformer.h.0.*]"),
              HasSubstr("is frozen, and cut over tp"));
}

// A BERT of 4 heads with 33 words.
TEST(Divided, ClassifiersTakeTheStepsOfWholeOnes) {
  const ThreadWorkspace workspace;
  const std::string settings = "training.max_steps=8 ";
  workspace.train("whole", 2, settings);
  for (const auto& [ranks, mesh] : few_divisions) {
    workspace.train("divided", ranks, settings + "resume=false " + mesh);
    expect_same_steps(workspace, "whole", "divided");
  }
}

}  // namespace
}  // namespace stretto
