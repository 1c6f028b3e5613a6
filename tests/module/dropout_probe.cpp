// A Module with torch::nn::Dropout. Each rank appends the masks of its steps to MASKS.<rank>, a line per step:
//   dropout_probe OUTPUT MASKS [CHECKPOINT to resume]
#include <fstream>

#include <torch/nn/modules/dropout.h>

#include "stretto/base/log.h"
#include "stretto/comm/job.h"
#include "stretto/stretto.h"

namespace stretto {
namespace {

class Ones : public data::SampleDataset {
 public:
  Ones() : SampleDataset(40) {}
  data::Sample sample(int64_t) const override { return {{"x", at::ones({40})}}; }
};

struct Net : torch::nn::Module {
  Net() : dropout(register_module("dropout", torch::nn::Dropout(0.5))) {
    layer = register_module("layer", std::make_shared<nn::Linear>(40, 1));
    at::NoGradGuard no_grad;
    for (Tensor& parameter : parameters()) parameter.fill_(0.5);
  }
  torch::nn::Dropout dropout;
  std::shared_ptr<nn::Linear> layer;
};

struct Dropping : Module {
  explicit Dropping(const std::string& path) : net(model(std::make_shared<Net>())), masks(path) {}
  Loss training_step(const Batch& batch, StepContext& context) override {
    const Tensor x = net->dropout->forward(batch.at("x"));
    masks << context.step + 1 << ' ';
    for (const auto& element : std::span(x.const_data_ptr<float>(), 40)) masks << (element > 0);
    masks << "\n" << std::flush;
    return {net->layer->forward(x).square().sum(), static_cast<double>(batch.count)};
  }
  std::shared_ptr<Net> net;
  std::ofstream masks;
};

int train(int argc, char** arguments) {
  const Job job = join_job("cpu", "device");
  try {
    Recipe recipe;
    recipe.output = arguments[1];
    recipe.training.global_batch_size = 4;
    recipe.training.max_steps = 8;
    recipe.checkpoint.every = "4";
    if (argc > 3) recipe.resume = arguments[3];
    Dropping module(std::string(arguments[2]) + "." + std::to_string(job.group->rank()));
    Trainer(recipe, *job.group, job.device).fit(module, Ones(), nullptr);
    return 0;
  } catch (const Error& error) {
    log::error("{}", error.what());
    return error.exit_code();
  }
}

}  // namespace
}  // namespace stretto

int main(int argc, char** arguments) { return stretto::train(argc, arguments); }
