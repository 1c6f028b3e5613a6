#include "stretto/parallel/copied_parts.h"

#include <algorithm>
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/nn/initial_values.h"
#include "stretto/nn/tensor_parallel.h"
#include "stretto/optim/optimizers.h"
#include "stretto/parallel/engine.h"
#include "stretto/parallel/mesh_fixture.h"
#include "stretto/parallel/written_elements_fixture.h"

// Engines of modules of whose parts several ranks have copies.
namespace stretto::parallel {
namespace {

using ::testing::HasSubstr;

// Heads of queries read fewer heads of keys, as in grouped attention. The norm, and the bias of the output,
// have copies if the ranks divide rows.
struct GroupedNet : torch::nn::Module {
  GroupedNet(const nn::TensorParallel& tensor_parallel, int64_t key_heads) : ranks(tensor_parallel) {
    norm = register_module("norm", std::make_shared<nn::RmsNormBetweenLayers>(6, 1e-6, ranks));
    const int copies = std::max(1, static_cast<int>(ranks.size() / key_heads));
    query = register_module(
        "query", std::make_shared<nn::ColumnLinear>(6, 12, ranks, nn::ColumnOptions{.together = 3}));
    key = register_module(
        "key", std::make_shared<nn::ColumnLinear>(6, 3 * key_heads, ranks,
                                                  nn::ColumnOptions{.together = 3, .copies = copies}));
    output = register_module("output", std::make_shared<nn::RowLinear>(12, 6, ranks, nn::LinearOptions{}, 3));
    nn::InitialValues values(4);
    for (const nn::LayerParameter& parameter : nn::layer_parameters(*this))
      values.add(parameter.name, parameter.layout().global, {nn::InitialValue::Kind::normal, 0.7});
    nn::fill_parameters(*this, values);
  }
  Tensor forward(const Tensor& x) const {
    const Tensor own = nn::norm(nn::own_rows(x, ranks), norm->all());
    const Tensor heads = query->forward(own).view({x.size(0), -1, 3}),
                 keys = key->forward(own).view({x.size(0), -1, 3});
    const Tensor read = keys.repeat_interleave(heads.size(1) / keys.size(1), 1);
    const Tensor y = own + output->forward((heads * read).flatten(1));
    return nn::join_rows(y, ranks).square().sum();
  }
  nn::TensorParallel ranks;
  std::shared_ptr<nn::Norm> norm;
  std::shared_ptr<nn::ColumnLinear> query, key;
  std::shared_ptr<nn::RowLinear> output;
};

struct GroupedRun {
  NamedTensors weights, gradients;
  std::vector<double> norms;
};

GroupedRun train_grouped(const Mesh& mesh, const EngineOptions& options, int64_t key_heads,
                         bool sequence = false) {
  GroupedNet net({&mesh.group(Axis::tp), sequence}, key_heads);
  Engine engine(net, mesh, options, optim::adamw({.lr = 0.05, .weight_decay = 0.1}));
  GroupedRun run;
  for (int step = 0; step < 4; ++step) {
    const Tensor rows =
        at::sin(at::arange(96, at::kDouble) * 1.3 + step).view({16, 6}).to(net.key->weight.scalar_type());
    const auto parts = rows.tensor_split(2 * mesh.size(Axes::data));
    for (int64_t micro_batch = 0; micro_batch < 2; ++micro_batch) {
      const auto part = static_cast<size_t>(2 * mesh.position(Axes::data) + micro_batch);
      engine.backward(net.forward(parts[part]), micro_batch == 0 ? Reduce::later : Reduce::last);
    }
    engine.finish();
    run.norms.push_back(engine.gradients().norm());
    run.gradients = engine.gradients().by_name(1);
    engine.step({.rates = {.lr = 0.05}});
  }
  engine.compare_replicas();
  for (const auto& [name, tensor] : engine.weights().all()) run.weights[name] = tensor.clone();
  engine.weights().at_first([&](const ListedSource& weights) {
    for (const auto& [name, type] : weights.types())
      EXPECT_TRUE(at::equal(weights.copy(name), run.weights.at(name))) << name << ": as it is saved";
  });
  return run;
}

struct GroupedJob {
  std::string strategy;
  MeshShape shape;
  int64_t key_heads;
  bool sequence = false;
};
const GroupedJob jobs[] = {{"ddp", {.tp = 2}, 1},
                           {"ddp", {.tp = 4}, 1},
                           {"ddp", {.tp = 4}, 2},
                           {"ddp", {.dp_replicate = 2, .tp = 4}, 2},
                           {"zero1", {.dp_shard = 2, .tp = 2}, 1},
                           {"zero2", {.dp_shard = 2, .tp = 2}, 1},
                           {"fsdp", {.dp_shard = 2, .tp = 4}, 2},
                           {"hsdp", {.dp_replicate = 2, .dp_shard = 2, .tp = 2}, 1},
                           {"ddp", {.tp = 4}, 2, true},
                           {"zero1", {.dp_shard = 2, .tp = 2}, 2, true},
                           {"fsdp", {.dp_shard = 2, .tp = 2}, 1, true}};

TEST(CopiedParts, TrainLikeOneRank) {
  for (const GroupedJob& job : jobs) {
    const EngineOptions options = {.precision = Precision::fp64, .bucket_bytes = 64};
    GroupedRun alone;
    comm::run_rank_threads(
        1, [&](Group& group) { alone = train_grouped(mesh_of(group), options, job.key_heads); });
    for (const bool shared : {true, false}) {
      comm::run_rank_threads(job.shape.ranks(), [&](Group& world) {
        SCOPED_TRACE(job.strategy + " on " + job.shape.text());
        EngineOptions own = options;
        own.strategy = job.strategy;
        own.shared_parameters = shared;
        const GroupedRun found = train_grouped(Mesh(world, job.shape), own, job.key_heads, job.sequence);
        for (const auto& [name, expected] : alone.weights)
          EXPECT_TRUE(at::allclose(found.weights.at(name), expected, 1e-10, 1e-10)) << name;
        for (const auto& [name, expected] : alone.gradients)
          EXPECT_TRUE(at::allclose(found.gradients.at(name), expected, 1e-10, 1e-10)) << name;
        for (size_t step = 0; step < alone.norms.size(); ++step)
          EXPECT_NEAR(found.norms[step] / alone.norms[step], 1, 1e-10);
      });
    }
  }
}

// The pieces of which a rank is the first holder are written; those of all ranks are every element once.
TEST(CopiedParts, HaveOneWriter) {
  for (const GroupedJob& job : jobs) {
    WrittenElements elements;
    comm::run_rank_threads(job.shape.ranks(), [&](Group& world) {
      const Mesh mesh(world, job.shape);
      GroupedNet net({&mesh.group(Axis::tp), job.sequence}, job.key_heads);
      Engine engine(net, mesh, {.strategy = job.strategy, .average = AverageOptions{}}, optim::adamw({}));
      elements.add(engine);
    });
    EXPECT_EQ(elements.written, elements.whole) << job.strategy << " on " << job.shape.text();
    EXPECT_EQ(elements.whole.at("optimizer.exp_avg.key.weight"), 18 * job.key_heads);
  }
}

TEST(CopiedParts, ThatDifferAreFound) {
  comm::run_rank_threads(4, [](Group& world) {
    const Mesh mesh(world, {.tp = 4});
    GroupedNet net({&mesh.group(Axis::tp)}, 2);
    Engine engine(net, mesh, {}, optim::adamw({}));
    EXPECT_NO_THROW(engine.compare_replicas());
    {
      const at::NoGradGuard no_grad;
      if (world.rank() == 3) net.key->weight[0][0] += 1;
    }
    EXPECT_THAT(message_of<DistributedError>([&] { engine.compare_replicas(); }),
                has_all("copies of parts", "differ between ranks 3 and 2"));
  });
}

TEST(CopiedParts, MustDivideTheRanks) {
  comm::run_rank_threads(4, [](Group& world) {
    EXPECT_THAT(
        message_of<ConfigError>([&] { nn::ColumnLinear(6, 6, {&world}, {.together = 3, .copies = 3}); }),
        HasSubstr("4 ranks (tp) are not a multiple of 3 copies"));
  });
}

}  // namespace
}  // namespace stretto::parallel
