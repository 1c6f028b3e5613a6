#pragma once

#include <map>

#include <gtest/gtest.h>

#include "stretto/comm/rank_threads.h"
#include "stretto/nn/layers.h"
#include "stretto/optim/optimizers.h"
#include "stretto/parallel/engine.h"
#include "stretto/parallel/gradient_fixture.h"
#include "stretto/parallel/mesh_fixture.h"

// The fixture of tests of the engine: runs of a small network.
namespace stretto::parallel {

struct Mlp : torch::nn::Module {
  explicit Mlp(double seed = 1) {
    first = register_module("first", std::make_shared<nn::Linear>(6, 7));
    last = register_module("last", std::make_shared<nn::Linear>(7, 3));
    frozen = register_parameter("frozen", at::full({3}, seed), /*requires_grad=*/false);
    mean = register_buffer("mean", at::full({3}, seed));
    at::NoGradGuard no_grad;
    at::Generator random = at::detail::createCPUGenerator(static_cast<uint64_t>(seed));
    for (Tensor& parameter : parameters()) {
      if (parameter.requires_grad()) parameter.normal_(0, 0.5, random);
    }
  }
  Tensor forward(const Tensor& x) {
    return (last->forward(at::tanh(first->forward(x.to(first->weight.scalar_type())))) - frozen)
        .square()
        .sum();
  }
  std::shared_ptr<nn::Linear> first, last;
  Tensor frozen, mean;
};

inline Tensor mlp_inputs(int64_t step) { return at::sin(at::arange(36, at::kFloat).view({6, 6}) + step); }

// The live master weights that this rank holds of a parameter; for "", of the first parameter of which it
// holds any. Collective.
inline Tensor master_weights(Engine& engine, const std::string& parameter = "") {
  State state;
  engine.add_state(state);
  for (const Entry& entry : state.tensors) {
    if (!entry.pieces.empty() && (parameter.empty() || entry.name == "model." + parameter))
      return entry.pieces[0].data.view({-1});
  }
  return {};
}

// The result of a few steps, and the state by entry, restricted to the elements of which this rank is the
// first holder.
struct Trained {
  NamedTensors weights;
  std::map<std::string, int64_t> held;  // elements that this rank holds, by kind of entry
  int64_t optimizer_bytes = 0;
  std::vector<double> norms;  // of each step's gradient
};

inline Trained train(const Mesh& mesh, const EngineOptions& options, int steps) {
  Mlp net;
  Engine engine(net, mesh, options, optim::adamw({.lr = 0.05, .weight_decay = 0.1}));
  Trained result;
  for (int step = 0; step < steps; ++step) {
    const auto parts = mlp_inputs(step).tensor_split(mesh.size(Axes::data));
    const Tensor loss = net.forward(parts[static_cast<size_t>(mesh.position(Axes::data))]);
    engine.backward(loss / mesh.size(Axis::cp), Reduce::last);  // the ranks of cp have the same loss
    engine.finish();
    result.norms.push_back(engine.gradients().norm());
    engine.step({.rates = {.lr = 0.05}, .grad_scale = clip_scale(result.norms.back(), 1)});
    EXPECT_EQ(largest_gradient(net), 0);
    EXPECT_EQ(engine.gradients().held().abs().sum().item<float>(), 0);
  }
  engine.compare_replicas();
  for (const auto& [name, tensor] : engine.weights().all()) result.weights[name] = tensor.clone();
  State state;
  engine.add_state(state);
  for (const Entry& entry : state.tensors) {
    if (entry.holders.me > 0) continue;
    for (const Piece& piece : entry.pieces)
      result.held[entry.name.substr(0, entry.name.find('.', 10))] += piece.data.numel();
  }
  result.optimizer_bytes = engine.facts().memory.optimizer;
  return result;
}

inline Trained train(Group& group, const EngineOptions& options, int steps) {
  const Mesh mesh = mesh_of(group, options.strategy);
  return train(mesh, options, steps);
}

}  // namespace stretto::parallel
