#include "stretto/base/message_support.h"
#include "stretto/trainer/api/manual_fixture.h"

namespace stretto::trainer {
namespace {

TEST_F(ManualTest, ResumesExactly) {
  recipe_.checkpoint.every = "5";
  recipe_.checkpoint.keep_last = 0;
  for (const int ranks : {1, 2}) {
    recipe_.resume = "auto";
    const NamedTensors whole = train(ranks, "whole" + std::to_string(ranks));
    recipe_.resume = recipe_.output / "checkpoints/step-00000005";
    const NamedTensors resumed = train(ranks, "resumed" + std::to_string(ranks));
    for (const auto& [name, tensor] : whole) EXPECT_TRUE(tensor.equal(resumed.at(name))) << name << ranks;
    EXPECT_EQ(records().back().at("step"), 14);
  }
}

struct Decays : GanTask {
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override {
    plan = GanTask::configure_optimizers(std::move(plan));
    plan.several.front().schedule = optim::linear_with_warmup({});
    return plan;
  }
};

// 5 steps of 4 samples, one of the 7 samples that are left of the epoch, 3 of 9 samples.
TEST_F(ManualTest, SchedulesEndWithARunThatResumesWithOtherBatches) {
  recipe_.training.steps_this_run = 5;
  fit<Decays>();
  recipe_.training.steps_this_run = std::nullopt;
  recipe_.training.global_batch_size = 9;
  EXPECT_EQ(fit<Decays>().total_steps, 9);
  EXPECT_NEAR(records().at(5).at("lr_generator"), 0.05 * 3 / 9, 1e-12);
}

struct OtherOptimizers : GanTask {
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override {
    plan.several.push_back({"generator", "generator.*", optim::sgd({.lr = 0.1})});
    plan.several.push_back({"critic", "discriminator.*", optim::sgd({.lr = 0.1, .momentum = 0.9})});
    return plan;
  }
};
struct OtherRates : GanTask {
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override {
    plan = GanTask::configure_optimizers(std::move(plan));
    plan.several.back().optimizer = optim::sgd({.lr = 0.2, .momentum = 0.9});
    return plan;
  }
};

TEST_F(ManualTest, OptimizersThatDifferFromTheCheckpointsAreNamed) {
  recipe_.training.steps_this_run = 2;
  fit<GanTask>();
  EXPECT_THAT(message_of<ConfigError>([&] { fit<OtherOptimizers>(); }),
              has_all("other optimizers:\n  optimizers.critic: unset in the checkpoint",
                      "now \"SGD of discriminator.*\"\n",
                      "\n  optimizers.generator: \"AdamW of generator.*\" in the checkpoint",
                      "now \"SGD of generator.*\"\n", "another output"));
  ::testing::internal::CaptureStderr();
  fit<OtherRates>();
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      ::testing::HasSubstr("rates.discriminator: \"lr 0.1, Constant\" in the checkpoint, now \"lr 0.2, "
                           "Constant\""));
}

}  // namespace
}  // namespace stretto::trainer
