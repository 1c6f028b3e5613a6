#include "tests/messages/mistakes.h"

#include "stretto/comm/rank_threads.h"
#include "stretto/nn/layers.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim_config/schedules.h"
#include "stretto/trainer/api/manual_optimization.h"
#include "stretto/trainer/api/trainer.h"

// Mistakes in a Module that steps its optimizers itself.
namespace stretto {
namespace {

class ManualPoints : public data::SampleDataset {
 public:
  ManualPoints() : SampleDataset(4) {}
  data::Sample sample(int64_t index) const override {
    return {{"x", at::full({2}, static_cast<double>(index))}};
  }
};

struct TwoLayers : torch::nn::Module {
  TwoLayers() {
    a = register_module("a", std::make_shared<nn::Linear>(2, 2));
    b = register_module("b", std::make_shared<nn::Linear>(2, 1));
    for (const Tensor& parameter : parameters()) parameter.detach().fill_(0.5);
  }
  std::shared_ptr<nn::Linear> a, b;
};

// A module whose step and plan are functions.
struct Manual : Module {
  using Step = std::function<void(Manual& module, const Batch& batch, ManualOptimization& manual)>;
  using Plan = std::function<void(OptimizerPlan&)>;
  Manual() : net(model(std::make_shared<TwoLayers>())) {}
  bool automatic_optimization() const override { return false; }
  Loss loss(const Batch& batch) const {
    return {net->b->forward(net->a->forward(batch.at("x"))).square().sum(), static_cast<double>(batch.count)};
  }
  Loss training_step(const Batch& batch, StepContext& context) override {
    step(*this, batch, context.manual());
    return returned ? *returned : Loss(at::zeros({}), static_cast<double>(batch.count));
  }
  Predictions validation_step(const Batch& batch, StepContext& context) override {
    if (validate) validate(batch, context);
    return {};
  }
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override {
    change_plan(plan);
    return plan;
  }
  static void two(OptimizerPlan& plan) {
    plan.several.push_back({"first", "a.*", optim::sgd({.lr = 0.1})});
    plan.several.push_back({"second", "b.*", optim::sgd({.lr = 0.1})});
  }
  std::shared_ptr<TwoLayers> net;
  int rank = 0;
  Step step = [](Manual& module, const Batch& batch, ManualOptimization& manual) {
    manual.step("first", module.loss(batch));
    manual.step("second", module.loss(batch));
  };
  Plan change_plan = two;
  std::optional<Loss> returned;
  std::function<void(const Batch&, StepContext&)> validate;
};

void fit_by_hand(const std::function<void(Manual&)>& prepare, const std::function<void(Recipe&)>& change,
                 int ranks = 1) {
  Recipe recipe;
  recipe.output = "run";
  recipe.training.epochs = 1;
  recipe.track.progress = "off";
  if (change) change(recipe);
  comm::run_rank_threads(ranks, [&](Group& group) {
    Manual module;
    module.rank = group.rank();
    prepare(module);
    const Mesh mesh = make_mesh(recipe, group);
    const ManualPoints train, validation;
    Trainer(recipe, mesh, at::kCPU).fit(module, train, &validation);
  });
}

}  // namespace

void add_manual(Mistakes& all) {
  const auto add = [&](const char* name, const std::function<void(Manual&)>& prepare,
                       const std::function<void(Recipe&)>& change = {}) {
    all.push_back({std::string("manual: ") + name, [=] { fit_by_hand(prepare, change); }});
  };
  const auto add_step = [&](const char* name, const Manual::Step& step,
                            const std::function<void(Recipe&)>& change = {}) {
    add(
        name, [=](Manual& module) { module.step = step; }, change);
  };
  const auto add_ranks = [&](const char* name, const Manual::Step& step) {
    const auto prepare = [=](Manual& module) { module.step = step; };
    all.push_back({std::string("manual: ") + name, [=] { fit_by_hand(prepare, {}, /*ranks=*/2); }});
  };
  const auto add_plan = [&](const char* name, const Manual::Plan& plan) {
    add(name, [=](Manual& module) { module.change_plan = plan; });
  };
  const auto add_recipe = [&](const char* name, const std::function<void(Recipe&)>& change) {
    add(
        name, [](Manual&) {}, change);
  };
  const auto part = [](const char* name, const char* pattern) {
    return NamedOptimizer{name, pattern, optim::sgd({.lr = 0.1})};
  };

  add_step("a misspelt optimizer", [](Manual& module, const Batch& batch, ManualOptimization& manual) {
    manual.step("frist", module.loss(batch));
  });
  add_step("lr() of an optimizer that is not there",
           [](Manual&, const Batch&, ManualOptimization& manual) { manual.lr("third"); });
  add_step("a step without backward",
           [](Manual&, const Batch&, ManualOptimization& manual) { manual.step("first"); });
  add_step("two steps after one backward",
           [](Manual& module, const Batch& batch, ManualOptimization& manual) {
             manual.backward(module.loss(batch));
             manual.step("first");
             manual.step("second");
           });
  add_step("no step", [](Manual&, const Batch&, ManualOptimization&) {});
  add_step("backward after the last step",
           [](Manual& module, const Batch& batch, ManualOptimization& manual) {
             manual.step("first", module.loss(batch));
             manual.backward(module.loss(batch));
           });
  add_step("a loss that is detached", [](Manual& module, const Batch& batch, ManualOptimization& manual) {
    manual.backward({module.loss(batch).sum.detach(), 1});
  });
  add_step("a loss per sample", [](Manual& module, const Batch& batch, ManualOptimization& manual) {
    manual.step("first", {module.net->a->forward(batch.at("x")), 1});
  });
  add_step("no loss", [](Manual&, const Batch&, ManualOptimization& manual) { manual.backward({}); });
  add_step("a negative count", [](Manual& module, const Batch& batch, ManualOptimization& manual) {
    manual.backward({module.loss(batch).sum, -1});
  });
  add_step("losses that count nothing", [](Manual& module, const Batch& batch, ManualOptimization& manual) {
    manual.step("first", {module.loss(batch).sum, 0});
  });
  add_step("a loss that is not finite", [](Manual& module, const Batch& batch, ManualOptimization& manual) {
    manual.step("first", {module.loss(batch).sum * NAN, 1});
  });
  add_step("a gradient that is not finite",
           [](Manual& module, const Batch& batch, ManualOptimization& manual) {
             manual.step("second", {(module.net->b->forward(batch.at("x") * 0) - 0.5).sqrt().sum(), 1});
           });
  add_step("backward of a tensor", [](Manual& module, const Batch& batch, ManualOptimization&) {
    module.loss(batch).sum.backward();
  });
  add_step("a loss whose graph is gone", [](Manual& module, const Batch& batch, ManualOptimization& manual) {
    const Loss loss = module.loss(batch);
    manual.step("first", loss);
    manual.step("second", loss);
  });
  add_step("a loss from before a step", [](Manual& module, const Batch& batch, ManualOptimization& manual) {
    const Loss loss = module.loss(batch);
    manual.step("second", module.loss(batch));
    manual.step("first", loss);
  });
  add_step("zero_grad()", [](Manual& module, const Batch& batch, ManualOptimization& manual) {
    module.net->zero_grad();
    manual.step("first", module.loss(batch));
  });
  add_step("a parameter that is replaced",
           [](Manual& module, const Batch& batch, ManualOptimization& manual) {
             module.net->a->named_parameters()["weight"].set_data(at::zeros({2, 2}));
             manual.step("first", module.loss(batch));
           });
  add_step(
      "a step in the first micro-batch only",
      [](Manual& module, const Batch& batch, ManualOptimization& manual) {
        if (!manual.updates()) manual.step("first", module.loss(batch));
        manual.step("second", module.loss(batch));
      },
      [](Recipe& recipe) {
        recipe.training.global_batch_size = 4;
        recipe.training.grad_accumulation_steps = 2;
      });
  add_step("zero_grad() after the last step",
           [](Manual& module, const Batch& batch, ManualOptimization& manual) {
             manual.step("first", module.loss(batch));
             module.net->zero_grad();
           });
  add_ranks("ranks that step different optimizers",
            [](Manual& module, const Batch& batch, ManualOptimization& manual) {
              manual.step(module.rank == 0 ? "first" : "second", module.loss(batch));
            });
  add_ranks("one backward more on a rank",
            [](Manual& module, const Batch& batch, ManualOptimization& manual) {
              if (module.rank == 1) manual.backward(module.loss(batch));
              manual.step("first", module.loss(batch));
            });
  add_ranks("a gradient that is not finite on a rank", [](Manual& module, const Batch& batch,
                                                          ManualOptimization& manual) {
    const Tensor& weight = module.net->b->named_parameters()["weight"];
    const Tensor zero = (weight - weight.detach()).abs();
    manual.step("second", {(module.rank == 1 ? zero.sqrt() : zero).sum(), static_cast<double>(batch.count)});
  });
  add("manual() in validation_step",
      [](Manual& module) { module.validate = [](const Batch&, StepContext& context) { context.manual(); }; });
  add("a returned loss that is not one element",
      [](Manual& module) { module.returned = Loss(at::zeros({3}), 1); });
  add("a returned loss with a negative count",
      [](Manual& module) { module.returned = Loss(at::zeros({}), -1); });

  add_plan("no optimizers", [](OptimizerPlan&) {});
  add_plan("a parameter of no optimizer",
           [=](OptimizerPlan& plan) { plan.several.push_back(part("first", "a.*")); });
  add_plan("an optimizer without parameters", [=](OptimizerPlan& plan) {
    Manual::two(plan);
    plan.several.push_back(part("third", "c.*"));
  });
  add_plan("an optimizer behind one that has all", [=](OptimizerPlan& plan) {
    plan.several.push_back(part("first", "*"));
    plan.several.push_back(part("second", "b.*"));
  });
  add_plan("two optimizers of one name", [=](OptimizerPlan& plan) {
    plan.several.push_back(part("first", "a.*"));
    plan.several.push_back(part("first", "b.*"));
  });
  add_plan("an optimizer without a name",
           [=](OptimizerPlan& plan) { plan.several.push_back(part("", "*")); });
  add_plan("an optimizer that is null", [](OptimizerPlan& plan) {
    plan.several.push_back({"first", "*", nullptr});
  });
  add_plan("a schedule that is null", [](OptimizerPlan& plan) {
    plan.several.push_back({"first", "*", optim::sgd({.lr = 0.1}), nullptr});
  });
  add_plan("LBFGS", [](OptimizerPlan& plan) { plan.several.push_back({"first", "*", optim::lbfgs({})}); });
  add_recipe("skipped steps", [](Recipe& recipe) { recipe.training.on_nonfinite = OnNonfinite::skip; });
  add_recipe("rollback after a spike", [](Recipe& recipe) {
    recipe.training.on_spike = OnSpike::rollback;
    recipe.checkpoint.every = 1;
  });
}

}  // namespace stretto
