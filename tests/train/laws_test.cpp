#include "tests/train/decoder_workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

// The result of a run is a function of the recipe's global sizes and seed, not of how the work is divided.
// All runs compute in float64 with dropout, so any difference beyond rounding is an error.
namespace stretto {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(TrainLaws, OneTwoAndFourRanksTakeTheSameSteps) {
  const ThreadWorkspace workspace;
  const std::string settings = "training.max_steps=30 evaluate.every=never";
  workspace.train("one", 1, settings);
  workspace.train("two", 2, settings);
  workspace.train("four", 4, settings);
  EXPECT_THAT(workspace.losses("one"), SizeIs(30));
  expect_same_steps(workspace, "one", "two");
  expect_same_steps(workspace, "one", "four");
}

TEST(TrainLaws, PaddingOfBatchesChangesNothing) {
  const ThreadWorkspace workspace;
  const std::string settings = "training.max_steps=20 evaluate.every=never";
  workspace.train("plain", 1, settings + " data.pad_to_multiple_of=1");
  workspace.train("padded", 1, settings);
  workspace.train("much", 2, settings + " data.pad_to_multiple_of=100");
  expect_same_steps(workspace, "plain", "padded");
  expect_same_steps(workspace, "plain", "much");
}

TEST(TrainLaws, RecomputedActivationsChangeNothing) {
  const ThreadWorkspace workspace;
  const std::string settings = "training.max_steps=10 evaluate.every=never ";
  workspace.train("kept", 2, settings);
  for (const std::string strategy : {"ddp", "zero2", "fsdp training.shared_parameters=off"}) {
    workspace.train(
        "recomputed", 2,
        settings + "resume=false training.activation_checkpointing=1 training.strategy=" + strategy);
    expect_same_steps(workspace, "kept", "recomputed");
  }
}

TEST(TrainLaws, EveryStrategyTakesTheSameSteps) {
  const ThreadWorkspace workspace;
  const std::string settings =
      "training.max_steps=8 evaluate.every=never training.grad_accumulation_steps=2 ";
  workspace.train("ddp", 2, settings);
  int other = 1;  // each on 3 ranks and on 1 or 2
  for (const std::string sharding :
       {"zero1", "zero1 training.shared_parameters=off", "zero2", "zero2 training.shared_parameters=off",
        "fsdp", "fsdp training.shared_parameters=off",
        "fsdp training.shared_parameters=off training.reshard_after_forward=false",
        "fsdp training.shared_parameters=off training.wrap_min_parameters=9000"}) {
    for (const int ranks : {other, 3}) {
      workspace.train("sharded", ranks, settings + "resume=false training.strategy=" + sharding);
      expect_same_steps(workspace, "ddp", "sharded");
    }
    other = 3 - other;
  }
  // tcp connects ranks as on hosts with one rank each.
  for (const std::string sharding :
       {"hsdp training.dp_shard=1", "hsdp training.dp_shard=2", "hsdp training.dp_shard=4",
        "hsdp training.dp_shard=null",
        "hsdp training.dp_shard=2 training.shared_parameters=off training.reshard_after_forward=false",
        "ddp training.backend=tcp", "zero1 training.backend=tcp", "zero2 training.backend=tcp",
        "fsdp training.backend=tcp", "hsdp training.dp_shard=2 training.backend=tcp"}) {
    workspace.train("sharded", 4, settings + "resume=false training.strategy=" + sharding);
    expect_same_steps(workspace, "ddp", "sharded");
  }
}

// Any other order of summation rounds differently in fp32 and bf16. A step has 12 micro-batches, some without
// a sample; five ranks have different numbers of them; and the number of ranks changes during the run.
TEST(TrainLaws, DeterministicRunsHaveTheSameBitsOnAnyRanksUnderEveryStrategy) {
  const ThreadWorkspace workspace;
  workspace.write("train.tsv", make_rows(63, 5));
  const std::string settings =
      "training.deterministic=true training.global_batch_size=24 training.batch_size=2 training.precision=";
  for (const std::string precision : {"fp32", "bf16"}) {
    const std::string all = settings + precision + " ", one = "one-" + precision;
    const auto expect_equal = [&](const std::string& folder, const std::string& how) {
      EXPECT_EQ(workspace.losses(folder), workspace.losses(one)) << how << " " << precision;
      EXPECT_TRUE(workspace.read(folder + "/model/model.safetensors") ==
                  workspace.read(one + "/model/model.safetensors"))
          << how << " " << precision;
    };
    EXPECT_THAT(workspace.train(one, 1, all),
                HasSubstr("order      fixed: the same bits for any number of ranks with this global batch in "
                          "12 micro-batches"));
    EXPECT_THAT(workspace.losses(one), SizeIs(6));
    for (const int ranks : {2, 3, 4, 5}) {
      workspace.train("more", ranks, all + "resume=false");
      expect_equal("more", fmt::format("ddp on {}", ranks));
    }
    // In the other precision, a strategy has the other number of ranks.
    const int fp32 = precision == "fp32";
    for (const auto& [strategy, ranks] : {std::pair<std::string, int>{"zero1", 2 + fp32},
                                          {"zero2", 3 - fp32},
                                          {"fsdp", 2 + fp32},
                                          {"fsdp training.shared_parameters=off", 3 - fp32},
                                          {"hsdp training.dp_shard=1", 2 + fp32}}) {
      workspace.train("sharded", ranks, all + "resume=false training.strategy=" + strategy);
      expect_equal("sharded", fmt::format("{} on {}", strategy, ranks));
    }
    const auto on_four =
        fp32 ? std::vector<std::string>{"zero1", "hsdp training.dp_shard=2", "fsdp training.backend=tcp"}
             : std::vector<std::string>{"zero2", "fsdp training.shared_parameters=off",
                                        "hsdp training.dp_shard=2 training.shared_parameters=off"};
    for (const std::string& strategy : on_four) {
      workspace.train("sharded", 4, all + "resume=false training.strategy=" + strategy);
      expect_equal("sharded", strategy + " on 4");
    }
    for (const int ranks : {4, 1, 3})
      workspace.train("changing-" + precision, ranks, all + "training.steps_this_run=2");
    expect_equal("changing-" + precision, "changing");
  }
}

// The law also holds across a checkpoint.
TEST(TrainLaws, OptimizerStateInFilesChangesNoBit) {
  const ThreadWorkspace workspace;
  std::filesystem::create_directory(workspace.path("disk"));
  const std::string settings = "training.max_steps=8 evaluate.every=never checkpoint.every=3 resume=auto ";
  for (const std::string strategy : {"ddp", "zero1", "fsdp", "fsdp training.shared_parameters=off"}) {
    const std::string all = settings + "training.strategy=" + strategy;
    std::filesystem::remove_all(workspace.path("memory"));
    std::filesystem::remove_all(workspace.path("files"));
    workspace.train("memory", 2, all);
    const std::string offloaded = all + " training.offload_optimizer=" + workspace.path("disk");
    workspace.train("files", 2, offloaded + " training.steps_this_run=5");
    workspace.train("files", 2, offloaded);
    EXPECT_EQ(workspace.losses("files"), workspace.losses("memory")) << strategy;
    EXPECT_EQ(workspace.read("files/model/model.safetensors"),
              workspace.read("memory/model/model.safetensors"));
    EXPECT_TRUE(std::filesystem::is_empty(workspace.path("disk")));
  }
  EXPECT_THAT(workspace.train("output", 2, settings + "training.strategy=zero1-nvme"),
              HasSubstr(workspace.path("output")));
  workspace.train("plain", 2, settings + "training.strategy=zero1");
  EXPECT_EQ(workspace.losses("output"), workspace.losses("plain")) << "in the output folder";
}

// Blocks compute with parameters in files, on a rank that has all of them and on ranks that gather them.
TEST(TrainLaws, ParametersInFilesChangeNoBit) {
  const ThreadWorkspace workspace;
  std::filesystem::create_directory(workspace.path("disk"));
  const std::string settings =
      "training.max_steps=8 evaluate.every=4 checkpoint.every=3 resume=auto training.strategy=fsdp ";
  for (const std::string precision : {"fp64", "bf16 training.products=aten"}) {
    for (const int ranks : {1, 2, 3}) {
      const std::string all = settings + "training.precision=" + precision;
      std::filesystem::remove_all(workspace.path("memory"));
      std::filesystem::remove_all(workspace.path("files"));
      workspace.train("memory", ranks, all + " training.shared_parameters=off");
      const std::string offloaded =
          all + " training.offload_parameters=" + workspace.path("disk") +
          (ranks == 2 ? " training.offload_optimizer=" + workspace.path("disk") : "");
      workspace.train("files", ranks, offloaded + " training.steps_this_run=5");
      EXPECT_THAT(workspace.train("files", ranks, offloaded), HasSubstr("in files of"));
      EXPECT_EQ(workspace.losses("files"), workspace.losses("memory")) << precision << ranks;
      EXPECT_EQ(workspace.read("files/model/model.safetensors"),
                workspace.read("memory/model/model.safetensors"));
      EXPECT_TRUE(std::filesystem::is_empty(workspace.path("disk")));
    }
  }
}

TEST(TrainLaws, AccumulationEqualsRanksAndTheLastWindowMayBePartial) {
  const ThreadWorkspace workspace;
  workspace.write("train.tsv", make_rows(87, 3));  // 32 + 32 + 23 samples per epoch
  const std::string settings =
      "training.global_batch_size=32 training.batch_size=16 training.epochs=3 evaluate.every=never";
  workspace.train("two", 2, settings);
  workspace.train("accumulated", 1, settings + " training.grad_accumulation_steps=2");
  EXPECT_THAT(workspace.losses("two"), SizeIs(9));
  expect_same_steps(workspace, "two", "accumulated");
}

TEST(TrainLaws, GlobalBatchNeedNotDivideByRanks) {
  const ThreadWorkspace workspace;
  const std::string settings = "training.global_batch_size=10 evaluate.every=never";
  workspace.train("one", 1, settings);
  workspace.train("four", 4, settings);
  EXPECT_THAT(workspace.losses("one"), SizeIs(14));
  expect_same_steps(workspace, "one", "four");
}

TEST(TrainLaws, RanksMayBeLeftWithoutASample) {
  const ThreadWorkspace workspace;
  workspace.write("train.tsv", make_rows(33, 4));  // the last batch of an epoch is one sample for four ranks
  const std::string settings = "training.global_batch_size=8 evaluate.every=never";
  workspace.train("one", 1, settings);
  workspace.train("four", 4, settings);
  EXPECT_THAT(workspace.losses("one"), SizeIs(10));
  expect_same_steps(workspace, "one", "four");
}

TEST(TrainLaws, TokenBudgetIsGlobal) {
  const ThreadWorkspace workspace;
  const auto settings = [](int tokens, int accumulation) {
    return fmt::format(
        "training.global_batch_size=null training.max_tokens={} training.grad_accumulation_steps={} training.epochs=4 evaluate.every=never",
        tokens, accumulation);
  };
  workspace.train("one", 1, settings(160, 1));
  workspace.train("two", 2, settings(80, 1));
  workspace.train("accumulated", 2, settings(40, 2));
  expect_same_steps(workspace, "one", "two");
  expect_same_steps(workspace, "one", "accumulated");
}

// With a token budget, the number of steps depends on the epoch's order; every epoch still uses each sample
// once.
TEST(TrainLaws, EveryEpochUnderATokenBudgetIsWhole) {
  const ThreadWorkspace workspace;
  workspace.train("run", 1, "training.global_batch_size=null training.max_tokens=50 training.epochs=6");
  const auto summary = nlohmann::json::parse(workspace.read("run/summary.json"));
  EXPECT_EQ(summary["samples"], 6 * 64);
  int evaluations = 0;
  for (const auto& record : workspace.metrics("run")) evaluations += record.contains("eval_accuracy");
  EXPECT_EQ(evaluations, 6);
}

TEST(TrainLaws, LowerPrecisionsStayClose) {
  const ThreadWorkspace workspace;
  const std::string settings = "training.max_steps=20 evaluate.every=never training.precision=";
  workspace.train("fp64", 1, settings + "fp64");
  workspace.train("fp32", 2, settings + "fp32");
  workspace.train("bf16", 2, settings + "bf16");
  workspace.train("fp16", 2, settings + "fp16 loss_scale.init_scale=256");  // without overflows
  EXPECT_LT(relative_difference(workspace.losses("fp64"), workspace.losses("fp32")), 1e-4);
  EXPECT_LT(relative_difference(workspace.losses("fp64"), workspace.losses("bf16")), 0.03);
  EXPECT_LT(relative_difference(workspace.losses("fp64"), workspace.losses("fp16")), 0.005);
}

// Losses and weights agree to rounding; that their bits differ shows that the setting reaches the kernels.
TEST(TrainLaws, ReferenceKernelsTakeTheSameSteps) {
  const ThreadWorkspace workspace;
  const std::string settings = "training.max_steps=20 training.grad_accumulation_steps=2 training.kernels=";
  workspace.train("fast", 2, settings + "fast");
  workspace.train("reference", 2, settings + "reference");
  EXPECT_THAT(workspace.losses("reference"), SizeIs(20));
  expect_same_steps(workspace, "fast", "reference");
  const std::string weights = "/model/model.safetensors";
  EXPECT_FALSE(workspace.read("fast" + weights) == workspace.read("reference" + weights));
}

TEST(TrainLaws, TextsWithoutATokenToPredictAreRefusedBeforeAStep) {
  const DecoderWorkspace workspace;
  workspace.write("bytes.json", R"({"model_type": "gpt2", "vocab_size": 422, "n_embd": 32, "n_head": 4,
      "n_layer": 1, "n_positions": 24})");
  const std::string short_text =
      fmt::format("model.config={} tokenizer.path={}/tests/golden/tokenizer/gpt2 data.train={} ",
                  workspace.path("bytes.json"), STRETTO_SOURCE_DIR, workspace.path("short.txt"));
  const auto refusal = [&](const std::string& text, const std::string& settings) {
    workspace.write("short.txt", text);
    return workspace.refusal_of("short", 1, short_text + settings);
  };
  const std::string place = "data.train: " + workspace.path("short.txt") + ": the text has ";
  EXPECT_THAT(refusal("a\n", "causal_lm.blocks=stream"), HasSubstr(place + "1 token in 1 document;"));
  EXPECT_THAT(refusal("a\na\n", ""), HasSubstr(place + "2 tokens in 2 documents;"));
  workspace.train("stream", 1, short_text + "causal_lm.blocks=stream");
}

TEST(TrainLaws, EmptyFilesOfAnyTaskAreNamedWithTheirSetting) {
  const ThreadWorkspace workspace;
  for (const auto& [task, name] : {std::pair("text-classification", "empty.tsv"),
                                   {"token-classification", "empty.conll"},
                                   {"question-answering", "empty.json"}}) {
    const std::string file = workspace.path(name);
    workspace.write(name, "");
    EXPECT_THAT(workspace.refusal_of("empty", 1, fmt::format("task={} data.train={}", task, file)),
                HasSubstr("data.train: " + file + ":"));
  }
}

}  // namespace
}  // namespace stretto
