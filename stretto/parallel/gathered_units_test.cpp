#include "stretto/parallel/gathered_units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/nn/modules/linear.h>

#include "stretto/base/error.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/nn/activation_checkpoint.h"
#include "stretto/nn/layers.h"
#include "stretto/nn/sharded.h"
#include "stretto/optim/optimizers.h"
#include "stretto/parallel/engine.h"
#include "stretto/parallel/mesh_fixture.h"

namespace stretto::parallel {
namespace {

using ::testing::HasSubstr;

// A table outside blocks, three blocks of which the first is called twice, and a layer of torch as the head,
// whose backward uses a saved view of the weight.
struct Tower : torch::nn::Module {
  Tower() {
    at::Generator random = at::detail::createCPUGenerator(3);
    table = register_parameter("table", at::zeros({10, 16}));
    for (int i = 0; i < 3; ++i)
      layers.push_back(register_module("layer" + std::to_string(i), nn::make_sharded<nn::Linear>(16, 16)));
    head = register_module("head", nn::sharded(torch::nn::Linear(16, 4)));
    at::NoGradGuard no_grad;
    for (Tensor& parameter : parameters()) parameter.normal_(0, 0.4, random);
  }
  Tensor forward(const Tensor& ids, bool checkpointed = false) {
    Tensor x = at::embedding(table, ids);
    const auto first = [this](const nn::Carry& carry) { return at::tanh(layers[0]->forward(carry[0])); };
    const std::vector<Tensor> parameters = {layers[0]->weight, layers[0]->bias};
    x = checkpointed ? nn::activation_checkpoint(first, {x}, parameters) : first({x});
    x = at::tanh(layers[1]->forward(x));
    x = at::tanh(layers[2]->forward(x));
    return head->forward(first({x})).square().sum();
  }
  Tensor table;
  std::vector<std::shared_ptr<nn::Sharded<nn::Linear>>> layers;
  std::shared_ptr<nn::Sharded<torch::nn::LinearImpl>> head;
};

struct Course {
  std::vector<double> losses;
  NamedTensors weights;
};

Tensor ids_of(int step, const Group& group) {
  const Tensor ids = (at::arange(12, at::kLong) * (step + 3)).remainder(10);
  return ids.tensor_split(group.size())[static_cast<size_t>(group.rank())];
}

Course run_course(Group& group, const EngineOptions& options, bool checkpointed = false) {
  Tower net;
  const Mesh mesh = mesh_of(group, options.strategy);
  Engine engine(net, mesh, options, optim::adamw({.lr = 0.02}));
  Course course;
  for (int step = 0; step < 4; ++step) {
    std::array<double, 1> total = {0};
    for (const bool last : {false, true}) {
      const Tensor loss = net.forward(ids_of(step, group), checkpointed);
      total[0] += loss.item<double>();
      engine.backward(loss, last ? Reduce::last : Reduce::later);
    }
    engine.finish(total);
    engine.step({.rates = {.lr = 0.02}, .grad_scale = clip_scale(engine.gradients().norm(), 1)});
    at::NoGradGuard no_grad;
    net.forward(ids_of(step, group));  // an evaluation
    course.losses.push_back(total[0]);
  }
  for (const auto& [name, tensor] : engine.weights().all()) course.weights[name] = tensor.clone();
  return course;
}

void expect_same_course(const Course& course, const Course& expected, double tolerance) {
  for (size_t step = 0; step < expected.losses.size(); ++step)
    EXPECT_NEAR(course.losses[step], expected.losses[step], tolerance * expected.losses[step]);
  for (const auto& [name, tensor] : expected.weights)
    EXPECT_TRUE(at::allclose(course.weights.at(name), tensor, tolerance, tolerance)) << name;
}

class Gathered : public ::testing::TestWithParam<std::tuple<const char*, int>> {};
INSTANTIATE_TEST_SUITE_P(Backends, Gathered,
                         ::testing::Combine(::testing::Values("shm", "gloo"), ::testing::Values(2, 3)));

TEST_P(Gathered, TrainsLikeOneRank) {
  const auto [backend, ranks] = GetParam();
  for (const bool checkpointed : {false, true}) {
    Course alone;
    comm::run_rank_threads(1, [&](Group& group) { alone = run_course(group, {}, checkpointed); });
    comm::run_rank_threads(
        ranks, {},
        [&](Group& group) {
          const EngineOptions options = {.strategy = "fsdp", .bucket_bytes = 500, .shared_parameters = false};
          expect_same_course(run_course(group, options, checkpointed), alone, 1e-4);
        },
        backend);
  }
}

TEST(GatheredUnits, ChangeNoBit) {
  comm::run_rank_threads(2, [](Group& group) {
    const EngineOptions options = {.strategy = "fsdp", .bucket_bytes = 500};
    const Course shared = run_course(group, options);
    EngineOptions gathered = options;
    gathered.shared_parameters = false;
    expect_same_course(run_course(group, gathered), shared, 0);
    gathered.reshard_after_forward = false;
    for (const bool checkpointed : {false, true})
      expect_same_course(run_course(group, gathered, checkpointed), run_course(group, options, checkpointed),
                         0);
    gathered.min_unit_elements = 100;  // all but the head
    expect_same_course(run_course(group, gathered), shared, 0);
  });
}

bool is_readable(const Tensor& tensor) {
  try {
    return tensor.const_data_ptr() != nullptr;
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("are sharded over the ranks"));
    return false;
  }
}

// Units stay gathered from a forward with gradients to its backward; those of an evaluation do not.
TEST(GatheredUnits, StayUntilBackwardWithoutResharding) {
  comm::run_rank_threads(4, [](Group& group) {
    Tower net;
    const Mesh mesh = mesh_of(group, "fsdp");
    Engine engine(net, mesh, {.strategy = "fsdp", .shared_parameters = false, .reshard_after_forward = false},
                  optim::adamw({}));
    const auto readable = [&] {
      int count = 0;
      for (const auto& layer : net.layers) count += is_readable(layer->weight);
      return count;
    };
    for (int step = 0; step < 2; ++step) {
      const Tensor loss = net.forward(ids_of(step, group));
      EXPECT_EQ(readable(), 3);
      engine.backward(loss, Reduce::last);
      EXPECT_LE(readable(), 1) << "what this rank owns";
      engine.finish();
      engine.step({.rates = {.lr = 0.01}});
      at::NoGradGuard no_grad;
      net.forward(ids_of(step, group));
      EXPECT_LE(readable(), 1);
    }
  });
}

TEST(GatheredUnits, SmallBlocksBelongToTheEnclosingBlock) {
  comm::run_rank_threads(3, [](Group& group) {
    Tower net;  // blocks of 272, 272, 272 and 68 parameters
    const Mesh mesh = mesh_of(group, "fsdp");
    Engine engine(net, mesh, {.strategy = "fsdp", .shared_parameters = false, .min_unit_elements = 100},
                  optim::adamw({}));
    EXPECT_EQ(engine.facts().units.back(), "");
    EXPECT_TRUE(is_readable(net.head->weight)) << "gathered once per step";
    int sharded = 0;
    for (const auto& layer : net.layers) sharded += !is_readable(layer->weight);
    EXPECT_GE(sharded, 2);
  });
}

TEST(GatheredUnits, ValuesExistWhileTheirBlockComputes) {
  comm::run_rank_threads(4, [](Group& group) {
    Tower net;
    const Mesh mesh = mesh_of(group, "fsdp");
    Engine engine(net, mesh, {.strategy = "fsdp", .shared_parameters = false}, optim::adamw({}));
    EXPECT_TRUE(engine.facts().passes_are_collective);
    EXPECT_LT(engine.facts().memory.master, 4 * engine.facts().elements / 4 + 64);
    int count = 0;
    const auto look = [&] {
      count = 0;
      for (const auto& layer : net.layers) count += is_readable(layer->weight);
    };
    EXPECT_TRUE(is_readable(net.table)) << "outside of blocks";
    for (int pass = 0; pass < 2; ++pass) {
      look();
      EXPECT_LE(count, 1) << "what this rank owns";
      const Tensor x = net.layers[0]->forward(at::ones({1, 16}));
      look();
      EXPECT_LE(count, 1) << "after forward";
      int during_backward = 0;
      x.register_hook([&](const Tensor&) {
        look();
        during_backward = count;
      });
      engine.backward(net.layers[1]->forward(x).sum(), Reduce::last);
      engine.finish();
      engine.skip_step();
      EXPECT_LE(during_backward, 2);
    }
  });
}

// A weight that two blocks share belongs to neither.
TEST(GatheredUnits, TiedParametersStay) {
  struct Layer : torch::nn::Module {
    explicit Layer(const Tensor& shared) : weight(register_parameter("weight", shared)) {
      bias = register_parameter("bias", at::zeros({8}));
    }
    Tensor forward(const Tensor& x) const { return at::tanh(at::linear(x, weight, bias)); }
    Tensor weight, bias;
  };
  struct Pair : torch::nn::Module {
    Pair() {
      const Tensor shared = at::linspace(-1, 1, 64).view({8, 8});
      first = register_module("first", nn::make_sharded<Layer>(shared));
      second = register_module("second", nn::make_sharded<Layer>(first->weight));
    }
    std::shared_ptr<nn::Sharded<Layer>> first, second;
  };
  std::vector<double> norms;
  for (const int ranks : {1, 2}) {
    comm::run_rank_threads(ranks, [&](Group& group) {
      Pair net;
      const Mesh mesh = mesh_of(group, "fsdp");
      Engine engine(net, mesh, {.strategy = "fsdp", .shared_parameters = false}, optim::adamw({}));
      const Tensor x = at::ones({2, 8}).tensor_split(group.size())[static_cast<size_t>(group.rank())];
      engine.backward(net.second->forward(net.first->forward(x)).sum(), Reduce::last);
      engine.finish();
      const double norm = engine.gradients().norm();
      if (group.rank() == 0) norms.push_back(norm);
    });
  }
  EXPECT_NEAR(norms[1], norms[0], 1e-5);
}

// A block that throws is released, and the next pass gathers again.
TEST(GatheredUnits, AForwardThatThrowsLeavesThemUsable) {
  comm::run_rank_threads(2, [](Group& group) {
    Tower net;
    const Mesh mesh = mesh_of(group, "fsdp");
    Engine engine(net, mesh, {.strategy = "fsdp", .shared_parameters = false}, optim::adamw({}));
    EXPECT_ANY_THROW(net.layers[1]->forward(at::ones({1, 3})));
    engine.backward(net.forward(ids_of(0, group)), Reduce::last);
    engine.finish();
    EXPECT_GT(engine.gradients().norm(), 0);
  });
}

}  // namespace
}  // namespace stretto::parallel
