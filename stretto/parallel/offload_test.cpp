#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/file_faults.h"
#include "stretto/base/temp_folder.h"
#include "stretto/parallel/engine_fixture.h"

// State of optimizers in files.
namespace stretto::parallel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

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

}  // namespace
}  // namespace stretto::parallel
