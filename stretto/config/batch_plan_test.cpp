#include "stretto/config/batch_plan.h"

#include <gmock/gmock.h>

#include "stretto/base/error.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Global size, batch size and accumulation steps of the plan for `training` on `ranks` ranks.
std::array<int64_t, 3> plan(const TrainingConfig& training, int64_t ranks) {
  const BatchPlan plan = resolve_batch(training, ranks);
  EXPECT_EQ(plan.world_size, ranks);
  return {plan.global_batch_size, plan.batch_size, plan.grad_accumulation_steps};
}

using Sizes = std::array<int64_t, 3>;

TEST(BatchPlan, DefaultsFillWhatIsNotGiven) {
  EXPECT_EQ(plan({}, 2), (Sizes{64, 32, 1}));
  EXPECT_EQ(plan({.batch_size = 8}, 4), (Sizes{32, 8, 1}));
  EXPECT_EQ(plan({.grad_accumulation_steps = 3}, 2), (Sizes{192, 32, 3}));
  EXPECT_EQ(plan({.global_batch_size = 128}, 2), (Sizes{128, 64, 1}));
}

TEST(BatchPlan, AnyTwoGiveTheThird) {
  EXPECT_EQ(plan({.batch_size = 16, .grad_accumulation_steps = 2}, 2), (Sizes{64, 16, 2}));
  EXPECT_EQ(plan({.batch_size = 16, .global_batch_size = 64}, 2), (Sizes{64, 16, 2}));
  EXPECT_EQ(plan({.global_batch_size = 64, .grad_accumulation_steps = 2}, 2), (Sizes{64, 16, 2}));
  EXPECT_EQ(plan({.batch_size = 16, .global_batch_size = 64, .grad_accumulation_steps = 2}, 2),
            (Sizes{64, 16, 2}));
}

TEST(BatchPlan, AGlobalSizeNeedNotDivide) {
  EXPECT_EQ(plan({.global_batch_size = 100}, 3), (Sizes{100, 34, 1}));
  EXPECT_EQ(plan({.batch_size = 34, .global_batch_size = 100}, 3), (Sizes{100, 34, 1}));
  EXPECT_EQ(plan({.batch_size = 17, .global_batch_size = 100}, 3), (Sizes{100, 17, 2}));
  EXPECT_EQ(plan({.global_batch_size = 7, .grad_accumulation_steps = 2}, 2), (Sizes{7, 2, 2}));
  EXPECT_EQ(plan({.global_batch_size = 1}, 4), (Sizes{1, 1, 1}));
}

TEST(BatchPlan, TokensTakeThePlaceOfSamples) {
  EXPECT_EQ(plan({.grad_accumulation_steps = 4, .max_tokens = 4096}, 2), (Sizes{0, 0, 4}));
  EXPECT_THAT([] { resolve_batch({.batch_size = 8, .max_tokens = 4096}, 2); },
              ThrowsMessage<ConfigError>(
                  HasSubstr("sized either by tokens or by samples; remove this or training.batch_size")));
  EXPECT_THAT([] { resolve_batch({.global_batch_size = 8, .max_tokens = 4096}, 2); },
              ThrowsMessage<ConfigError>(HasSubstr("training.global_batch_size")));
}

TEST(BatchPlan, DeterministicRunsNeedTheSameMicroBatchesOnAnyNumberOfRanks) {
  TrainingConfig training;
  training.deterministic = true;
  const auto refusal = [&](int64_t ranks) -> std::string {
    try {
      resolve_batch(training, ranks);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal(2), HasSubstr("set training.global_batch_size and training.batch_size"));
  training.batch_size = 4;
  EXPECT_THAT(refusal(2), HasSubstr("set training.global_batch_size and training.batch_size"));
  training.global_batch_size = 24;
  EXPECT_EQ(refusal(1), "");
  EXPECT_EQ(refusal(2), "");
  EXPECT_EQ(plan(training, 2), (Sizes{24, 4, 3}));
  EXPECT_THAT(
      refusal(4),
      HasSubstr("training.global_batch_size must be a multiple of training.batch_size x 4 ranks = 16"));
  EXPECT_THAT(refusal(3), HasSubstr("3 ranks cannot divide the micro-batches of a step into halves"));
  training.strategy = "zero1";
  EXPECT_EQ(refusal(2), "");
  for (const char* strategy : {"zero2", "fsdp", "hsdp"}) {
    training.strategy = strategy;
    EXPECT_THAT(refusal(2), HasSubstr("choose ddp or zero1"));
  }
  training.strategy = "ddp";
  training.batch_size.reset();
  training.max_tokens = 512;
  EXPECT_THAT(refusal(2), HasSubstr("training.max_tokens"));
}

TEST(BatchPlan, ContradictionsPrintTheEquation) {
  EXPECT_THAT(
      [] { resolve_batch({.batch_size = 32, .global_batch_size = 100}, 2); },
      ThrowsMessage<ConfigError>(HasSubstr(
          "global_batch_size (100) = batch_size (32) x world_size (2) x grad_accumulation_steps (1) does not hold, the right-hand side is 64; change training.global_batch_size to 64, or training.batch_size to 50")));
  EXPECT_THAT(
      [] { resolve_batch({.batch_size = 32, .global_batch_size = 64, .grad_accumulation_steps = 2}, 2); },
      ThrowsMessage<ConfigError>(
          HasSubstr("grad_accumulation_steps (2) does not hold, the right-hand side is 128")));
  EXPECT_THAT(
      [] { resolve_batch({.global_batch_size = 2, .grad_accumulation_steps = 4}, 1); },
      ThrowsMessage<ConfigError>(HasSubstr(
          "2 samples leave accumulation steps without samples; set training.grad_accumulation_steps to at most 2")));
}

TEST(BatchPlan, ContradictionsNameTheLines) {
  const std::string yaml = "training:\n  batch_size: 32\n  global_batch_size: 100\n";
  const Recipe recipe = parse_recipe(yaml, "r.yaml");
  EXPECT_THAT([&] { resolve_batch(recipe.training, 2, recipe.origins); },
              ThrowsMessage<ConfigError>(testing::AllOf(
                  testing::StartsWith("r.yaml:3:22: training.global_batch_size: global_batch_size (100) = "),
                  HasSubstr("or training.batch_size (r.yaml:2:15) to 50"))));
}

TEST(BatchPlan, IsDescribedAsItIs) {
  const auto describe = [](const TrainingConfig& training, int64_t ranks) {
    return describe_batch(resolve_batch(training, ranks), training);
  };
  EXPECT_EQ(describe({.batch_size = 8}, 1), "8 samples per step = 8 per rank x 1 rank");
  EXPECT_EQ(describe({.batch_size = 8, .grad_accumulation_steps = 2}, 2),
            "32 samples per step = 8 per rank x 2 ranks x 2 accumulation steps");
  EXPECT_EQ(describe({.global_batch_size = 7}, 2), "7 samples per step: at most 4 per rank on 2 ranks");
  EXPECT_EQ(describe({.max_tokens = 4096}, 2), "at most 4096 tokens per rank and micro-batch x 2 ranks");
}

}  // namespace
}  // namespace stretto
