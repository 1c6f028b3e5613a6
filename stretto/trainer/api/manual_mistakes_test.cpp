#include <cmath>

#include <torch/optim/sgd.h>

#include "stretto/base/message_support.h"
#include "stretto/trainer/api/manual_fixture.h"

namespace stretto::trainer {
namespace {

struct StepsNothing : GanTask {
  Loss training_step(const Batch& batch, StepContext&) override { return {at::zeros({}), batch.count}; }
};
struct StepsWithoutGradients : GanTask {
  Loss training_step(const Batch&, StepContext& context) override {
    context.manual().step("generator");
    return {};
  }
};
struct StepsUnknown : GanTask {
  Loss training_step(const Batch&, StepContext& context) override {
    context.manual().step("genrator");
    return {};
  }
};
struct StepsAfterTrainingStep : GanTask {
  Loss training_step(const Batch& batch, StepContext& context) override {
    manual = &context.manual();
    return GanTask::training_step(batch, context);
  }
  void on_train_batch_end(const StepReport&) override { manual->backward({net->generator->weight.sum(), 1}); }
  ManualOptimization* manual = nullptr;
};
struct SharesAGraph : GanTask {
  Loss training_step(const Batch& batch, StepContext& context) override {
    const Tensor fake = net->generator->forward(noise_of(batch)).square();
    context.manual().step("discriminator", {net->discriminator->forward(fake).sum(), batch.count});
    context.manual().step("generator", {fake.sum(), batch.count});
    return {at::zeros({}), batch.count};
  }
};
struct StepsBetweenForwardAndBackward : GanTask {
  Loss training_step(const Batch& batch, StepContext& context) override {
    const auto loss = [&] {
      const Tensor fake = net->generator->forward(noise_of(batch));
      return Loss(net->discriminator->forward(fake).square().sum(), batch.count);
    };
    const Loss earlier = loss();
    context.manual().step("discriminator", loss());
    context.manual().step("generator", earlier);
    return {at::zeros({}), batch.count};
  }
};
struct WithoutPlan : GanTask {
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override { return plan; }
};
struct MissesParameters : GanTask {
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override {
    plan.several.push_back({"generator", "generator.*", optim::adamw({})});
    return plan;
  }
};
struct Diverges : GanTask {
  Loss training_step(const Batch& batch, StepContext& context) override {
    context.manual().backward({net->generator->weight.sum() * INFINITY, batch.count});
    context.manual().step("generator");
    return {};
  }
};
struct DivergesOnOneRank : GanTask {
  Loss training_step(const Batch& batch, StepContext& context) override {
    const double factor = context.data_parallel().rank() == 1 ? NAN : 1;
    context.manual().step("generator", {net->generator->weight.sum() * factor, batch.count});
    return {at::zeros({}), batch.count};
  }
};
struct CallsBackwardOfATensor : GanTask {
  Loss training_step(const Batch& batch, StepContext&) override {
    net->generator->forward(noise_of(batch)).sum().backward();
    return {};
  }
};
template <bool after>
struct DropsGradients : GanTask {
  Loss training_step(const Batch& batch, StepContext& context) override {
    if (!after) net->zero_grad();
    context.manual().step("generator", {net->generator->weight.sum(), batch.count});
    if (after) torch::optim::SGD(net->parameters(), {0.1}).zero_grad();
    return {at::zeros({}), batch.count};
  }
};
struct ReplacesAParameter : GanTask {
  Loss training_step(const Batch& batch, StepContext& context) override {
    const Loss loss(net->generator->weight.sum(), batch.count);
    net->discriminator->weight.set_data(at::zeros({1, 4}, at::kDouble));
    context.manual().backward(loss);
    return {};
  }
};
struct AssignsAGenerator : GanTask {
  AssignsAGenerator() {
    net->generator = std::make_shared<torch::nn::LinearImpl>(2, 4);
    net->generator->to(at::kDouble);
  }
};
struct AutomaticAsksForManual : Line {
  Loss training_step(const Batch& batch, StepContext& context) override {
    context.manual();
    return Line::training_step(batch, context);
  }
};

TEST_F(ManualTest, SettingsWithoutEffectAreNamed) {
  recipe_.origins.places = {{"optimizer.lr", "r.yaml:3:7"}, {"training.epochs", "r.yaml:5:9"}};
  ::testing::internal::CaptureStderr();
  fit<GanTask>();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              has_all("optimizer.lr (r.yaml:3:7) has no effect", "optimizers and schedules of this run"));
}

TEST_F(ManualTest, MistakesAreNamed) {
  const auto expect = [&](auto task, const auto&... named) {
    EXPECT_THAT(message_of([&] { fit<decltype(task)>(); }), has_all(named...));
  };
  expect(StepsNothing(), "training_step stepped no optimizer");
  expect(StepsWithoutGradients(), "step(\"generator\"): there are no gradients");
  expect(StepsUnknown(), "step(\"genrator\"): ", "no optimizer of this name", "did you mean \"generator\"?");
  expect(StepsAfterTrainingStep(), "backward(): training_step has ended");
  expect(SharesAGraph(), "step 1: step(\"generator\"): ", "earlier backward", "this loss's graph");
  expect(WithoutPlan(), "automatic_optimization() is false", "OptimizerPlan::several");
  expect(MissesParameters(), "no optimizer", "discriminator.weight", "\"generator.*\" of \"generator\"",
         "\"discriminator.*\"");
  expect(Diverges(), "step 1: step(\"generator\"): the loss is not finite");
  expect(CallsBackwardOfATensor(), "training_step of step 1: ", "generator.bias",
         "outside of stretto's backward");
  expect(DropsGradients<false>(),
         "step 1: step(\"generator\"): ", "generator.weight was replaced or dropped");
  expect(DropsGradients<true>(), "step 1: training_step: ", "generator.weight was replaced");
  expect(ReplacesAParameter(), "step 1: backward(): ", "discriminator.weight was replaced after setup");
  expect(AssignsAGenerator(), "not a parameter of the model", "not on generator.weight");
  expect(AutomaticAsksForManual(), "there are no optimizers to step here");
}

// The gradients would be those of no function: with the generator's output before the step, and the
// discriminator's weights after it.
TEST_F(ManualTest, ALossFromBeforeAStepIsRefusedUnderEveryStrategy) {
  for (const char* strategy : {"ddp", "zero1", "zero2", "fsdp"}) {
    recipe_.training.strategy = strategy;
    EXPECT_THAT(message_of<ConfigError>([&] { fit<StepsBetweenForwardAndBackward>(2); }),
                has_all("step 1: step(\"generator\"): ", "a tensor", "has changed"))
        << strategy;
  }
}

// Both optimizers have gradients of the same size, so that no collective notices.
struct StepsInOrderOfRanks : GanTask {
  Loss training_step(const Batch& batch, StepContext& context) override {
    const auto loss = [&] {
      const Tensor fake = net->generator->forward(noise_of(batch));
      return Loss(net->discriminator->forward(fake).square().sum(), batch.count);
    };
    const bool first = context.data_parallel().rank() == 0;
    context.manual().step(first ? "generator" : "discriminator", loss());
    context.manual().step(first ? "discriminator" : "generator", loss());
    return {at::zeros({}), batch.count};
  }
};

TEST_F(ManualTest, RanksThatStepDifferentOptimizersAreRefused) {
  EXPECT_THAT(message_of<ConfigError>([&] { fit<StepsInOrderOfRanks>(2); }),
              has_all("step 1: step(\"generator\") on rank 0", "step(\"discriminator\") on rank 1"));
}

TEST_F(ManualTest, TheRankWhoseLossIsNotFiniteIsNamed) {
  EXPECT_THAT(message_of([&] { fit<DivergesOnOneRank>(3); }),
              has_all("step 1: step(\"generator\"): the loss is not finite", "on rank 1, first"));
}

TEST_F(ManualTest, SettingsThatDoNotApplyAreRefusedAtTheStart) {
  recipe_.training.on_nonfinite = "skip";
  EXPECT_THAT(message_of([&] { fit<GanTask>(); }),
              has_all("training.on_nonfinite: skip ", "manual optimization"));
}

}  // namespace
}  // namespace stretto::trainer
