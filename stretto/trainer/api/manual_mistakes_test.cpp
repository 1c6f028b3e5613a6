#include <cmath>

#include "stretto/trainer/api/manual_fixture.h"

namespace stretto::trainer {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

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
              HasSubstr("optimizer.lr (r.yaml:3:7) has no effect: the optimizers and schedules of this run"));
}

TEST_F(ManualTest, MistakesAreNamed) {
  const auto expect = [&](auto task, const char* message) {
    EXPECT_THAT([&] { fit<decltype(task)>(); }, ThrowsMessage<Error>(HasSubstr(message)));
  };
  expect(StepsNothing(), "training_step stepped no optimizer");
  expect(StepsWithoutGradients(), "step(\"generator\"): there are no gradients");
  expect(StepsUnknown(), "there is no optimizer \"genrator\"; did you mean \"generator\"?");
  expect(WithoutPlan(),
         "automatic_optimization() is false, so OptimizerPlan::several must name the optimizers");
  expect(MissesParameters(), "no optimizer has the parameter discriminator.weight");
  expect(Diverges(), "step 1 of optimizer \"generator\": the loss is not finite");
  expect(AutomaticAsksForManual(), "there are no optimizers to step here");
}

TEST_F(ManualTest, SettingsThatDoNotApplyAreRefusedAtTheStart) {
  const auto expect = [&](const char* message) {
    EXPECT_THAT([&] { fit<GanTask>(); }, ThrowsMessage<Error>(HasSubstr(message)));
  };
  recipe_.training.on_nonfinite = "skip";
  expect("training.on_nonfinite: skip cannot be combined with manual optimization");
}

}  // namespace
}  // namespace stretto::trainer
