#include "stretto/comm/mesh.h"

#include <climits>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/comm/store.h"

namespace stretto {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The world's ranks in the calling rank's group of that name, in its order.
std::vector<int> members(const Mesh& mesh, std::string_view name) {
  Group& group = mesh.group(name);
  Tensor all = at::empty({group.size()}, at::kInt);
  group.all_gather(all, at::full({1}, mesh.world().rank(), at::kInt)).wait();
  return {all.const_data_ptr<int>(), all.const_data_ptr<int>() + all.numel()};
}

TEST(MeshShape, MultipliesAndIsWritten) {
  const MeshShape shape = {.pp = 2, .dp_replicate = 3, .dp_shard = 4, .tp = 5};
  EXPECT_EQ(shape.ranks(), 120);
  EXPECT_EQ(shape.text(), "pp 2 x dp_replicate 3 x dp_shard 4 x tp 5");
  EXPECT_EQ((MeshShape{.pp = 1 << 20, .tp = 1 << 20}).ranks(), INT_MAX);
  EXPECT_EQ(Mesh::data_parallel(7).ranks(), 7);
}

TEST(Mesh, SizesThatDoNotMultiplyToTheWorldAreRefused) {
  run_rank_threads(2, [](Group& world) {
    try {
      const Mesh mesh(world, {.dp_replicate = 3, .tp = 2});
      FAIL();
    } catch (const ConfigError& error) {
      EXPECT_STREQ(
          error.what(),
          "mesh: pp 1 x dp_replicate 3 x dp_shard 1 x tp 2 = 6 ranks, but the job has 2; change a dimension or the number of ranks");
    }
    EXPECT_THROW(Mesh(world, {.pp = 0, .tp = 2}), ConfigError);
    EXPECT_THROW(Mesh(world, {.pp = -1, .tp = -2}), ConfigError);
  });
}

TEST(Mesh, DimensionsNestFromTheInnermost) {
  run_rank_threads(8, [](Group& world) {
    const Mesh mesh(world, {.pp = 2, .dp_replicate = 2, .tp = 2});
    const int rank = world.rank();
    EXPECT_THAT(members(mesh, "tp"), ElementsAre(rank / 2 * 2, rank / 2 * 2 + 1));
    EXPECT_THAT(members(mesh, "dp"), ElementsAre(rank / 4 * 4 + rank % 2, rank / 4 * 4 + rank % 2 + 2));
    EXPECT_THAT(members(mesh, "pp"), ElementsAre(rank % 4, rank % 4 + 4));
    EXPECT_THAT(members(mesh, "dp_shard"), ElementsAre(rank));
    EXPECT_EQ(mesh.position("tp"), rank % 2);
    EXPECT_EQ(mesh.position("dp"), rank / 2 % 2);
    EXPECT_EQ(mesh.position("pp"), rank / 4);
    EXPECT_EQ(&mesh.group("dp"), &mesh.group("dp_replicate"));
    EXPECT_EQ(mesh.world().size(), 8);
  });
}

TEST(Mesh, DataParallelPeersAreReplicasAndShardsTogether) {
  run_rank_threads(4, [](Group& world) {
    const Mesh mesh(world, {.dp_replicate = 2, .dp_shard = 2});
    const int rank = world.rank();
    EXPECT_EQ(&mesh.group("dp"), &world);
    EXPECT_THAT(members(mesh, "dp_shard"), ElementsAre(rank / 2 * 2, rank / 2 * 2 + 1));
    EXPECT_THAT(members(mesh, "dp_replicate"), ElementsAre(rank % 2, rank % 2 + 2));
  });
}

TEST(Mesh, WithoutADimensionThereIsAGroupOfOne) {
  run_rank_threads(2, [](Group& world) {
    const Mesh mesh(world, Mesh::data_parallel(2));
    EXPECT_EQ(&mesh.group("dp"), &world);
    EXPECT_EQ(mesh.size("tp"), 1);
    Tensor tensor = at::ones({3});
    mesh.group("tp").all_reduce(tensor).wait();
    EXPECT_EQ(tensor.sum().item<float>(), 3);
    EXPECT_EQ(&mesh.group("pp"), &mesh.group("tp"));
  });
}

TEST(Mesh, UnknownNamesAreRefused) {
  run_rank_threads(1, [](Group& world) {
    const Mesh mesh(world, {});
    try {
      mesh.group("data");
      FAIL();
    } catch (const ConfigError& error) {
      EXPECT_STREQ(error.what(),
                   "mesh: \"data\" is not a group; possible: pp, dp_replicate, dp_shard, tp, dp");
    }
  });
}

// A launcher that deals ranks over two hosts in turn.
TEST(Mesh, TheInnermostDimensionStaysOnAHost) {
  const std::vector<std::string> hosts = {"a", "b", "a", "b"};
  const auto store = memory_store();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      GroupOptions options;
      options.deadline = std::chrono::seconds(20);
      options.host = hosts[static_cast<size_t>(rank)];
      Group world("shm", store, rank, 4, options);
      const Mesh mesh(world, {.dp_replicate = 2, .tp = 2});
      EXPECT_THAT(members(mesh, "tp"), ElementsAre(rank % 2, rank % 2 + 2));
      EXPECT_EQ(mesh.group("tp").transport(), "shared memory, 2 ranks on this host");
      EXPECT_THAT(members(mesh, "dp"), ElementsAre(rank / 2 * 2, rank / 2 * 2 + 1));
      EXPECT_THAT(mesh.group("dp").transport(), HasSubstr("TCP between 2 hosts"));

      const Mesh flat(world, Mesh::data_parallel(4));
      EXPECT_NE(&flat.group("dp"), &world) << "other order";
      EXPECT_THAT(members(flat, "dp"), ElementsAre(0, 2, 1, 3));
      Tensor sum = at::full({1}, rank);
      flat.group("dp").all_reduce(sum).wait();
      EXPECT_EQ(sum.item<int64_t>(), 6);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Group, HasADevice) {
  run_rank_threads(1, [](Group& group) { EXPECT_TRUE(group.device().is_cpu()); });
  GroupOptions options;
  for (const at::Device device : {at::Device(at::kCPU), at::Device(at::kCUDA)}) {
    options.device = device;
    try {
      const Group group("nccl", memory_store(), 0, 1, options);
      FAIL() << device;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("expected a GPU with its index, for example cuda:0"));
    }
  }
  options.device = at::Device(at::kCUDA, 0);
  EXPECT_THROW(Group("shm", memory_store(), 0, 1, options), ConfigError);
}

}  // namespace
}  // namespace stretto
