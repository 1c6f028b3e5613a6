#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/nn/layers.h"
#include "stretto/nn/sharded.h"
#include "stretto/optim/registry.h"
#include "stretto/parallel/engine.h"

// Every optimizer under every strategy takes the steps that it takes on one rank.
namespace stretto {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct TwoBlocks : torch::nn::Module {
  TwoBlocks() {
    at::NoGradGuard no_grad;
    at::Generator random = at::detail::createCPUGenerator(5);
    for (Tensor& parameter : parameters()) parameter.normal_(0, 0.5, random);
  }
  Tensor forward(const Tensor& x) {
    return last->forward(at::tanh(block->forward(at::tanh(first->forward(x))))).square().sum();
  }
  std::shared_ptr<nn::Linear> first = register_module("first", std::make_shared<nn::Linear>(6, 9));
  std::shared_ptr<nn::Sharded<nn::Linear>> block =
      register_module("block", nn::make_sharded<nn::Linear>(9, 9));
  std::shared_ptr<nn::Linear> last = register_module("last", std::make_shared<nn::Linear>(9, 4));
};

NamedTensors twenty_steps(const DataParallel& ranks, const std::string& strategy, const std::string& type) {
  TwoBlocks net;
  net.to(at::kDouble);
  declare::Choice choice(optim::optimizer_kinds(), type, "");
  // Without a search it would leave the region where differences in rounding stay small.
  if (type == "LBFGS") choice.as<optim::LbfgsOptions>() = {.max_iter = 5, .line_search_fn = "strong_wolfe"};
  auto optimizer = optim::make_optimizer(choice);
  optim::StepRates rates = optimizer->base_rates();
  Engine engine(net, ranks, {.strategy = strategy, .precision = Precision::fp64, .bucket_bytes = 200},
                std::move(optimizer));
  for (int64_t step = 0; step < 20; ++step) {
    const Tensor x = at::sin(at::arange(72, at::kDouble).view({12, 6}) + step);
    const auto parts = x.tensor_split(ranks.all.size());
    const auto evaluate = [&]() -> optim::Evaluation {
      const Tensor loss = net.forward(parts[static_cast<size_t>(ranks.all.rank())]);
      engine.backward(loss, /*last_micro_batch=*/true);
      std::array<double, 1> total = {loss.item<double>()};
      engine.finish_reduction(total);
      const bool clips = !engine.optimizer()->reevaluates();
      return {total[0], clips ? clip_scale(engine.gradient_norm(), 1) : 1};
    };
    const optim::Evaluation first = evaluate();
    engine.optimizer()->reevaluates() ? engine.step(rates, first, evaluate)
                                      : engine.step(rates, first.grad_scale);
  }
  NamedTensors weights;
  for (const auto& [name, tensor] : engine.weights()) weights[name] = tensor.clone();
  return weights;
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const declare::Kind& kind : optim::optimizer_kinds()) names.push_back(kind.type);
  return names;
}

class OptimizersAndStrategies : public ::testing::TestWithParam<std::string> {};

TEST_P(OptimizersAndStrategies, TakeTheStepsOfOneRank) {
  NamedTensors before, alone;
  {
    const TwoBlocks net;
    for (const auto& item : net.named_parameters()) before[item.key()] = item.value().detach().clone();
  }
  run_rank_threads(1, [&](Group& group) { alone = twenty_steps(group, "ddp", GetParam()); });
  for (const auto& [name, tensor] : alone)
    EXPECT_FALSE(at::allclose(tensor, before.at(name).to(at::kDouble), 1e-6, 1e-9))
        << name << " did not move";
  for (const int ranks : {2, 3, 4}) {
    for (const Sharding& row : shardings()) {
      if (row.hybrid && ranks != 4) continue;
      run_rank_threads(ranks, [&](Group& group) {
        const Mesh mesh(group, data_parallel_shape(group, row, row.hybrid ? 2 : 0));
        if (GetParam() == "LBFGS" && row.optimizer == Held::sharded) {
          EXPECT_THAT([&] { twenty_steps(DataParallel(mesh, row), row.name, GetParam()); },
                      ThrowsMessage<ConfigError>(
                          HasSubstr("but LBFGS needs all of them on each; choose strategy ddp")));
          return;
        }
        const NamedTensors together = twenty_steps(DataParallel(mesh, row), row.name, GetParam());
        for (const auto& [name, expected] : alone) {
          EXPECT_TRUE(at::allclose(together.at(name), expected, 1e-9, 1e-10))
              << row.name << " on " << ranks << " ranks: " << name;
        }
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, OptimizersAndStrategies, ::testing::ValuesIn(optimizer_names()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace stretto
