#pragma once

#include <cmath>

#include <gtest/gtest.h>

#include "stretto/base/temp_folder.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/nn/layers.h"
#include "stretto/optim_config/optimizers.h"
#include "stretto/trainer/api/trainer.h"
#include "stretto/trainer/records/records_fixture.h"

// The fixture of tests of the interface of modules: runs of a small regression, whose module has a training
// step only.
namespace stretto::trainer {

// Sample i has x = (sin i, cos i) and y = 2 sin i - cos i.
class Plane : public data::SampleDataset {
 public:
  using SampleDataset::SampleDataset;
  data::Sample sample(int64_t index) const override {
    const double s = std::sin(index), c = std::cos(index);
    return {{"x", at::tensor({s, c})}, {"y", at::scalar_tensor(2 * s - c, at::kDouble)}};
  }
};

struct Net : torch::nn::Module {
  Net() {
    for (const char* name : {"first", "second"}) register_module(name, std::make_shared<nn::Linear>(2, 1));
    at::NoGradGuard no_grad;
    for (Tensor& parameter : parameters()) parameter.fill_(0.25);
  }
  Tensor forward(const Tensor& x) const {
    Tensor sum = at::zeros({x.size(0)}, x.options());
    for (const auto& layer : children()) sum = sum + layer->as<nn::Linear>()->forward(x).squeeze(1);
    return sum;
  }
};

// The minimal module.
struct Regression : Module {
  Regression() : net(model(std::make_shared<Net>())) {}
  Loss training_step(const Batch& batch, StepContext&) override {
    return loss_of_mean(at::mse_loss(net->forward(batch.at("x")), batch.at("y")), batch.count);
  }
  std::shared_ptr<Net> net;
};

class ModuleTest : public ::testing::Test {
 protected:
  ModuleTest() {
    recipe_.training.max_steps = 12;
    recipe_.training.global_batch_size = 10;
    recipe_.training.precision = "fp64";
    recipe_.optimizer.as<optim::AdamwOptions>().lr = 0.05;
    recipe_.track.progress = "off";
    recipe_.track.log_every = 4;
    recipe_.evaluate.every = "never";
    recipe_.output = folder_.path() / "run";
  }
  template <class M>
  FitResult fit(int ranks, int64_t samples = 40, const Plane* validation = nullptr) const {
    const Plane train(samples);
    FitResult result;
    comm::run_rank_threads(ranks, [&](Group& group) {
      M module;
      const Mesh mesh = make_mesh(recipe_, group);
      const FitResult rank_result = Trainer(recipe_, mesh, at::kCPU).fit(module, train, validation);
      if (group.rank() == 0) result = rank_result;
    });
    return result;
  }
  std::vector<nlohmann::json> records() const { return records_of(recipe_.output); }

  TempFolder folder_;
  Recipe recipe_;
};

}  // namespace stretto::trainer
