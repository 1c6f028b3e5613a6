#include <cctype>
#include <cerrno>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/file_faults.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/nn/sharded.h"
#include "stretto/parallel/engine_fixture.h"

// State of optimizers in files.
namespace stretto::parallel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Keeping the state in files changes no result of any optimizer.
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

// MiB of this process's memory that are pages of files in `folder`.
double resident_mib(const std::filesystem::path& folder) {
  std::ifstream maps("/proc/self/smaps");
  double kib = 0;
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    if (std::isdigit(line[0]) || std::islower(line[0]))
      inside = line.find(folder.string()) != std::string::npos;
    if (inside && line.starts_with("Rss:")) kib += std::stod(line.substr(4));
  }
  return kib / 1024;
}

// Blocks of 4 MiB, one after the other.
struct Layers : torch::nn::Module {
  Layers() {
    for (int i = 0; i < 6; ++i)
      layers.push_back(
          register_module("layer" + std::to_string(i), nn::make_sharded<nn::Linear>(1024, 1024)));
    at::NoGradGuard no_grad;
    for (Tensor& parameter : parameters()) parameter.fill_(1e-3);
  }
  std::vector<std::shared_ptr<nn::Sharded<nn::Linear>>> layers;
};

// The parameters are 24 MiB, the moments 48 MiB.
TEST(Engine, FilesAreInMemoryOnlyWhileTheyAreUsed) {
  const TempFolder folder;
  for (const int ranks : {1, 2}) {
    SCOPED_TRACE(ranks);
    comm::run_rank_threads(ranks, [&](Group& group) {
      Layers net;
      const Mesh mesh = mesh_of(group, "fsdp");
      Engine engine(net, mesh,
                    {.strategy = "fsdp",
                     .offload_optimizer = folder.path(),
                     .offload_parameters = folder.path(),
                     .offloaded_at_once = 1 << 18},
                    optim::adamw({.lr = 0.1}));
      const auto resident = [&] {
        group.barrier();
        const double mib = resident_mib(folder.path());
        group.barrier();
        return mib;
      };
      EXPECT_LT(resident(), 4) << "after setup";
      State state;
      engine.add_state(state);
      for (const Entry& entry : state.tensors)
        for (const Piece& piece : entry.pieces) piece.data.sum();
      EXPECT_GT(resident(), 70) << "all of it has been read";
      Tensor x = at::ones({2, 1024});
      for (const auto& layer : net.layers) x = layer->forward(x);
      EXPECT_LT(resident(), 52) << "after forward, which leaves the parameters";
      engine.backward(x.sum(), Reduce::last);
      engine.finish();
      EXPECT_LT(resident(), 52) << "after backward";
      engine.step({.rates = {.lr = 0.1}, .grad_scale = 1});
      EXPECT_LT(resident(), 4) << "after the step";
    });
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
  EXPECT_THAT(message_of<ConfigError>([&] { setup(folder.path() / "gone"); }),
              AllOf(StartsWith("offload_optimizer: "), HasSubstr("No such file or directory")));
  const file_faults::Injection full({.call = 2, .error = ENOSPC});
  EXPECT_THAT(message_of<ConfigError>([&] { setup(folder.path()); }),
              AllOf(HasSubstr("No space left on device"), HasSubstr("room for the state of its ranks")));
}

}  // namespace
}  // namespace stretto::parallel
