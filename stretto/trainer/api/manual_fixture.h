#pragma once

#include <torch/nn/modules/linear.h>

#include "stretto/optim/optimizers.h"
#include "stretto/optim_config/schedules.h"
#include "stretto/tensor/safetensors.h"
#include "stretto/trainer/api/manual_optimization.h"
#include "stretto/trainer/run/loop_fixture.h"

// The fixture of tests of manual optimization: runs of a small GAN.
namespace stretto::trainer {

struct Gan : torch::nn::Module {
  Gan() {
    generator = register_module("generator", std::make_shared<torch::nn::LinearImpl>(2, 4));
    discriminator = register_module("discriminator", std::make_shared<torch::nn::LinearImpl>(4, 1));
    at::NoGradGuard no_grad;
    double value = -0.4;
    for (Tensor& parameter : parameters()) {
      parameter.copy_(at::linspace(value, value + 0.3, parameter.numel()).view_as(parameter));
      value += 0.2;
    }
  }
  std::shared_ptr<torch::nn::LinearImpl> generator, discriminator;
};

// The noise of a sample is a function of its index, so that it does not depend on the number of ranks.
inline Tensor noise_of(const Batch& batch) {
  const Tensor index = at::tensor(batch.sample_ids, at::kDouble);
  return at::stack({at::sin(index * 3), at::cos(index * 5)}, 1);
}

struct GanTask : Module {
  GanTask() : net(model(std::make_shared<Gan>())) {}
  bool automatic_optimization() const override { return false; }
  Loss training_step(const Batch& batch, StepContext& context) override {
    ManualOptimization& manual = context.manual();
    const Tensor real = batch.at("x"), fake = net->generator->forward(noise_of(batch));
    const auto loss = [&](const Tensor& logits, double target) {
      const Tensor sum = at::binary_cross_entropy_with_logits(logits, at::full_like(logits, target), {}, {},
                                                              at::Reduction::Sum);
      return Loss(sum, batch.count);
    };
    const Loss on_real = loss(net->discriminator->forward(real), 1);
    manual.backward(on_real);
    manual.backward({loss(net->discriminator->forward(fake.detach()), 0).sum, 0});
    manual.step("discriminator");
    const Loss generated = loss(net->discriminator->forward(fake), 1);
    manual.backward(generated);
    manual.step("generator");
    context.log("loss_generator", generated.sum.item<double>() / generated.count);
    context.log("lr_generator", manual.lr("generator"));
    return on_real;
  }
  Predictions validation_step(const Batch& batch, StepContext& context) override {
    const Tensor logits = net->discriminator->forward(batch.at("x"));
    context.log("loss", at::softplus(-logits).mean().item<double>());
    return {};
  }
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override {
    plan.several.push_back({"generator", "generator.*", optim::adamw({.lr = 0.05, .weight_decay = 0.1}),
                            optim::step_lr({.step_size = 5, .gamma = 0.5})});
    plan.several.push_back({"discriminator", "discriminator.*", optim::sgd({.lr = 0.1, .momentum = 0.9})});
    return plan;
  }
  std::shared_ptr<Gan> net;
  int64_t samples = 0;  // of the fixture
};

inline constexpr std::pair<const char*, const char*> strategies_and_backends[] = {
    {"ddp", "shm"},   {"ddp", "tcp"},   {"zero1", "shm"}, {"zero1", "tcp"},
    {"zero2", "shm"}, {"zero2", "tcp"}, {"fsdp", "shm"},  {"fsdp", "tcp"}};

class ManualTest : public LoopTest {
 protected:
  ManualTest() {
    recipe_.training.epochs = 2;
    recipe_.track.log_every = 1;
    recipe_.evaluate.every = "never";  // the model is then that of the last step
  }
  template <class Task = GanTask>
  NamedTensors train(int ranks, const std::string& name) {
    recipe_.output = folder_.path() / name;
    fit<Task>(ranks);
    return SafetensorsFile(recipe_.output / "model/model.safetensors").load_all();
  }
};

}  // namespace stretto::trainer
