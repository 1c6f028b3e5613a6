#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/optim/optimizers.h"
#include "stretto/trainer/api/module_fixture.h"

namespace stretto::trainer {
namespace {

using ::testing::HasSubstr;

template <int kind>
struct Wrong : Regression {
  Loss training_step(const Batch& batch, StepContext& context) override {
    Loss loss = Regression::training_step(batch, context);
    if (kind == 0) loss.sum = loss.sum.detach();
    if (kind == 1) loss.sum = loss.sum.expand({3});
    if (kind == 2) loss.sum = Tensor();
    if (kind == 3) loss.count = 0;
    if (kind == 4) loss.count = -1;
    if (kind == 5) context.log("loss", 1);
    if (kind == 6) context.log("x", 1, -1);
    return loss;
  }
};

TEST_F(ModuleTest, LossesThatDoNotRequireGradAreRefused) {
  const auto message = [&](auto module, const auto&... named) {
    EXPECT_THAT(message_of([&] { fit<decltype(module)>(2); }), has_all(named...));
  };
  message(Wrong<0>(), "training_step returned a loss that does not require grad");
  message(Wrong<1>(), "training_step returned [3] Double", "sum over the batch", "a single element");
  message(Wrong<2>(), "training_step returned no tensor as the loss");
  message(Wrong<3>(), "step 1: the losses of the global batch count 0 samples");
  message(Wrong<4>(), "training_step returned -1 as the loss's count");
  message(Wrong<5>(), "log(\"loss\"): the Trainer logs this name itself");
  message(Wrong<6>(), "the weight is -1");
}

template <bool own>
struct Throws : Regression {
  Loss training_step(const Batch& batch, StepContext& context) override {
    if (context.step == 2 && own) throw std::runtime_error("no such word");
    if (context.step == 2) at::zeros({2, 3}).mm(at::zeros({2, 3}));
    return Regression::training_step(batch, context);
  }
};

TEST_F(ModuleTest, ExceptionsOfAStepNameIt) {
  EXPECT_THAT(message_of([&] { fit<Throws<true>>(2); }), "training_step of step 3: no such word");
  EXPECT_THAT(message_of<c10::Error>([&] { fit<Throws<false>>(1); }),
              HasSubstr("(in training_step of step 3)"));
}

// The layer that was registered is not used, and the one that is used has weights that nothing initialized.
struct AssignsALayer : Module {
  struct Net : torch::nn::Module {
    Net() : head(register_module("head", std::make_shared<nn::Linear>(2, 1))) {}
    std::shared_ptr<nn::Linear> head;
  };
  AssignsALayer() : net(model(std::make_shared<Net>())) {
    net->head = std::make_shared<nn::Linear>(2, 1);
    net->head->to(at::kDouble);
    at::NoGradGuard no_grad;
    for (Tensor& parameter : net->head->parameters()) parameter.fill_(NAN);
  }
  Loss training_step(const Batch& batch, StepContext&) override {
    return loss_of_mean(at::mse_loss(net->head->forward(batch.at("x")).squeeze(1), batch.at("y")),
                        batch.count);
  }
  std::shared_ptr<Net> net;
};

// Leaves that end with the step are its own matter.
struct ReadsInputGradients : Regression {
  Loss training_step(const Batch& batch, StepContext&) override {
    const Tensor x = batch.at("x").clone().requires_grad_();
    return loss_of_mean(at::mse_loss(net->forward(x), batch.at("y")), batch.count);
  }
};

TEST_F(ModuleTest, LayersThatNothingTrainsAreRefused) {
  for (const char* strategy : {"ddp", "fsdp"}) {
    recipe_.training.strategy = strategy;
    EXPECT_THAT(message_of<ConfigError>([&] { fit<AssignsALayer>(2); }),
                has_all("a tensor, [1, 2] Double", "not a parameter of the model", "not on head.weight",
                        "register it"));
    EXPECT_NO_THROW(fit<ReadsInputGradients>(2));
    std::filesystem::remove_all(recipe_.output);
  }
}

struct Modelless : Module {
  Loss training_step(const Batch&, StepContext&) override { return {}; }
};
struct TwoModels : Regression {
  TwoModels() { model(std::make_shared<Net>()); }
};
struct RowsAlone : Regression {
  Predictions validation_step(const Batch& batch, StepContext&) override {
    return at::zeros({batch.count, 1}, at::kDouble);
  }
};
template <int kind>
struct WrongPlan : Regression {
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override {
    if (kind == 0) plan.groups = {{.pattern = "third.*", .frozen = true}};
    if (kind == 1) plan.groups = {{.pattern = "*"}, {.pattern = "first.*"}};
    if (kind == 2) plan.groups = {{.pattern = "*", .lr_factor = -1}};
    if (kind == 3) plan.groups = {{.pattern = "*", .frozen = true}};
    if (kind == 4) plan.optimizer = nullptr;
    return plan;
  }
};

TEST_F(ModuleTest, ModulesThatCannotBeTrainedAreRefused) {
  const auto message = [&](auto fitting, const auto&... named) {
    EXPECT_THAT(message_of<ConfigError>(fitting), has_all(named...));
  };
  message([&] { fit<Modelless>(1); }, "module has no model", "in the constructor");
  message([&] { fit<TwoModels>(1); }, "model() was called twice");
  message([&] { fit<WrongPlan<0>>(1); }, "no trainable parameter matches \"third.*\"");
  message([&] { fit<WrongPlan<0>>(1); }, "named first.weight, first.bias, second.weight, second.bias");
  message([&] { fit<WrongPlan<1>>(1); }, "\"first.*\"", "belong to an earlier group");
  message([&] { fit<WrongPlan<2>>(1); }, "the lr_factor of \"*\" is -1");
  message([&] { fit<WrongPlan<3>>(1); }, "all of them are frozen");
  message([&] { fit<WrongPlan<4>>(1); }, "a plan without an optimizer");
  recipe_.evaluate.every = "epoch";
  const Plane validation(7);
  message([&] { fit<RowsAlone>(1, 40, &validation); }, "override metrics()");
}

}  // namespace
}  // namespace stretto::trainer
