#pragma once

#include "stretto/nn/activation_checkpoint.h"
#include "stretto/nn/layers.h"

namespace stretto::parallel {

// A block used twice (tied weights), one used once, one that is never used, one frozen.
struct TiedNet : torch::nn::Module {
  TiedNet() {
    const auto linear = [&](const char* name) {
      auto layer = register_module(name, std::make_shared<nn::Linear>(5, 5));
      at::Generator random = at::detail::createCPUGenerator(std::hash<std::string>()(name));
      at::NoGradGuard no_grad;
      layer->weight.normal_(0, 0.5, random);
      layer->bias.normal_(0, 0.5, random);
      return layer;
    };
    tied = linear("tied");
    once = linear("once");
    unused = linear("unused");
    frozen = linear("frozen");
    frozen->weight.requires_grad_(false);
    frozen->bias.requires_grad_(false);
  }
  Tensor forward(const Tensor& x, bool checkpointed = false) {
    const auto block = [this](const nn::Carry& carry) { return at::tanh(tied->forward(carry[0])); };
    const std::vector<Tensor> parameters = {tied->weight, tied->bias};
    Tensor y = checkpointed ? nn::activation_checkpoint(block, {x}, parameters) : block({x});
    y = frozen->forward(once->forward(y));
    return (checkpointed ? nn::activation_checkpoint(block, {y}, parameters) : block({y})).square().sum();
  }
  std::shared_ptr<nn::Linear> tied, once, unused, frozen;
};

}  // namespace stretto::parallel
