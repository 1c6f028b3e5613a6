#include "tests/messages/mistakes.h"

#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include "stretto/lite/lite.h"
#include "stretto/nn/layers.h"
#include "stretto/optim/optimizers.h"
#include "stretto/settings/scoped_variable_support.h"

// Mistakes in the options and in the calls of Lite, on one rank.
namespace stretto {

void add_lite(Mistakes& all) {
  const auto add_options = [&](const char* name, const LiteOptions& options) {
    all.push_back({std::string("lite: ") + name, [=] { const Lite lite(options); }});
  };
  add_options("a negative number of hosts", {.num_nodes = -1});
  add_options("too many ranks", {.devices = 5000});
  add_options("an unknown strategy", {.devices = 1, .strategy = "zero9"});
  all.push_back({"lite: another strategy than the launcher's", [] {
                   const settings::ScopedVariable launched("STRETTO_STRATEGY", "zero2-bf16");
                   const Lite lite({.devices = 1, .strategy = "ddp"});
                 }});
  add_options("dp_shard without hsdp", {.devices = 1, .strategy = "fsdp", .dp_shard = 2});
  add_options("an unknown precision", {.devices = 1, .precision = "bf61"});
  add_options("an unknown matmul library", {.devices = 1, .products = "blas"});
  add_options("an unknown accelerator", {.devices = 1, .accelerator = "tpu"});
  add_options("a bucket of nothing", {.devices = 1, .bucket_mb = 0});
  add_options("rows of whole layers", {.devices = 1, .sequence_parallel = true});

  const auto add = [&](const char* name, const std::function<void(Lite&, torch::nn::Linear&)>& use) {
    all.push_back({std::string("lite: ") + name, [=] {
                     Lite lite({.devices = 1, .accelerator = "cpu"});
                     torch::nn::Linear layer(2, 1);
                     use(lite, layer);
                   }});
  };
  add("a second Lite", [](Lite&, torch::nn::Linear&) { const Lite second({.devices = 1}); });
  add("a model that is null", [](Lite& lite, torch::nn::Linear&) {
    lite.setup(std::shared_ptr<nn::Linear>(), optim::sgd({.lr = 1}));
  });
  add("a model that is set up twice", [](Lite& lite, torch::nn::Linear& layer) {
    lite.setup(layer, optim::sgd({.lr = 1}));
    lite.setup(layer, optim::sgd({.lr = 1}));
  });
  add("an optimizer of other parameters", [](Lite& lite, torch::nn::Linear& layer) {
    torch::nn::Linear other(3, 1);
    lite.setup(layer, torch::optim::SGD(other->parameters(), 1.0));
  });
  add("a model of another precision", [](Lite& lite, torch::nn::Linear& layer) {
    layer->to(torch::kDouble);
    lite.setup(layer, optim::sgd({.lr = 1}));
  });
  add("backward before setup", [](Lite& lite, torch::nn::Linear& layer) {
    lite.backward(layer->forward(at::zeros({1, 2})).sum());
  });
  add("a loss per sample", [](Lite& lite, torch::nn::Linear& layer) {
    lite.setup(layer, optim::sgd({.lr = 1}));
    lite.backward(layer->forward(at::zeros({3, 2})));
  });
  add("a loss of no parameter", [](Lite& lite, torch::nn::Linear& layer) {
    lite.setup(layer, optim::sgd({.lr = 1}));
    lite.backward(at::zeros({}).requires_grad_().exp());
  });
  add("a step without gradients", [](Lite& lite, torch::nn::Linear& layer) {
    auto [model, optimizer] = lite.setup(layer, optim::sgd({.lr = 1}));
    optimizer.step();
  });
  add("param_groups of stretto's optimizer", [](Lite& lite, torch::nn::Linear& layer) {
    auto [model, optimizer] = lite.setup(layer, optim::sgd({.lr = 1}));
    optimizer.param_groups();
  });
  add("clip_gradients of a model that was not set up",
      [](Lite& lite, torch::nn::Linear& layer) { lite.clip_gradients(layer, {.max_norm = 1}); });
  add("a broadcast from a rank that does not exist",
      [](Lite& lite, torch::nn::Linear&) { lite.broadcast(at::zeros({1}), 3); });
}

}  // namespace stretto
