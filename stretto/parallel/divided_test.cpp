#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/nn/initial_values.h"
#include "stretto/nn/sharded.h"
#include "stretto/nn/tensor_parallel.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/tensor_parts.h"
#include "stretto/parallel/engine.h"
#include "stretto/parallel/mesh_fixture.h"
#include "stretto/parallel/random_state.h"
#include "stretto/parallel/written_elements_fixture.h"
#include "stretto/tensor/region_fixture.h"

// Engines of modules whose layers are divided among ranks (tensor parallelism).
namespace stretto::parallel {
namespace {

using ::testing::HasSubstr;

// A block, whose sizes 2 ranks divide unevenly.
struct DividedBlock : torch::nn::Module {
  explicit DividedBlock(const nn::TensorParallel& ranks) {
    up = register_module("up", std::make_shared<nn::ColumnLinear>(6, 11, ranks));
    down = register_module("down", std::make_shared<nn::RowLinear>(11, 6, ranks));
  }
  Tensor forward(const Tensor& x) const { return x + down->forward(at::tanh(up->forward(x))); }
  std::shared_ptr<nn::ColumnLinear> up;
  std::shared_ptr<nn::RowLinear> down;
};

struct DividedNet : torch::nn::Module {
  explicit DividedNet(const nn::TensorParallel& ranks) {
    table = register_module("table", std::make_shared<nn::VocabularyEmbedding>(7, 6, ranks));
    norm = register_module("norm", std::make_shared<nn::RmsNorm>(6, 1e-6));
    for (const char* name : {"first", "second"})
      blocks.push_back(register_module(name, nn::make_sharded<DividedBlock>(ranks)));
    up = register_module("up", std::make_shared<nn::ColumnLinear>(6, 9, ranks));
    down = register_module("down", std::make_shared<nn::RowLinear>(9, 6, ranks));
    mean = register_buffer("mean", at::full({2}, 3.0));
  }
  Tensor forward(const Tensor& ids) const {
    Tensor x = nn::norm(table->forward(ids), norm->all());
    for (const auto& block : blocks) x = block->forward(x);
    return down->forward(at::tanh(up->forward(x))).square().sum();
  }
  std::shared_ptr<nn::VocabularyEmbedding> table;
  std::vector<std::shared_ptr<nn::Sharded<DividedBlock>>> blocks;
  std::shared_ptr<nn::RmsNorm> norm;
  std::shared_ptr<nn::ColumnLinear> up;
  std::shared_ptr<nn::RowLinear> down;
  Tensor mean;
};

std::unique_ptr<nn::InitialValues> values_of(const DividedNet& net) {
  auto values = std::make_unique<nn::InitialValues>(4);
  for (const nn::LayerParameter& parameter : nn::layer_parameters(net))
    values->add(parameter.name, parameter.layout().global, {nn::InitialValue::Kind::normal, 0.35});
  return values;
}

Tensor ids_of(int64_t step) { return (at::arange(8, at::kLong) * 3 + step) % 7; }

struct DividedRun {
  NamedTensors weights, gradients, averaged;
  std::vector<double> norms, losses;
};

// What a rank sees of an engine after some steps of two micro-batches each.
DividedRun train_divided(const Mesh& mesh, const EngineOptions& options, int steps) {
  const nn::TensorParallel ranks = {&mesh.group(Axis::tp)};
  DividedNet net(ranks);
  Engine engine(net, mesh, options, optim::adamw({.lr = 0.05, .weight_decay = 0.1}), values_of(net).get());
  EXPECT_EQ(engine.facts().is_divided, mesh.size(Axis::tp) > 1);
  DividedRun result;
  for (int step = 0; step < steps; ++step) {
    std::array<double, 1> totals = {0};
    for (const Reduce reduce : {Reduce::later, Reduce::last}) {
      const Tensor batch = ids_of(step).tensor_split(2)[reduce == Reduce::last ? 1 : 0];
      const auto parts = batch.tensor_split(mesh.size(Axes::data));
      const Tensor loss = net.forward(parts[static_cast<size_t>(mesh.position(Axes::data))]);
      engine.backward(loss, reduce);
      totals[0] += loss.item<double>();
    }
    engine.finish(totals);
    result.losses.push_back(totals[0]);
    result.norms.push_back(engine.gradients().norm());
    result.gradients = engine.gradients().by_name(1);
    engine.step({.rates = {.lr = 0.05}, .grad_scale = clip_scale(result.norms.back(), 1)});
  }
  engine.compare_replicas();
  for (const auto& [name, tensor] : engine.weights().all()) result.weights[name] = tensor.clone();
  {
    const AveragedWeights average = engine.weights().averaged(true);
    for (const auto& [name, tensor] : engine.weights().all()) result.averaged[name] = tensor.clone();
  }
  NamedTensors saved;
  engine.weights().at_first([&](const ListedSource& weights) {
    for (const auto& [name, type] : weights.types()) saved[name] = weights.copy(name);
    const Region part = {{1, 2}, {5, 3}, 4, 13};  // elements of a box
    const Tensor values = at::empty({9}, weights.types().at("up.weight").dtype);
    weights.read("up.weight", part, values);
    EXPECT_TRUE(at::equal(
        values, saved.at("up.weight").narrow(0, 1, 5).narrow(1, 2, 3).reshape({-1}).slice(0, 4, 13)));
  });
  EXPECT_EQ(saved.empty(), mesh.world().rank() > 0);
  for (const auto& [name, tensor] : saved) EXPECT_TRUE(at::equal(tensor, result.weights.at(name))) << name;
  return result;
}

struct DividedJob {
  std::string strategy;
  MeshShape shape;
};
const DividedJob divided_jobs[] = {{"ddp", {.tp = 2}},
                                   {"ddp", {.dp_replicate = 2, .tp = 2}},
                                   {"ddp", {.tp = 4}},
                                   {"zero1", {.dp_shard = 2, .tp = 2}},
                                   {"fsdp", {.tp = 2}},
                                   {"zero2", {.dp_shard = 2, .tp = 2}},
                                   {"fsdp", {.dp_shard = 2, .tp = 2}},
                                   {"fsdp", {.dp_shard = 4, .tp = 2}},
                                   {"hsdp", {.dp_replicate = 2, .dp_shard = 2, .tp = 2}}};

TEST(DividedEngine, TrainsLikeOneRank) {
  for (const Precision precision : {Precision::fp32, Precision::fp64}) {
    const double tolerance = precision == Precision::fp64 ? 1e-10 : 1e-4;
    const AverageOptions average = {.decay = 0.7};
    DividedRun alone;
    comm::run_rank_threads(1, [&](Group& group) {
      alone =
          train_divided(mesh_of(group), {.precision = precision, .bucket_bytes = 64, .average = average}, 6);
    });
    for (const DividedJob& job : divided_jobs) {
      for (const bool shared : {true, false}) {
        comm::run_rank_threads(job.shape.ranks(), [&](Group& world) {
          SCOPED_TRACE(job.strategy + " on " + job.shape.text());
          const Mesh mesh(world, job.shape);
          const DividedRun found = train_divided(mesh,
                                                 {.strategy = job.strategy,
                                                  .precision = precision,
                                                  .bucket_bytes = 64,
                                                  .shared_parameters = shared,
                                                  .average = average},
                                                 6);
          for (const auto& [name, expected] : alone.weights)
            EXPECT_TRUE(at::allclose(found.weights.at(name), expected, tolerance, tolerance)) << name;
          for (const auto& [name, expected] : alone.averaged)
            EXPECT_TRUE(at::allclose(found.averaged.at(name), expected, tolerance, tolerance)) << name;
          for (const auto& [name, expected] : alone.gradients)
            EXPECT_TRUE(at::allclose(found.gradients.at(name), expected, tolerance, tolerance)) << name;
          for (size_t step = 0; step < alone.norms.size(); ++step) {
            EXPECT_NEAR(found.norms[step] / alone.norms[step], 1, tolerance);
            EXPECT_NEAR(found.losses[step] / alone.losses[step], 1, tolerance);
          }
        });
      }
    }
  }
}

TEST(DividedEngine, Bf16AndAveragedWeightsTrainLikeOneRank) {
  const EngineOptions options = {.precision = Precision::bf16, .average = AverageOptions{.decay = 0.5}};
  DividedRun alone;
  comm::run_rank_threads(1, [&](Group& group) { alone = train_divided(mesh_of(group), options, 6); });
  for (const DividedJob& job : divided_jobs) {
    comm::run_rank_threads(job.shape.ranks(), [&](Group& world) {
      const Mesh mesh(world, job.shape);
      EngineOptions own = options;
      own.strategy = job.strategy;
      for (const bool shared : {true, false}) {
        own.shared_parameters = shared;
        const DividedRun found = train_divided(mesh, own, 6);
        for (size_t step = 0; step < alone.losses.size(); ++step)
          EXPECT_NEAR(found.losses[step], alone.losses[step], 0.05 * alone.losses[0])
              << job.strategy << " on " << job.shape.text();
      }
    });
  }
}

// The pieces of which a rank is the first holder are written; those of all ranks are every element once.
TEST(DividedEngine, EachElementOfTheStateHasOneWriter) {
  for (const DividedJob& job : divided_jobs) {
    for (const bool factored : {false, true}) {
      WrittenElements elements;
      comm::run_rank_threads(job.shape.ranks(), [&](Group& world) {
        const Mesh mesh(world, job.shape);
        DividedNet net({&mesh.group(Axis::tp)});
        Engine engine(net, mesh,
                      {.strategy = job.strategy, .shared_parameters = false, .average = AverageOptions{}},
                      factored ? optim::adafactor({}) : optim::adamw({}), values_of(net).get());
        elements.add(engine);
      });
      EXPECT_EQ(elements.written, elements.whole) << job.strategy << " on " << job.shape.text();
      EXPECT_EQ(elements.whole.at(factored ? "optimizer.row_var.up.weight" : "optimizer.exp_avg.up.weight"),
                factored ? 9 : 54);
    }
  }
}

// Under every strategy, all ranks learn of a gradient of any rank.
TEST(DividedEngine, AllRanksVoteOnGradientsThatAreNotFinite) {
  for (const DividedJob& job : divided_jobs) {
    for (int rank = 0; rank < job.shape.ranks(); ++rank) {
      comm::run_rank_threads(job.shape.ranks(), [&](Group& world) {
        const Mesh mesh(world, job.shape);
        DividedNet net({&mesh.group(Axis::tp)});
        Engine engine(net, mesh, {.strategy = job.strategy}, optim::adamw({}), values_of(net).get());
        Tensor loss = net.forward(ids_of(0));
        if (world.rank() == rank) loss = loss + net.up->weight.sum() * INFINITY;
        engine.backward(loss, Reduce::last);
        engine.finish();
        EXPECT_EQ(engine.gradients().first_nonfinite(), "up.weight")
            << job.strategy << " on " << job.shape.text() << ", rank " << rank;
        EXPECT_FALSE(std::isfinite(engine.gradients().norm()));
        engine.skip_step();
      });
    }
  }
}

TEST(DividedEngine, AGradientThatIsNotFiniteIsFoundOnAnyRank) {
  comm::run_rank_threads(2, [](Group& world) {
    const Mesh mesh(world, {.tp = 2});
    DividedNet net({&mesh.group(Axis::tp)});
    Engine engine(net, mesh, {}, optim::adamw({}), values_of(net).get());
    engine.backward(net.forward(ids_of(0)), Reduce::last);
    engine.finish();
    EXPECT_EQ(engine.gradients().first_nonfinite(), "");
    if (world.rank() == 1) net.up->weight.mutable_grad()[0][0] = INFINITY;
    EXPECT_EQ(engine.gradients().first_nonfinite(), "up.weight");
    EXPECT_TRUE(std::isinf(engine.gradients().norm()));
    engine.gradients().clear();
    EXPECT_EQ(engine.weights().first_nonfinite(), "");
    const at::NoGradGuard no_grad;
    if (world.rank() == 1) net.down->weight[0][0] = NAN;
    EXPECT_EQ(engine.weights().first_nonfinite(), "down.weight");
  });
}

TEST(DividedEngine, CopiesThatDifferAreFound) {
  for (const DividedJob& job : divided_jobs) {
    if (job.shape.tp != 2) continue;
    comm::run_rank_threads(job.shape.ranks(), [&](Group& world) {
      const Mesh mesh(world, job.shape);
      DividedNet net({&mesh.group(Axis::tp)});
      Engine engine(net, mesh, {.strategy = job.strategy, .shared_parameters = false}, optim::adamw({}),
                    values_of(net).get());
      EXPECT_NO_THROW(engine.compare_replicas());
      State state;
      engine.add_state(state);
      for (const Entry& entry : state.tensors) {
        if (entry.name != "model.norm.weight" || mesh.position(Axis::tp) != 1) continue;
        for (const Piece& piece : entry.pieces) Tensor(piece.data).add_(1);
      }
      EXPECT_THAT(message_of<DistributedError>([&] { engine.compare_replicas(); }),
                  HasSubstr("the parameters that are not divided differ between ranks "))
          << job.strategy << " on " << job.shape.text();
    });
  }
}

// A rank fails between two sums of a layer: its peer waits for it there, and the others wait for both.
TEST(DividedEngine, ARankThatFailsEndsAllOthers) {
  for (const DividedJob& job : divided_jobs) {
    std::vector<std::string> reasons(static_cast<size_t>(job.shape.ranks()));
    const auto last = reasons.size() - 1;
    EXPECT_THROW(comm::run_rank_threads(
                     job.shape.ranks(),
                     [&](Group& world) {
                       const auto rank = static_cast<size_t>(world.rank());
                       try {
                         const Mesh mesh(world, job.shape);
                         DividedNet net({&mesh.group(Axis::tp)});
                         Engine engine(net, mesh, {.strategy = job.strategy, .shared_parameters = false},
                                       optim::adamw({}), values_of(net).get());
                         for (int step = 0; step < 3; ++step) {
                           Tensor loss = net.forward(ids_of(step));
                           if (step == 1 && rank == last) throw Error("it fails");
                           engine.backward(loss, Reduce::last);
                           engine.finish();
                           engine.step({.rates = {.lr = 0.05}});
                         }
                       } catch (const Error& error) {
                         reasons[rank] = error.what();
                         throw;
                       }
                     }),
                 Error);
    for (size_t rank = 0; rank < last; ++rank)
      EXPECT_THAT(reasons[rank], HasSubstr("has failed; see its output for the reason"))
          << rank << " of " << job.strategy << " on " << job.shape.text();
  }
}

// An optimizer of a program that needs whole tensors.
struct WholeTensors : optim::Optimizer {
  WholeTensors() : Optimizer({}) {}
  std::string name() const override { return "WholeTensors"; }
  optim::Placement placement() const override { return optim::Placement::whole_tensor; }
  int64_t state_bytes() const override { return 0; }
  void make_state(const Allocator&) override {}
  void update(const optim::StepRates&, double, int64_t, const optim::TouchedRows&) override {}
  void add_piece_state(State&, const std::string&, const optim::ParameterPiece&) const override {}
};

TEST(DividedEngine, OptimizersThatNeedWholeTensorsAreRefused) {
  comm::run_rank_threads(2, [](Group& world) {
    const Mesh mesh(world, {.tp = 2});
    EXPECT_THAT(message_of<ConfigError>([&] {
                  DividedNet net({&mesh.group(Axis::tp)});
                  Engine(net, mesh, {}, std::make_unique<WholeTensors>(), values_of(net).get());
                }),
                has_all("WholeTensors", "whole parameters", "table.weight is divided"));
  });
}

// A checkpoint of a mesh lists the random numbers by position along Axes::sum, and that of an earlier version
// by rank.
TEST(DividedEngine, RandomNumbersOfEarlierCheckpointsAreThoseOfTheRank) {
  for (const auto& [stored, expected] :
       {std::pair<int, std::array<int, 4>>{4, {0, 0, 2, 2}}, {2, {0, 0, 1, 1}}, {8, {0, 0, 1, 1}}}) {
    comm::run_rank_threads(4, [&](Group& group) {
      const Mesh mesh(group, {.dp_replicate = 2, .tp = 2});
      State state;
      state.stored.emplace();
      for (int i = 0; i < stored; ++i) state.stored->insert(fmt::format("random.{}", i));
      RandomState random(mesh, at::kCPU);
      random.add_state(state);
      ASSERT_EQ(std::ssize(state.tensors), stored);
      for (int i = 0; i < stored; ++i) {
        EXPECT_EQ(state.tensors[static_cast<size_t>(i)].pieces.empty(),
                  i != expected[static_cast<size_t>(group.rank())])
            << "entry " << i << " of " << stored << ", rank " << group.rank();
      }
    });
  }
}

}  // namespace
}  // namespace stretto::parallel
