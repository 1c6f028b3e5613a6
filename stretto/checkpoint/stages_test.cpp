#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"
#include "stretto/checkpoint/load.h"
#include "stretto/checkpoint/writer.h"
#include "stretto/comm/mesh.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/nn/layers.h"
#include "stretto/optim/optimizers.h"
#include "stretto/parallel/engine.h"
#include "stretto/tensor/safetensors.h"
#include "stretto/weights/export.h"

// Stages of a pipeline hold different parameters: what each rank lists differs, and every tensor is written
// once. Equal values are the same model file, whichever ranks held them.
namespace stretto::checkpoint {
namespace {

// The layers of one stage, or of all, with the same names and equal initial values.
struct Net : torch::nn::Module {
  Net(int stage, int stages, double seed) {
    at::NoGradGuard no_grad;
    for (int layer = 0; layer < 2; ++layer) {
      if (stages == 2 && layer != stage) continue;
      layers.push_back(register_module(fmt::format("layer{}", layer),
                                       std::make_shared<nn::Linear>(layer == 0 ? 5 : 3, layer == 0 ? 3 : 4)));
      mean = register_buffer(fmt::format("mean{}", layer), at::full({3}, seed + layer));
      register_parameter(fmt::format("frozen{}", layer), at::full({2, 2}, seed - layer),
                         /*requires_grad=*/false);
      at::Generator random = at::detail::createCPUGenerator(static_cast<uint64_t>(seed) + layer);
      for (Tensor& parameter : layers.back()->parameters()) parameter.normal_(0, 0.5, random);
    }
  }
  Tensor forward() const {
    Tensor sum;
    for (const auto& layer : layers) {
      const int64_t inputs = layer->weight.size(1);
      const Tensor x = at::sin(at::arange(2 * inputs, layer->weight.options())).view({2, inputs});
      const Tensor loss = layer->forward(x).square().sum();
      sum = sum.defined() ? sum + loss : loss;
    }
    return sum;
  }
  std::vector<std::shared_ptr<nn::Linear>> layers;
  Tensor mean;
};

struct Job {
  std::string strategy;
  MeshShape shape;
  Precision precision = Precision::fp32;
};

// Makes the engine of each rank and calls `act` with it and its state table.
void on_ranks(
    const Job& job, double seed,
    const std::function<void(Group& world, parallel::Engine& engine, Net& net, State& state)>& act) {
  comm::run_rank_threads(job.shape.ranks(), [&](Group& world) {
    const Mesh mesh(world, job.shape);
    Net net(mesh.position(Axis::pp), job.shape.pp, seed);
    parallel::Engine engine(
        net, mesh,
        {.strategy = job.strategy, .precision = job.precision, .average = parallel::AverageOptions()},
        optim::adamw({.lr = 0.1}));
    engine.backward(net.forward(), parallel::Reduce::last);
    engine.finish();
    engine.step({.rates = {.lr = 0.1}, .grad_scale = 1.0 / mesh.size(Axes::data)});
    State state;
    engine.add_state(state);
    state.scalars["exported_config"] = nlohmann::json::object();
    act(world, engine, net, state);
  });
}

void save(const Job& job, const std::filesystem::path& folder, NamedTensors& expected) {
  std::mutex mutex;
  on_ranks(job, /*seed=*/1, [&](Group& world, parallel::Engine& engine, Net&, State& state) {
    Writer writer(world, {.folder = folder});
    writer.save(state, 1);
    EXPECT_EQ(writer.finish(), "");
    for (const auto& [name, tensor] : engine.weights().all()) {
      const std::scoped_lock lock(mutex);
      expected["model." + name] = tensor.clone();
    }
  });
}

// The whole tensors of a checkpoint.
NamedTensors contents(const std::filesystem::path& checkpoint) {
  NamedTensors tensors;
  comm::run_rank_threads(1, [&](Group& group) {
    State state;
    for (const auto& [name, entry] : checkpoint_format::read_manifest(checkpoint).tensors) {
      tensors[name] =
          at::empty({count_elements(entry.shape)}, entry.dtype == "BF16" ? at::kBFloat16 : at::kFloat);
      state.tensors.push_back(whole_entry(name, entry.shape, tensors[name]));
      tensors[name] = tensors[name].view(entry.shape);
    }
    load(group, checkpoint, state);
  });
  return tensors;
}

int64_t written_elements(const std::filesystem::path& checkpoint) {
  int64_t elements = 0;
  for (const auto& [name, entry] : checkpoint_format::read_manifest(checkpoint).tensors)
    for (const auto& piece : entry.pieces) elements += piece.region.elements();
  return elements;
}

// The bytes of the model file that a checkpoint is converted to.
std::string converted(const std::filesystem::path& checkpoint) {
  const TempFolder folder;
  weights::export_model(checkpoint, folder.path() / "model");
  return read_file(folder.path() / "model/model.safetensors");
}

const std::vector<Job>& jobs() {
  static const std::vector<Job> all = {{"ddp", {}},
                                       {"ddp", {.pp = 2}},
                                       {"ddp", {.pp = 2, .dp_replicate = 2}},
                                       {"zero1", {.pp = 2, .dp_shard = 2}},
                                       {"zero2", {.dp_shard = 3}},
                                       {"fsdp", {.pp = 2, .dp_shard = 2}},
                                       {"hsdp", {.pp = 2, .dp_replicate = 2, .dp_shard = 2}}};
  return all;
}

TEST(Stages, WriteEachTensorOnceAndResumeOnAnyOtherShape) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    for (Job from : jobs()) {
      from.precision = precision;
      const TempFolder folder;
      NamedTensors expected;
      save(from, folder.path(), expected);
      const auto path = checkpoint_format::checkpoint_path(folder.path(), 1);
      const NamedTensors saved = contents(path);
      const std::string model = converted(path);
      EXPECT_EQ(saved.size(), 4u * 4 + 2 * 2) << "four entries of each parameter; frozen tensors and buffers";
      int64_t elements = 0;
      for (const auto& [name, tensor] : saved) elements += tensor.numel();
      EXPECT_EQ(written_elements(path), elements);
      for (const auto& [name, tensor] : expected) EXPECT_TRUE(saved.at(name).equal(tensor)) << name;
      for (int rank = 0; rank < from.shape.ranks(); ++rank) {
        EXPECT_FALSE(SafetensorsFile(path / fmt::format("rank-{:05}.safetensors", rank)).names().empty())
            << from.strategy << " " << from.shape.text() << ": rank " << rank << " writes nothing";
      }
      for (Job to : jobs()) {
        to.precision = precision;
        const TempFolder again;
        on_ranks(to, /*seed=*/7, [&](Group& world, parallel::Engine& engine, Net&, State& state) {
          load(world, path, state);
          engine.resume(state);
          Writer writer(world, {.folder = again.path()});
          State resumed;
          engine.add_state(resumed);
          resumed.scalars = state.scalars;
          writer.save(resumed, 1);
          EXPECT_EQ(writer.finish(), "");
          for (const auto& [name, tensor] : engine.weights().all())
            EXPECT_TRUE(tensor.equal(saved.at("model." + name))) << name;
        });
        const auto written = checkpoint_format::checkpoint_path(again.path(), 1);
        EXPECT_TRUE(converted(written) == model) << from.strategy << " to " << to.strategy;
        const NamedTensors resumed = contents(written);
        EXPECT_EQ(resumed.size(), saved.size());
        for (const auto& [name, tensor] : saved)
          EXPECT_TRUE(resumed.at(name).equal(tensor))
              << from.strategy << " to " << to.strategy << ": " << name;
      }
    }
  }
}

}  // namespace
}  // namespace stretto::checkpoint
