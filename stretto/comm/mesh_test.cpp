#include "stretto/comm/mesh.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/comm/rank_threads.h"

namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The world's ranks in the calling rank's group, in its order.
std::vector<int> members(const Mesh& mesh, Axes axes) {
  Group& group = mesh.group(axes);
  Tensor all = at::empty({group.size()}, at::kInt);
  group.all_gather(all, at::full({1}, mesh.world().rank(), at::kInt)).wait();
  for (int rank = 0; rank < group.size(); ++rank) EXPECT_EQ(group.world_rank(rank), all[rank].item<int>());
  return {all.const_data_ptr<int>(), all.const_data_ptr<int>() + all.numel()};
}

// Runs `body` on four ranks, whose groups for tp are 0 1 | 2 3, and for data 0 2 | 1 3. Returns the
// DistributedError of each, or "".
std::vector<std::string> errors_on_mesh(const std::string& backend,
                                        const std::function<void(const Mesh&)>& body,
                                        bool compare_calls = false) {
  GroupOptions options;
  options.deadline = std::chrono::hours(1);
  options.compare_calls = compare_calls;
  std::vector<std::string> errors(4);
  const auto run = [&](Group& world) {
    const Mesh mesh(world, {.dp_replicate = 2, .tp = 2});
    try {
      body(mesh);
    } catch (const DistributedError& error) {
      errors[static_cast<size_t>(world.rank())] = error.what();
      throw;
    }
  };
  EXPECT_THROW(comm::run_rank_threads(4, options, run, backend), DistributedError);
  return errors;
}

TEST(Mesh, SizesThatDoNotMultiplyToTheWorldAreRefused) {
  comm::run_rank_threads(2, [](Group& world) {
    EXPECT_THAT(message_of<ConfigError>([&] { Mesh(world, {.dp_replicate = 3, .tp = 2}); }),
                HasSubstr("= 6 ranks, but the job has 2"));
  });
}

TEST(Mesh, AxesNestFromTheFastest) {
  comm::run_rank_threads(8, [](Group& world) {
    const Mesh mesh(world, {.pp = 2, .dp_replicate = 2, .tp = 2});
    const int rank = world.rank();
    EXPECT_THAT(members(mesh, Axis::tp), ElementsAre(rank / 2 * 2, rank / 2 * 2 + 1));
    EXPECT_THAT(members(mesh, Axes::data), ElementsAre(rank / 4 * 4 + rank % 2, rank / 4 * 4 + rank % 2 + 2));
    EXPECT_THAT(members(mesh, Axis::pp), ElementsAre(rank % 4, rank % 4 + 4));
    EXPECT_THAT(members(mesh, Axis::dp_shard), ElementsAre(rank));
    EXPECT_EQ(mesh.position(Axis::tp), rank % 2);
    EXPECT_EQ(mesh.position(Axes::data), rank / 2 % 2);
    EXPECT_EQ(mesh.position(Axis::pp), rank / 4);
    EXPECT_EQ(&mesh.group(Axes::data), &mesh.group(Axis::dp_replicate));
    EXPECT_EQ(mesh.world().size(), 8);
  });
}

TEST(Mesh, DataParallelPeersAreReplicasAndShardsTogether) {
  comm::run_rank_threads(4, [](Group& world) {
    const Mesh mesh(world, {.dp_replicate = 2, .dp_shard = 2});
    const int rank = world.rank();
    EXPECT_EQ(&mesh.group(Axes::data), &world);
    EXPECT_THAT(members(mesh, Axis::dp_shard), ElementsAre(rank / 2 * 2, rank / 2 * 2 + 1));
    EXPECT_THAT(members(mesh, Axis::dp_replicate), ElementsAre(rank % 2, rank % 2 + 2));
  });
}

TEST(Mesh, AlongAnAxisOfOneRankThereIsAGroupOfOne) {
  comm::run_rank_threads(2, [](Group& world) {
    const Mesh mesh(world, {.dp_replicate = 2});
    EXPECT_EQ(&mesh.group(Axes::data), &world);
    EXPECT_EQ(mesh.size(Axis::tp), 1);
    Tensor tensor = at::ones({3});
    mesh.group(Axis::tp).all_reduce(tensor).wait();
    EXPECT_EQ(tensor.sum().item<float>(), 3);
    EXPECT_EQ(&mesh.group(Axis::pp), &mesh.group(Axis::tp));
  });
}

TEST(Mesh, SetsWithTheSameRanksHaveOneGroup) {
  comm::run_rank_threads(8, [](Group& world) {
    const Mesh mesh(world, {.dp_shard = 2, .cp = 2, .tp = 2});
    EXPECT_EQ(&mesh.group(Axes::sum), &mesh.group(Axes::shard));
    EXPECT_EQ(&mesh.group(Axes::data), &mesh.group(Axis::dp_shard));
    EXPECT_EQ(&mesh.group(Axes::stage), &world);
    EXPECT_EQ(&mesh.group(Axes::world), &world);
    EXPECT_NE(&mesh.group(Axis::cp), &mesh.group(Axis::tp));
  });
}

TEST(Mesh, TheTimeInsideCallsIsSummedOverGroups) {
  comm::run_rank_threads(4, [](Group& world) {
    const Mesh mesh(world, {.dp_replicate = 2, .dp_shard = 2});
    for (const Axes axes : {Axes(Axis::dp_shard), Axes(Axis::dp_replicate), Axes::sum, Axes(Axis::tp)}) {
      Group& group = mesh.group(axes);
      const double before = mesh.seconds_inside(), of_group = group.seconds_inside();
      group.barrier();
      EXPECT_GT(mesh.seconds_inside(), before);
      EXPECT_NEAR(mesh.seconds_inside() - before, group.seconds_inside() - of_group, 1e-9)
          << "each group is counted once";
    }
  });
}

TEST(Mesh, SetsWithoutAGroupAreRefused) {
  comm::run_rank_threads(1, [](Group& world) {
    const Mesh mesh(world, {});
    EXPECT_THAT(message_of<ConfigError>([&] { mesh.group(Axis::pp | Axis::cp); }),
                ::testing::AllOf(::testing::StartsWith("mesh: "),
                                 has_all("no group of {pp, cp}", "possible: {tp}, {cp}, {dp_shard}, ")));
  });
}

// Groups and positions agree with the lists that launchers and planners compute without groups.
TEST(Mesh, GroupsAreThoseOfTheShapeInAnyOrderOfAxes) {
  std::vector<int> row(8);
  std::iota(row.begin(), row.end(), 0);
  MeshShape shape = {.pp = 2, .dp_shard = 2, .tp = 2};
  for (const auto& order :
       {all_axes, std::array{Axis::tp, Axis::dp_shard, Axis::pp, Axis::cp, Axis::dp_replicate}}) {
    shape.order = order;
    comm::run_rank_threads(8, [&](Group& world) {
      const Mesh mesh(world, shape);
      for (const Axes axes : {Axes(Axis::pp), Axes(Axis::tp), Axes::data, Axes::stage, Axes::world}) {
        const auto groups = groups_along(shape, axes, row);
        const auto own = std::ranges::find_if(
            groups, [&](const auto& ranks) { return std::ranges::count(ranks, world.rank()) == 1; });
        EXPECT_EQ(members(mesh, axes), *own) << shape.text();
        EXPECT_EQ((*own)[static_cast<size_t>(mesh.position(axes))], world.rank()) << shape.text();
        EXPECT_EQ(mesh.size(axes), std::ssize(*own));
      }
    });
  }
}

// The launcher assigns ranks to two hosts in turn.
TEST(Mesh, TheFastestAxisStaysOnAHost) {
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
      EXPECT_THAT(members(mesh, Axis::tp), ElementsAre(rank % 2, rank % 2 + 2));
      EXPECT_EQ(mesh.group(Axis::tp).transport(), "shared memory, 2 ranks on this host");
      EXPECT_THAT(members(mesh, Axes::data), ElementsAre(rank / 2 * 2, rank / 2 * 2 + 1));
      EXPECT_THAT(mesh.group(Axes::data).transport(), HasSubstr("TCP between 2 hosts"));

      const Mesh flat(world, {.dp_replicate = 4});
      EXPECT_NE(&flat.group(Axes::data), &world) << "other order";
      EXPECT_THAT(members(flat, Axes::data), ElementsAre(0, 2, 1, 3));
      Tensor sum = at::full({1}, rank);
      flat.group(Axes::data).all_reduce(sum).wait();
      EXPECT_EQ(sum.item<int64_t>(), 6);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Mesh, RanksAlongAxesExchangeTensors) {
  comm::run_rank_threads(4, [](Group& world) {
    const Mesh mesh(world, {.dp_replicate = 2, .tp = 2});
    const Tensor own = at::full({2, 1}, world.rank(), at::kInt);
    const AxisRanks parts = mesh.tensor_parallel(), data = mesh.data_parallel();
    EXPECT_EQ(parts.rank(), world.rank() % 2);
    EXPECT_EQ(data.rank(), world.rank() / 2);
    EXPECT_EQ(data.size(), 2);
    const int first = world.rank() / 2 * 2;
    EXPECT_TRUE(at::equal(parts.all_reduce(own), at::full({2, 1}, 2 * first + 1, at::kInt)));
    EXPECT_TRUE(at::equal(parts.all_reduce(own, ReduceOp::max), at::full({2, 1}, first + 1, at::kInt)));
    EXPECT_TRUE(at::equal(parts.all_gather(own.view({2})),
                          at::tensor({first, first, first + 1, first + 1}, at::kInt).view({2, 2})));
    EXPECT_TRUE(at::equal(data.broadcast(own, 1), at::full({2, 1}, 2 + world.rank() % 2, at::kInt)));
    EXPECT_TRUE(at::equal(own, at::full({2, 1}, world.rank(), at::kInt))) << "results are new tensors";
    const Tensor weight = at::ones({1}).requires_grad_();
    EXPECT_FALSE(data.all_reduce(weight * 2).requires_grad());
    const AxisRanks refused(mesh.group(Axes::data), "not now");
    EXPECT_EQ(refused.size(), 2);
    EXPECT_THAT(message_of<ConfigError>([&] { refused.all_reduce(own); }), HasSubstr("not now"));
  });
}

// Rank 2 waits for the failing rank in a sum of a layer, rank 1 in one of gradients, and rank 0 for rank 2.
TEST(Mesh, ARankThatFailsEndsTheSumsOfAllRanks) {
  for (const char* backend : {"shm", "tcp"}) {
    const auto errors = errors_on_mesh(backend, [](const Mesh& mesh) {
      const int rank = mesh.world().rank();
      if (rank == 3) throw ConfigError("the first mistake");
      mesh.group(rank == 2 ? Axes(Axis::tp) : Axes::data).all_reduce(at::ones({8})).wait();
    });
    const auto failed = [&](int rank, const char* group, int peer) {
      return AllOf(
          HasSubstr(fmt::format("rank {}: all_reduce [8] float32 #0 of group {} failed: rank {} ", rank,
                                group, peer)),
          HasSubstr(std::string(backend) == "shm" ? "has failed; see its output" : "closed the connection"));
    };
    EXPECT_THAT(errors[0], failed(0, "dp_replicate", 2));
    EXPECT_THAT(errors[1], failed(1, "dp_replicate", 3));
    EXPECT_THAT(errors[2], failed(2, "tp", 3));
  }
}

// Ranks 1 and 3 are ranks 0 and 1 of their group.
TEST(Mesh, RanksThatCallDifferentCollectivesAreNamedByTheirNumbersInTheJob) {
  for (const char* backend : {"shm", "tcp"}) {
    const auto errors = errors_on_mesh(backend, [](const Mesh& mesh) {
      Group& group = mesh.group(Axes::data);
      const Tensor tensor = at::ones({8});
      (group.rank() == 0 ? group.all_reduce(tensor) : group.broadcast(tensor, 0)).wait();
    });
    EXPECT_THAT(errors[3], AllOf(HasSubstr("rank 3: broadcast [8] float32 #0 of group dp_replicate"),
                                 HasSubstr("rank 3 called broadcast of 8 float32 (root 1)"),
                                 HasSubstr("rank 1 called all_reduce of 8 float32 (sum)")));
  }
  const auto compared = errors_on_mesh(
      "shm",
      [](const Mesh& mesh) {
        Group& group = mesh.group(Axes::data);
        group.broadcast(at::ones({8}), group.rank()).wait();
      },
      /*compare_calls=*/true);
  EXPECT_THAT(compared[3], has_all("rank 1 called broadcast [8] float32 #0 root 1",
                                   "rank 3 called broadcast [8] float32 #0 root 3", "in group dp_replicate"));
}

TEST(Group, HasADevice) {
  comm::run_rank_threads(1, [](Group& group) { EXPECT_TRUE(group.device().is_cpu()); });
  GroupOptions options;
  for (const at::Device device : {at::Device(at::kCPU), at::Device(at::kCUDA)}) {
    options.device = device;
    EXPECT_THAT(message_of<ConfigError>([&] { const Group group("nccl", memory_store(), 0, 1, options); }),
                HasSubstr("expected a GPU with its index, for example cuda:0"))
        << device;
  }
  options.device = at::Device(at::kCUDA, 0);
  EXPECT_THROW(Group("shm", memory_store(), 0, 1, options), ConfigError);
}

}  // namespace
}  // namespace stretto
