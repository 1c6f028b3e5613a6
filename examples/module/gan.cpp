// A GAN: a generator and a discriminator with separate optimizers, which the Module steps itself.
//
//   stretto launch -N 2 examples/module_gan examples/module/gan.yaml
//
// The generator learns to put points on a circle. The program also shows metric objects, values logged per
// epoch, a DataModule, and test() and predict() after training.
#include <cmath>
#include <numbers>

#include <torch/nn/modules/linear.h>

#include "stretto/stretto.h"

namespace {

using stretto::Batch;
using stretto::Loss;
using stretto::StepContext;
using stretto::Tensor;

struct Settings {
  int64_t width = 32;
  void fields(stretto::settings::Fields& field) {
    field("width", width, "hidden units of both networks", stretto::settings::at_least(1));
  }
};

// Points on the unit circle, each with the noise from which the generator makes a point.
class Circle : public stretto::data::SampleDataset {
 public:
  Circle(int64_t first, int64_t count) : SampleDataset(count), first_(first) {}
  stretto::data::Sample sample(int64_t index) const override {
    const auto number = static_cast<double>(first_ + index);
    const double angle = 2 * std::numbers::pi * std::fmod(number * 0.6180339887, 1);
    const Tensor noise =
        at::sin(at::tensor({number * 12.9898, number * 78.233, number * 37.719}, at::kDouble));
    return {{"point", at::tensor({std::cos(angle), std::sin(angle)}, at::kFloat)},
            {"noise", noise.to(at::kFloat)}};
  }

 private:
  int64_t first_;
};

class CircleData : public stretto::DataModule {
 public:
  const stretto::data::Dataset* train() override { return &train_; }
  const stretto::data::Dataset* validation() override { return &validation_; }
  const stretto::data::Dataset* test() override { return &test_; }
  const stretto::data::Dataset* predict() override { return &test_; }

 private:
  Circle train_{0, 512}, validation_{512, 101}, test_{613, 55};
};

// Two linear layers.
struct Network : torch::nn::Module {
  Network(int64_t inputs, int64_t width, int64_t outputs) : hidden(inputs, width), output(width, outputs) {
    register_module("hidden", hidden);
    register_module("output", output);
  }
  Tensor forward(const Tensor& x) { return output(at::gelu(hidden(x.to(hidden->weight.scalar_type())))); }
  torch::nn::Linear hidden, output;
};

struct Gan : torch::nn::Module {
  explicit Gan(int64_t width)
      : generator(register_module("generator", std::make_shared<Network>(3, width, 2))),
        discriminator(register_module("discriminator", std::make_shared<Network>(2, width, 1))) {}
  std::shared_ptr<Network> generator, discriminator;
};

class GanTask : public stretto::Module {
 public:
  explicit GanTask(const Settings& settings)
      : net_(model(std::make_shared<Gan>(settings.width))),
        discriminator_accuracy_(metric(std::make_shared<stretto::ClassMetric>(
            2, std::vector<std::string>{"accuracy", "f1_macro"}, "discriminator_"))),
        distance_(metric(std::make_shared<stretto::MeanMetric>("distance"))) {}

  bool automatic_optimization() const override { return false; }

  stretto::OptimizerPlan configure_optimizers(stretto::OptimizerPlan plan) override {
    for (const char* name : {"generator", "discriminator"}) {
      plan.several.push_back({.name = name,
                              .pattern = name + std::string(".*"),
                              .optimizer = stretto::optim::adamw({.lr = 2e-3, .betas = {0.5, 0.99}})});
    }
    return plan;
  }

  Loss training_step(const Batch& batch, StepContext& context) override {
    stretto::ManualOptimization& manual = context.manual();
    const Tensor fake = net_->generator->forward(batch.at("noise"));

    Loss real_or_fake = judge(batch.at("point"), 1);
    real_or_fake.sum = real_or_fake.sum + judge(fake.detach(), 0).sum;
    manual.backward(real_or_fake);
    manual.step("discriminator");

    const Loss fooled = judge(fake, 1);
    manual.backward(fooled);
    manual.step("generator");

    context.log("generator_loss", fooled.sum.item<double>() / fooled.count,
                {.prog_bar = false, .on_step = false, .on_epoch = true});
    return real_or_fake;
  }

  stretto::Predictions validation_step(const Batch& batch, StepContext&) override {
    const Tensor fake = net_->generator->forward(batch.at("noise"));
    const Tensor both = at::cat({batch.at("point"), fake});
    const Tensor labels = at::cat({at::ones(batch.count, at::kLong), at::zeros(batch.count, at::kLong)});
    discriminator_accuracy_->update(net_->discriminator->forward(both).squeeze(1).gt(0).to(at::kLong),
                                    labels);
    distance_->update((fake.norm(2, 1) - 1).abs());
    return {};
  }

  stretto::Predictions predict_step(const Batch& batch, StepContext&) override {
    return net_->generator->forward(batch.at("noise")).to(at::kCPU, at::kDouble);
  }

 private:
  Loss judge(const Tensor& points, double target) const {
    const Tensor logits = net_->discriminator->forward(points).squeeze(1);
    return {at::binary_cross_entropy_with_logits(logits, at::full_like(logits, target), {}, {},
                                                 at::Reduction::Sum),
            logits.size(0)};
  }

  std::shared_ptr<Gan> net_;
  std::shared_ptr<stretto::ClassMetric> discriminator_accuracy_;  // on real and generated points
  std::shared_ptr<stretto::MeanMetric> distance_;                 // of generated points from the circle
};

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  return stretto::run_program(argc, argv, settings, [&](const stretto::Run& run) {
    torch::manual_seed(static_cast<uint64_t>(run.recipe.training.seed));  // for the initial weights
    CircleData data;
    GanTask task(settings);
    stretto::Trainer trainer(run.recipe, run.mesh, run.device);
    const stretto::FitResult result = trainer.fit(task, data);
    if (result.stopped) return result;
    const stretto::Metrics metrics = trainer.test(task, data);
    const Tensor points = trainer.predict(task, data).rows;  // [55, 2] on rank 0
    if (points.defined()) {
      stretto::log::info("test       distance {:.4f}; the first point is ({:.3f}, {:.3f})",
                         metrics.at("distance"), points[0][0].item<double>(), points[0][1].item<double>());
    }
    return result;
  });
}
