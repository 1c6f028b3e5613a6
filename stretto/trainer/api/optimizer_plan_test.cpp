#include "stretto/trainer/api/optimizer_plan.h"

#include <numeric>

#include <gtest/gtest.h>

#include "stretto/optim/optimizers.h"
#include "stretto/tensor/safetensors.h"
#include "stretto/trainer/api/module_fixture.h"
#include "stretto/trainer/records/logged_values.h"

namespace stretto::trainer {
namespace {

struct Planned : Regression {
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override {
    plan.optimizer = optim::sgd({.lr = 0.1, .weight_decay = 0.5});
    plan.schedule = optim::constant();
    plan.groups = {{.pattern = "first.weight", .frozen = true},
                   {.pattern = "*.bias", .lr_factor = 0},
                   {.pattern = "second.*", .lr_factor = 0.5, .weight_decay = false}};
    return plan;
  }
};

// Compares with one step for each group, computed in the test.
TEST_F(ModuleTest, ParameterGroupsHaveTheirOwnSettings) {
  recipe_.training.max_steps = 1;
  recipe_.training.global_batch_size = 40;
  recipe_.training.max_grad_norm = 0;
  fit<Planned>(2);
  const NamedTensors weights = SafetensorsFile(recipe_.output / "model/model.safetensors").load_all();
  Regression by_hand;
  by_hand.root().to(at::kDouble);
  LoggedWindows logged;
  comm::run_rank_threads(1, [&](Group& group) {
    const Mesh mesh(group, {});
    StepContext context(mesh, logged, true);
    std::vector<int64_t> all(40);
    std::iota(all.begin(), all.end(), int64_t{0});
    const Loss loss = by_hand.training_step(make_batch(by_hand, Plane(40), all), context);
    (loss.sum / loss.count).backward();
  });
  const Tensor second = by_hand.root().named_parameters()["second.weight"];
  EXPECT_TRUE(at::allclose(weights.at("second.weight"), second.detach() - 0.05 * second.grad(), 0, 1e-12));
  EXPECT_TRUE(at::equal(weights.at("first.weight"), at::full({1, 2}, 0.25, at::kDouble)));
  EXPECT_TRUE(at::equal(weights.at("second.bias"), at::full({1}, 0.25, at::kDouble)));
}

}  // namespace
}  // namespace stretto::trainer
