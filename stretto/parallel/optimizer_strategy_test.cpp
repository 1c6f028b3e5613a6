#include <algorithm>
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/base/tensor_layout.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/nn/sharded.h"
#include "stretto/nn/tensor_parallel.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/parts.h"
#include "stretto/optim/registry.h"
#include "stretto/optim/tensor_parts.h"
#include "stretto/parallel/engine.h"
#include "stretto/parallel/mesh_fixture.h"
#include "stretto/parallel/parameters.h"

// Every optimizer takes the same steps under every strategy as on one rank, for parameters and for a table of
// which each step uses few rows, also where layers are divided among ranks (tensor parallelism).
namespace stretto::parallel {
namespace {

// Sizes that 2 ranks divide unevenly, and a map of which all ranks have copies, as of one head of keys.
struct GatedMaps : torch::nn::Module {
  explicit GatedMaps(const nn::TensorParallel& ranks) {
    up = register_module(
        "up", std::make_shared<nn::ColumnLinear>(9, 18, ranks, nn::ColumnOptions{.maps = 2, .together = 3}));
    key = register_module("key", std::make_shared<nn::ColumnLinear>(
                                     9, 3, ranks, nn::ColumnOptions{.together = 3, .copies = ranks.size()}));
    down = register_module("down", std::make_shared<nn::RowLinear>(9, 9, ranks, nn::LinearOptions{}, 3));
  }
  Tensor forward(const Tensor& x) const {
    const auto maps = up->forward(x).chunk(2, 1);
    const Tensor keys = key->forward(x).repeat({1, maps[0].size(1) / 3});
    return down->forward(at::tanh(maps[0]) * maps[1] * (1 + at::tanh(keys)));
  }
  std::shared_ptr<nn::ColumnLinear> up, key;
  std::shared_ptr<nn::RowLinear> down;
};

struct TwoBlocks : torch::nn::Module {
  explicit TwoBlocks(const nn::TensorParallel& ranks = {}) {
    words =
        register_module("words", std::make_shared<nn::VocabularyEmbedding>(19, 9, ranks, /*sparse=*/true));
    first = register_module("first", std::make_shared<nn::Linear>(6, 9));
    block = register_module("block", nn::make_sharded<GatedMaps>(ranks));
    last = register_module("last", std::make_shared<nn::Linear>(9, 4));
    at::NoGradGuard no_grad;
    at::Generator random = at::detail::createCPUGenerator(5);
    for (const nn::LayerParameter& parameter : nn::layer_parameters(*this)) {
      const TensorLayout layout = parameter.layout();
      Tensor(parameter.tensor)
          .copy_(optim::local_part(layout, at::empty(layout.global).normal_(0, 0.5, random)));
    }
  }
  Tensor forward(const Tensor& x, const Tensor& ids) {
    const Tensor input = at::tanh(first->forward(x) + words->forward(ids));
    return last->forward(at::tanh(block->forward(input))).square().sum();
  }
  std::shared_ptr<nn::VocabularyEmbedding> words;
  std::shared_ptr<nn::Linear> first, last;
  std::shared_ptr<nn::Sharded<GatedMaps>> block;
};

// A step uses two rows of every ten of the table, and none of the last ten.
constexpr int64_t used_rows = 10;

// RAdam has another rule from its sixth step on. LBFGS, which compares gradients of different batches,
// multiplies rounding differences from step to step.
int64_t steps_of(const std::string& type) { return type == "LBFGS" ? 4 : 8; }
bool are_close(const Tensor& a, const Tensor& b, const std::string& type) {
  const double tolerance = type == "LBFGS" ? 1e-7 : 1e-9;
  return at::allclose(a, b, tolerance, tolerance / 10);
}

NamedTensors weights_after_steps(const Mesh& mesh, EngineOptions options, const std::string& type) {
  TwoBlocks net({&mesh.group(Axis::tp)});
  net.to(at::kDouble);
  settings::Choice choice(optim::optimizer_kinds(), type, "");
  // Without a line search the weights would leave the region where rounding differences stay small.
  if (type == "LBFGS") choice.as<optim::LbfgsOptions>() = {.max_iter = 5, .line_search_fn = "strong_wolfe"};
  auto optimizer = optim::make_optimizer(choice);
  optim::StepRates rates = optimizer->base_rates();
  options.precision = Precision::fp64;
  options.bucket_bytes = 200;
  Engine engine(net, mesh, options, std::move(optimizer));
  for (int64_t step = 0; step < steps_of(type); ++step) {
    const Tensor x = at::sin(at::arange(72, at::kDouble).view({12, 6}) + step);
    const Tensor ids = (at::arange(12, at::kLong) * 5 + step * 3).remainder(used_rows);
    const auto parts = x.tensor_split(mesh.size(Axes::data)),
               ids_of = ids.tensor_split(mesh.size(Axes::data));
    const auto position = static_cast<size_t>(mesh.position(Axes::data));
    const auto evaluate = [&]() -> optim::Evaluation {
      const Tensor loss = net.forward(parts[position], ids_of[position]);
      engine.backward(loss, Reduce::last);
      std::array<double, 1> total = {loss.item<double>()};
      engine.finish(total);
      const bool clips = !engine.facts().reevaluates;
      return {total[0], clips ? clip_scale(engine.gradients().norm(), 1) : 1};
    };
    const optim::Evaluation first = evaluate();
    StepInput input = {.rates = rates, .grad_scale = first.grad_scale, .loss = first.loss};
    if (engine.facts().reevaluates) input.again = evaluate;
    engine.step(input);
  }
  NamedTensors weights;
  for (const auto& [name, tensor] : engine.weights().all()) weights[name] = tensor.clone();
  return weights;
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const settings::Kind& kind : optim::optimizer_kinds()) names.push_back(kind.type);
  return names;
}

class OptimizersAndStrategies : public ::testing::TestWithParam<std::string> {};

TEST_P(OptimizersAndStrategies, TakeTheStepsOfOneRank) {
  NamedTensors before, alone;
  {
    const TwoBlocks net;
    for (const auto& item : net.named_parameters()) before[item.key()] = item.value().detach().clone();
  }
  comm::run_rank_threads(1, [&](Group& group) {
    const Mesh mesh = mesh_of(group);
    alone = weights_after_steps(mesh, {}, GetParam());
  });
  for (const auto& [name, tensor] : alone)
    EXPECT_FALSE(at::allclose(tensor, before.at(name).to(at::kDouble), 1e-6, 1e-9))
        << name << " did not move";
  if (GetParam() == "SparseAdam") {
    const Tensor words = alone.at("words.weight"), words_before = before.at("words.weight").to(at::kDouble);
    EXPECT_TRUE(words.slice(0, used_rows).equal(words_before.slice(0, used_rows)));
    EXPECT_TRUE(words.ne(words_before).slice(0, 0, used_rows).all().item<bool>());
  }
  // The options are those of the Trainer and Lite, those between hosts, and those of training.deterministic.
  // Each strategy has each of them once, on 2, 3 or 4 ranks. Rules of single elements share the code that
  // holds their state (PartwiseOptimizer): with each of them, a strategy has one of the options, in turn.
  const std::vector<EngineOptions> ways = {{},
                                           {.gradients_to_owners = false, .lazy_rows = false},
                                           {.shared_parameters = false},
                                           {.fixed_order = 1}};
  const auto optimizer = optim::make_optimizer(settings::Choice(optim::optimizer_kinds(), GetParam(), ""));
  const bool is_partwise = dynamic_cast<const optim::PartwiseOptimizer*>(optimizer.get()) != nullptr;
  const auto names = optimizer_names();
  auto turn = static_cast<size_t>(std::ranges::find(names, GetParam()) - names.begin());
  int index = static_cast<int>(turn);
  for (const Sharding& row : shardings()) {
    ++turn;
    for (size_t way = 0; way < ways.size(); ++way) {
      if (is_partwise && way != turn % ways.size()) continue;
      EngineOptions options = ways[way];
      const int ranks = row.hybrid ? 4 : 2 + index++ % 3;
      options.strategy = row.name;
      options.fixed_order *= ranks;
      comm::run_rank_threads(ranks, [&](Group& group) {
        const Mesh mesh = mesh_of(group, row.name, 2);
        if (GetParam() == "LBFGS" && row.optimizer == Held::sharded) {
          EXPECT_THAT(message_of<ConfigError>([&] { weights_after_steps(mesh, options, GetParam()); }),
                      has_all("LBFGS needs all", "choose strategy ddp"));
          return;
        }
        const NamedTensors together = weights_after_steps(mesh, options, GetParam());
        for (const auto& [name, expected] : alone) {
          EXPECT_TRUE(are_close(together.at(name), expected, GetParam()))
              << row.name << " on " << ranks << " ranks, lazy_rows " << options.lazy_rows
              << ", shared_parameters " << options.shared_parameters << ", fixed_order "
              << options.fixed_order << ": " << name;
        }
      });
    }
  }
}

TEST_P(OptimizersAndStrategies, TakeTheStepsOfWholeLayers) {
  NamedTensors alone;
  comm::run_rank_threads(1, [&](Group& group) {
    const Mesh mesh = mesh_of(group);
    alone = weights_after_steps(mesh, {}, GetParam());
  });
  bool shared = GetParam().size() % 2 == 0;  // each strategy has both, with different optimizers
  for (const Sharding& row : shardings()) {
    if (GetParam() == "LBFGS" && row.optimizer == Held::sharded) continue;
    const MeshShape shape = is_hybrid(row) ? MeshShape{.dp_replicate = 2, .dp_shard = 2, .tp = 2}
                            : row.optimizer == Held::sharded ? MeshShape{.dp_shard = 2, .tp = 3}
                                                             : MeshShape{.dp_replicate = 2, .tp = 2};
    shared = !shared;
    comm::run_rank_threads(shape.ranks(), [&](Group& group) {
      const Mesh mesh(group, shape);
      const NamedTensors together =
          weights_after_steps(mesh, {.strategy = row.name, .shared_parameters = shared}, GetParam());
      for (const auto& [name, expected] : alone) {
        EXPECT_TRUE(are_close(together.at(name), expected, GetParam()))
            << row.name << " on " << shape.text() << ", shared_parameters " << shared << ": " << name;
      }
    });
  }
}

struct LayerOfAllKinds : torch::nn::Module {
  Tensor forward(const Tensor& x) const { return map->forward(x); }
  std::shared_ptr<nn::Embedding> positions =
      register_module("positions", std::make_shared<nn::Embedding>(5, 4));
  std::shared_ptr<nn::Linear> map = register_module("map", std::make_shared<nn::Linear>(4, 4));
  std::shared_ptr<nn::RmsNorm> norm = register_module("norm", std::make_shared<nn::RmsNorm>(4, 1e-6));
  Tensor filters = register_parameter("filters", at::zeros({2, 2, 2}));
};

// Muon orthogonalizes the matrices of blocks, independent of the size of units.
TEST(HiddenMatrices, AreTheMatricesOfBlocks) {
  struct Model : torch::nn::Module {
    std::shared_ptr<nn::Embedding> words = register_module("words", std::make_shared<nn::Embedding>(20, 4));
    std::shared_ptr<nn::Sharded<LayerOfAllKinds>> layer =
        register_module("layer", nn::make_sharded<LayerOfAllKinds>());
    std::shared_ptr<nn::Linear> head = register_module("head", std::make_shared<nn::Linear>(4, 20));
  } model;
  for (const int64_t min_unit_elements : {0, 1'000'000}) {
    std::vector<std::string> names;
    for (const NamedParameter& parameter : collect_tensors(model, {}, min_unit_elements).trainable)
      if (parameter.is_hidden_matrix) names.push_back(parameter.name);
    EXPECT_THAT(names, ::testing::ElementsAre("layer.map.weight"));
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, OptimizersAndStrategies, ::testing::ValuesIn(optimizer_names()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace stretto::parallel
