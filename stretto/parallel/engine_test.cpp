#include "stretto/parallel/engine.h"

#include <array>
#include <cerrno>
#include <cmath>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/file_faults.h"
#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/nn/layers.h"
#include "stretto/nn/parameter_values.h"
#include "stretto/nn/tensor_parallel.h"
#include "stretto/optim/optimizers.h"
#include "stretto/parallel/gradient_fixture.h"
#include "stretto/parallel/mesh_fixture.h"
#include "stretto/tensor/region_fixture.h"
#include "stretto/tensor/safetensors.h"

namespace stretto::parallel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

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

Tensor inputs(int64_t step) { return at::sin(at::arange(36, at::kFloat).view({6, 6}) + step); }

// The live master weights that this rank holds of a parameter; for "", of the first parameter of which it
// holds any. Collective.
Tensor master_weights(Engine& engine, const std::string& parameter = "") {
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

Trained train(const Mesh& mesh, const EngineOptions& options, int steps) {
  Mlp net;
  Engine engine(net, mesh, options, optim::adamw({.lr = 0.05, .weight_decay = 0.1}));
  Trained result;
  for (int step = 0; step < steps; ++step) {
    const auto parts = inputs(step).tensor_split(mesh.size(Axes::data));
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

Trained train(Group& group, const EngineOptions& options, int steps) {
  const Mesh mesh = mesh_of(group, options.strategy);
  return train(mesh, options, steps);
}

class Strategies : public ::testing::TestWithParam<std::tuple<std::string, const char*, int>> {};

TEST_P(Strategies, TrainLikeOneRank) {
  const auto& [strategy, precision, ranks] = GetParam();
  const EngineOptions options = {
      .strategy = strategy, .precision = parse_precision(precision), .bucket_bytes = 64};
  Trained alone;
  comm::run_rank_threads(1, [&](Group& group) {
    EngineOptions ddp = options;
    ddp.strategy = "ddp";
    alone = train(group, ddp, 6);
  });
  comm::run_rank_threads(ranks, [&](Group& group) {
    const Trained together = train(group, options, 6);
    const double tolerance = options.precision == Precision::bf16 ? 0.02 : 1e-5;
    for (const auto& [name, expected] : alone.weights) {
      EXPECT_TRUE(at::allclose(together.weights.at(name).to(at::kFloat), expected.to(at::kFloat), tolerance,
                               tolerance))
          << name;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Rows, Strategies,
                         ::testing::Combine(::testing::Values("ddp", "zero1", "zero2", "fsdp"),
                                            ::testing::Values("fp32", "bf16", "fp64"),
                                            ::testing::Values(1, 2, 3)));

// A source of an Mlp's parameters that counts the elements that are read.
struct CountingSource : MemorySource {
  explicit CountingSource(double seed) : MemorySource(parameters_of(Mlp(seed))) {}
  static NamedTensors parameters_of(const Mlp& net) {
    NamedTensors parameters;
    for (const auto& item : net.named_parameters()) parameters[item.key()] = item.value();
    return parameters;
  }
  void read(const std::string& name, const Region& region, const Tensor& values) const override {
    elements_read += region.elements();
    MemorySource::read(name, region, values);
  }
  mutable int64_t elements_read = 0;
};

// If the sources of the ranks differ, that of rank 0 is used. Shards of four ranks divide parameters.
TEST(Engine, ReadsParametersFromItsSource) {
  for (const char* strategy : {"ddp", "zero1", "zero2", "fsdp"}) {
    for (const char* precision : {"fp32", "bf16", "fp64"}) {
      for (const bool shares : {true, false}) {
        for (const bool differ : {true, false}) {
          comm::run_rank_threads(4, [&](Group& group) {
            Mlp net(7);
            const CountingSource source(differ ? 1 + group.rank() : 1);
            nn::drop_values(net, source, at::kCPU);
            const Mesh mesh = mesh_of(group, strategy);
            Engine engine(
                net, mesh,
                {.strategy = strategy, .precision = parse_precision(precision), .shared_parameters = shares},
                optim::adamw({}), &source);
            const Mlp expected(1);
            const auto parameters = expected.named_parameters();
            const NamedTensors weights = engine.weights().all();
            for (const auto& item : parameters)
              EXPECT_TRUE(weights.at(item.key()).to(at::kFloat).equal(item.value())) << item.key();
            engine.compare_replicas();
          });
        }
      }
    }
  }
}

// Each rank reads the elements that it holds, once. Rank 0 also reads those of others, to compare them.
TEST(Engine, RanksReadTheirPartsOfParameters) {
  for (const char* strategy : {"ddp", "fsdp"}) {
    for (const bool shares : {true, false}) {
      comm::run_rank_threads(4, [&](Group& group) {
        Mlp net;
        const CountingSource source(1);
        const Mesh mesh = mesh_of(group, strategy);
        const Engine engine(net, mesh, {.strategy = strategy, .shared_parameters = shares}, optim::adamw({}),
                            &source);
        int64_t elements = 0;
        for (const Tensor& parameter : net.parameters())
          elements += parameter.requires_grad() ? parameter.numel() : 0;
        if (group.rank() == 0 || strategy == std::string("ddp")) {
          EXPECT_EQ(source.elements_read, elements) << strategy;
        } else {
          EXPECT_LE(source.elements_read, engine.facts().elements / 4);
        }
      });
    }
  }
}

// Values that the source lacks are those of the module, frozen or not.
TEST(Engine, KeepsParametersThatTheSourceLacks) {
  comm::run_rank_threads(2, [&](Group& group) {
    Mlp net(1 + group.rank());
    auto parameters = net.named_parameters();
    const std::string last = parameters.back().key(), first = parameters.front().key();
    parameters[first].set_requires_grad(false);
    const MemorySource source({{first, at::full_like(parameters[first], 5)}});
    const Mesh mesh = mesh_of(group, "zero1");
    Engine engine(net, mesh, {.strategy = "zero1"}, optim::adamw({}), &source);
    const NamedTensors weights = engine.weights().all();
    EXPECT_TRUE(weights.at(first).eq(5).all().item<bool>());
    EXPECT_TRUE(weights.at(last).equal(Mlp(1).named_parameters()[last]));
  });
}

// The weights can be read any number of times, in any parts, and the reader may throw.
TEST(Engine, GathersWeightsOnTheFirstRankWhenItReadsThem) {
  for (const char* strategy : {"ddp", "zero1", "zero2", "fsdp", "hsdp"}) {
    for (const char* precision : {"fp32", "bf16"}) {
      for (const bool shares : {true, false}) {
        comm::run_rank_threads(4, [&](Group& group) {
          Mlp net;
          const Mesh mesh = mesh_of(group, strategy);
          Engine engine(
              net, mesh,
              {.strategy = strategy, .precision = parse_precision(precision), .shared_parameters = shares},
              optim::adamw({.lr = 0.05}));
          engine.backward(net.forward(inputs(group.rank())), Reduce::last);
          engine.finish();
          engine.step({.rates = {.lr = 0.05}});
          const NamedTensors all = engine.weights().all();
          bool used = false;
          engine.weights().at_first([&](const ListedSource& first) {
            used = true;
            EXPECT_EQ(first.types().size(), all.size());
            std::mt19937 random(4);
            for (const auto& [name, tensor] : all) {
              EXPECT_EQ(first.types().at(name).dtype, tensor.scalar_type());
              EXPECT_TRUE(first.copy(name).equal(tensor)) << name;
              const Region region = random_region(tensor.sizes(), random);
              const Tensor values = at::empty({region.elements()}, tensor.options());
              first.read(name, region, values);
              EXPECT_TRUE(values.equal(part_of(tensor, region))) << name;
            }
          });
          EXPECT_EQ(used, group.rank() == 0);
          const auto fail = [](const ListedSource&) { throw Error("no room"); };
          if (group.rank() == 0) {
            EXPECT_THROW(engine.weights().at_first(fail), Error);
          } else {
            engine.weights().at_first(fail);
          }
          engine.compare_replicas();
        });
      }
    }
  }
}

// The file is the same under all strategies and for any number of ranks.
TEST(Engine, WeightsOfAnyStrategyAreTheSameFile) {
  const TempFolder folder;
  const auto saved = [&](const char* strategy, int ranks, bool shares) {
    const auto file = folder.path() / "model.safetensors";
    comm::run_rank_threads(ranks, [&](Group& group) {
      Mlp net;
      const Mesh mesh = mesh_of(group, strategy);
      Engine engine(net, mesh, {.strategy = strategy, .shared_parameters = shares}, optim::adamw({}));
      engine.weights().at_first([&](const ListedSource& weights) { save_safetensors(file, weights); });
    });
    return read_file(file);
  };
  const std::string expected = saved("ddp", 1, true);
  for (const char* strategy : {"ddp", "zero1", "zero2", "fsdp"}) {
    for (const int ranks : {1, 2, 3, 4}) {
      for (const bool shares : {true, false}) EXPECT_EQ(saved(strategy, ranks, shares), expected) << strategy;
    }
  }
}

// With every optimizer, keeping the state in files changes no result.
TEST(Engine, StateInFilesChangesNoBit) {
  const TempFolder folder;
  for (const char* strategy : {"ddp", "zero1", "zero2", "fsdp"}) {
    for (const bool shares : {true, false}) {
      comm::run_rank_threads(2, [&](Group& group) {
        EngineOptions options = {.strategy = strategy, .bucket_bytes = 64, .shared_parameters = shares};
        const Trained in_memory = train(group, options, 4);
        options.offload_optimizer = folder.path();
        options.offloaded_at_once = 48;  // several parts, which divide parameters
        const Trained in_files = train(group, options, 4);
        EXPECT_EQ(in_files.optimizer_bytes, 0);
        EXPECT_EQ(in_files.held, in_memory.held) << "in checkpoints";
        for (const auto& [name, tensor] : in_memory.weights)
          EXPECT_TRUE(in_files.weights.at(name).equal(tensor)) << strategy << " " << name;
      });
    }
  }
}

TEST(Engine, RefusesAFolderThatCannotHoldState) {
  const TempFolder folder;
  const auto setup = [&](const std::filesystem::path& place) {
    comm::run_rank_threads(1, [&](Group& group) {
      Mlp net;
      const Mesh mesh = mesh_of(group);
      const Engine engine(net, mesh, {.offload_optimizer = place}, optim::adamw({}));
    });
  };
  EXPECT_THAT([&] { setup(folder.path() / "gone"); },
              ThrowsMessage<ConfigError>(
                  AllOf(StartsWith("offload_optimizer: "), HasSubstr("No such file or directory"))));
  const file_faults::Injection full({.call = 2, .error = ENOSPC});
  EXPECT_THAT([&] { setup(folder.path()); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("No space left on device"), HasSubstr("room for the state of its ranks"))));
}

TEST(Engine, NamesWeightsThatAreNotFinite) {
  for (const char* strategy : {"ddp", "zero1", "fsdp"}) {
    comm::run_rank_threads(3, [&](Group& group) {
      Mlp net;
      const Mesh mesh = mesh_of(group, strategy);
      Engine engine(net, mesh, {.strategy = strategy, .shared_parameters = false}, optim::adamw({}));
      EXPECT_EQ(engine.weights().first_nonfinite(), "");
      const Tensor last = master_weights(engine, "last.bias");
      if (group.rank() == 2) last[0] = INFINITY;
      EXPECT_EQ(engine.weights().first_nonfinite(),
                std::string(strategy) != "ddp" || group.rank() == 2 ? "last.bias" : "");
    });
  }
}

// Shared parameters and gathered copies have the same weights.
TEST(Engine, SharedParametersChangeNoBit) {
  for (const char* strategy : {"zero1", "zero2", "fsdp"}) {
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      NamedTensors shared, gathered;
      for (const bool shares : {true, false}) {
        comm::run_rank_threads(3, [&](Group& group) {
          const Trained trained = train(
              group,
              {.strategy = strategy, .precision = precision, .bucket_bytes = 64, .shared_parameters = shares},
              6);
          if (group.rank() == 2) (shares ? shared : gathered) = trained.weights;
        });
      }
      for (const auto& [name, tensor] : shared)
        EXPECT_TRUE(tensor.equal(gathered.at(name))) << strategy << name;
    }
  }
}

// One step from three micro-batches per rank.
NamedTensors accumulate(Group& group, const std::string& strategy) {
  Mlp net;
  const Mesh mesh = mesh_of(group, strategy);
  Engine engine(net, mesh, {.strategy = strategy, .bucket_bytes = 64}, optim::adamw({.lr = 0.05}));
  for (int64_t micro = 0; micro < 3; ++micro) {
    const auto parts = inputs(micro).chunk(group.size());
    const Tensor loss = net.forward(parts[static_cast<size_t>(group.rank())]);
    engine.backward(micro == 1 && group.rank() == 1 ? Tensor() : loss,
                    micro == 2 ? Reduce::last : Reduce::later);
  }
  std::array<double, 1> total = {1};
  engine.finish(total);
  EXPECT_EQ(total[0], group.size());
  engine.step({.rates = {.lr = 0.05}, .grad_scale = clip_scale(engine.gradients().norm(), 1)});
  NamedTensors weights;
  for (const auto& [name, tensor] : engine.weights().all()) weights[name] = tensor.clone();
  return weights;
}

// Groups of two or three ranks hold a copy each.
TEST(Engine, AHybridStrategyShardsWithinGroups) {
  Trained alone;
  comm::run_rank_threads(1, [&](Group& group) { alone = train(group, {.bucket_bytes = 64}, 6); });
  for (const auto& [ranks, shard] : {std::pair{4, 2}, {6, 3}, {2, 1}, {2, 2}}) {
    std::vector<int64_t> held(static_cast<size_t>(ranks));
    comm::run_rank_threads(ranks, [&, ranks = ranks, shard = shard](Group& group) {
      const Mesh mesh = mesh_of(group, "hsdp", shard);
      EXPECT_EQ(mesh.size(Axis::dp_replicate), ranks / shard);
      const Trained trained = train(mesh, {.strategy = "hsdp", .bucket_bytes = 64}, 6);
      for (const auto& [name, expected] : alone.weights)
        EXPECT_TRUE(at::allclose(trained.weights.at(name), expected, 1e-5, 1e-5)) << name;
      const auto found = trained.held.find("optimizer.exp_avg");
      held[static_cast<size_t>(group.rank())] = found == trained.held.end() ? 0 : found->second;
    });
    EXPECT_EQ(std::reduce(held.begin(), held.end()), 6 * 7 + 7 + 7 * 3 + 3);
  }
}

// A strategy shards over dp_shard and cp of any mesh, and sums over these and dp_replicate, in any order of
// the axes.
TEST(Engine, AnyMeshTrainsLikeOneRank) {
  Trained alone;
  comm::run_rank_threads(1, [&](Group& group) { alone = train(group, {.bucket_bytes = 64}, 4); });
  constexpr std::array turned = {Axis::tp, Axis::cp, Axis::dp_shard, Axis::dp_replicate, Axis::pp};
  const MeshShape shapes[] = {{.dp_replicate = 4},
                              {.dp_shard = 4},
                              {.dp_replicate = 2, .dp_shard = 2},
                              {.dp_replicate = 2, .dp_shard = 2, .order = turned},
                              {.dp_shard = 2, .cp = 2},
                              {.dp_replicate = 2, .cp = 2},
                              {.dp_shard = 2, .tp = 2},
                              {.pp = 2, .dp_replicate = 2, .order = turned}};
  for (const MeshShape& shape : shapes) {
    for (const Sharding& row : shardings()) {
      const int64_t parts = shards_optimizer(row) ? shape.size(Axes::shard) : 1;
      std::vector<int64_t> held(static_cast<size_t>(shape.ranks()));
      comm::run_rank_threads(shape.ranks(), [&](Group& group) {
        const Mesh mesh(group, shape);
        const Trained trained = train(mesh, {.strategy = row.name, .bucket_bytes = 64}, 4);
        for (const auto& [name, expected] : alone.weights) {
          EXPECT_TRUE(at::allclose(trained.weights.at(name), expected, 1e-5, 1e-5))
              << row.name << " on " << shape.text() << ": " << name;
        }
        for (size_t step = 0; step < alone.norms.size(); ++step)
          EXPECT_NEAR(trained.norms[step] / alone.norms[step], 1, 1e-4) << row.name << " on " << shape.text();
        held[static_cast<size_t>(group.rank())] = trained.optimizer_bytes;
      });
      const int64_t whole = alone.optimizer_bytes, padding = 2 * 4 * 16 * 4;
      for (const int64_t bytes : held) {
        EXPECT_NEAR(static_cast<double>(bytes), static_cast<double>(whole) / static_cast<double>(parts),
                    padding)
            << row.name << " on " << shape.text();
      }
    }
  }
}

TEST(Engine, DivergedCopiesAreNamed) {
  comm::run_rank_threads(4, [](Group& group) {
    Mlp net;
    const Mesh mesh(group, {.dp_replicate = 2, .dp_shard = 2});
    Engine engine(net, mesh, {.strategy = "hsdp"}, optim::adamw({}));
    engine.compare_replicas();
    const Tensor weights = master_weights(engine);
    if (group.rank() == 3) weights[0] += 1;
    EXPECT_THAT([&] { engine.compare_replicas(); }, ::testing::ThrowsMessage<DistributedError>(HasSubstr(
                                                        "the parameters of rank 3 differ from rank 1's")));
  });
}

TEST(Engine, ShardedGradientsAccumulateOverMicroBatches) {
  comm::run_rank_threads(2, [](Group& group) {
    const NamedTensors expected = accumulate(group, "ddp");
    for (const char* strategy : {"zero1", "zero2", "fsdp"}) {
      for (const auto& [name, tensor] : accumulate(group, strategy))
        EXPECT_TRUE(at::allclose(tensor, expected.at(name), 1e-5, 1e-6)) << strategy << " " << name;
    }
  });
}

// An exception leaves a pass unclosed. The other rank does not wait for gradients that are never computed.
TEST(Engine, APassThatIsNotClosedLeavesZeroGradientsAndDoesNotBlockOthers) {
  comm::run_rank_threads(2, [](Group& group) {
    Mlp net;
    const Mesh mesh = mesh_of(group);
    Engine engine(net, mesh, {}, optim::adamw({}));
    const Tensor loss = net.forward(inputs(group.rank()));
    {
      Backward pass = engine.open(engine.uses(loss), Reduce::last);
      if (group.rank() == 1) {
        loss.backward();
        pass.close();
      }
    }
    if (group.rank() == 1) {
      engine.finish();
    } else {
      EXPECT_EQ(largest_gradient(net), 0);
    }
    engine.gradients().clear();
    engine.backward(net.forward(inputs(group.rank())), Reduce::last);
    engine.finish();
    EXPECT_GT(engine.gradients().norm(), 0);
  });
}

TEST(Engine, ANonFiniteGradientIsNamedByItsOwner) {
  comm::run_rank_threads(2, [](Group& group) {
    Mlp net;
    const Mesh mesh = mesh_of(group, "zero2");
    Engine engine(net, mesh, {.strategy = "zero2"}, optim::adamw({}));
    const Tensor bad = net.first->bias.sum() * std::numeric_limits<double>::infinity();
    engine.backward(net.forward(inputs(0)) + (group.rank() == 1 ? bad : at::zeros({})), Reduce::last);
    engine.finish();
    EXPECT_FALSE(std::isfinite(engine.gradients().norm()));
    EXPECT_EQ(engine.gradients().first_nonfinite(), "first.bias");
    engine.skip_step();
    EXPECT_EQ(engine.gradients().norm(), 0);
  });
}

// A model of one tensor, which the optimizer needs whole: one rank owns all of it, the others nothing.
TEST(Engine, ARankMayOwnEverything) {
  comm::run_rank_threads(2, [](Group& group) {
    for (const char* strategy : {"zero1", "zero2"}) {
      for (const Precision precision : {Precision::fp32, Precision::bf16}) {
        torch::nn::Module net;
        Tensor& weight = net.register_parameter("weight", at::full({8, 4}, 0.5));
        const Mesh mesh = mesh_of(group, strategy);
        Engine engine(net, mesh, {.strategy = strategy, .precision = precision}, optim::adafactor({}));
        engine.backward((weight.to(at::kFloat) * inputs(group.rank()).slice(0, 0, 1).slice(1, 0, 4)).sum(),
                        Reduce::last);
        engine.finish();
        EXPECT_GT(engine.gradients().norm(), 0);
        engine.step({.rates = {.lr = 0.1}});
        EXPECT_LT(engine.weights().all().at("weight").to(at::kFloat).min().item<float>(), 0.5);
        State state;
        engine.add_state(state);
        engine.resume(state);
      }
    }
  });
}

TEST(Engine, WithoutSharedMemoryParametersAreGathered) {
  const auto body = [](Group& group) {
    const NamedTensors expected = train(group, {.strategy = "ddp", .bucket_bytes = 64}, 4).weights;
    for (const char* strategy : {"zero1", "zero2", "fsdp"}) {
      for (const auto& [name, tensor] : train(group, {.strategy = strategy, .bucket_bytes = 64}, 4).weights)
        EXPECT_TRUE(at::allclose(tensor, expected.at(name), 1e-5, 1e-6)) << strategy << " " << name;
    }
  };
  comm::run_rank_threads(2, {}, body, "gloo");
}

TEST(Engine, AShardedOptimizerHasStateOfItsPartOnly) {
  int64_t whole = 0;
  comm::run_rank_threads(1, [&](Group& group) { whole = train(group, {}, 1).optimizer_bytes; });
  comm::run_rank_threads(2, [&](Group& group) {
    const Trained trained = train(group, {.strategy = "zero1", .precision = Precision::bf16}, 1);
    EXPECT_LE(trained.optimizer_bytes, whole / 2 + 2 * 64);
    const int64_t all = 6 * 7 + 7 + 7 * 3 + 3;
    EXPECT_LT(trained.held.at("optimizer.exp_avg"), all);
    EXPECT_GT(trained.held.at("optimizer.exp_avg"), all / 4);
  });
}

TEST(Engine, StartsWithRankZerosTensors) {
  comm::run_rank_threads(2, [](Group& group) {
    Mlp net(group.rank() + 1);
    const Mesh mesh = mesh_of(group);
    Engine engine(net, mesh, {}, nullptr);
    const Mlp first(1);
    EXPECT_TRUE(at::equal(net.first->weight, first.first->weight));
    EXPECT_TRUE(at::equal(net.frozen, first.frozen));
    EXPECT_TRUE(at::equal(net.mean, first.mean));
  });
}

TEST(Engine, StateAndWeightsHaveRankZerosBuffers) {
  comm::run_rank_threads(2, [](Group& group) {
    Mlp net;
    const Mesh mesh = mesh_of(group);
    Engine engine(net, mesh, {}, optim::sgd({}));
    EXPECT_FALSE(engine.buffers_changed());
    net.mean.fill_(10 + group.rank());
    EXPECT_TRUE(engine.buffers_changed());
    EXPECT_EQ(engine.weights().all().at("mean").max().item<float>(), 10);
    net.mean.fill_(20 + group.rank());
    State state;
    engine.add_state(state);
    EXPECT_EQ(net.mean.max().item<float>(), 20);
  });
}

TEST(Engine, DivergedRanksAreNamed) {
  comm::run_rank_threads(2, [](Group& group) {
    Mlp net;
    const Mesh mesh = mesh_of(group);
    Engine engine(net, mesh, {}, nullptr);
    engine.compare_replicas();
    const Tensor weights = master_weights(engine);
    if (group.rank() == 1) weights[3] += 1;
    EXPECT_THAT([&] { engine.compare_replicas(); }, ::testing::ThrowsMessage<DistributedError>(HasSubstr(
                                                        "the parameters of rank 1 differ from rank 0's")));
  });
}

// A rank has one part of a parameter for each position of the mesh's axis tp.
TEST(Engine, RefusesParametersThatAreCutOtherwiseThanByTheMesh) {
  struct Half : torch::nn::Module, nn::HasLayout {
    Half() { register_parameter("weight", at::zeros({2, 3})); }
    TensorLayout layout(const std::string&) const override {
      return {{4, 3}, {{.axis = 0, .intervals = {{0, 2}}, .largest = 2}}};
    }
  };
  comm::run_rank_threads(1, [](Group& group) {
    Half half;
    EXPECT_EQ(collect_tensors(half).trainable[0].layout.global, (std::vector<int64_t>{4, 3}));
    const Mesh mesh = mesh_of(group);
    EXPECT_THAT(
        [&] { Engine(half, mesh, {}, nullptr); },
        ThrowsMessage<ConfigError>(HasSubstr(
            "parameter weight is cut, but not into one part, or a copy of one, for each rank of the mesh")));
    half.parameters()[0].set_requires_grad(false);
    EXPECT_THAT([&] { collect_tensors(half); },
                ThrowsMessage<ConfigError>(HasSubstr("parameter weight is frozen, and cut over tp")));
  });
}

TEST(Sharding, UnknownStrategiesAreNamedWithTheNearest) {
  EXPECT_EQ(find_sharding("ddp").optimizer, Held::replicated);
  EXPECT_THAT([] { find_sharding("zero11"); },
              ::testing::ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("did you mean \"zero1\""), HasSubstr("available: ddp"))));
  EXPECT_THROW(register_sharding({.name = "ddp"}), ConfigError);
}

TEST(Engine, AShardedStrategyNeedsABundledOptimizer) {
  comm::run_rank_threads(1, [](Group& group) {
    Mlp net;
    const Mesh mesh = mesh_of(group, "zero1");
    EXPECT_THROW(Engine(net, mesh, {.strategy = "zero1"}, nullptr), ConfigError);
  });
}

}  // namespace
}  // namespace stretto::parallel
