#include "stretto/comm/group.h"

#include <csignal>
#include <cstdlib>
#include <numeric>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/comm/job.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/comm/store_handle.h"

namespace stretto {
namespace {

Tensor filled(int rank, at::ScalarType dtype = at::kFloat) {
  return at::full({4}, rank + 1, at::TensorOptions(dtype));
}

// A process that mpirun has started is a rank: the tests then run over MPI, else over the other back ends.
class MpiRank : public ::testing::Environment {
 public:
  static bool here() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }
  void SetUp() override { world = comm::join_job("cpu", "", "mpi").group; }
  void TearDown() override {
    world->barrier();
    world = nullptr;
  }
  static void run(int ranks, const std::function<void(Group&)>& body) {
    ASSERT_GE(world->size(), ranks);
    std::vector<int> members(static_cast<size_t>(ranks));
    std::iota(members.begin(), members.end(), 0);
    if (const auto group = world->subgroup(members, "world")) body(*group);
  }
  static inline std::unique_ptr<Group> world;
};
const auto* const mpi_rank = MpiRank::here() ? ::testing::AddGlobalTestEnvironment(new MpiRank()) : nullptr;

std::vector<const char*> backends() {
  if (MpiRank::here()) return {"mpi"};
  return {"shm", "tcp", "gloo"};
}

// In addition, tcp with encrypted connections.
std::vector<const char*> backends_and_encryption() {
  auto names = backends();
  if (!MpiRank::here()) names.push_back("encrypted");
  return names;
}

// Every back end for CPU tensors.
class AnyBackend : public ::testing::TestWithParam<const char*> {
 protected:
  static std::string backend() { return std::string_view(GetParam()) == "encrypted" ? "tcp" : GetParam(); }
  static void run(int ranks, const std::function<void(Group&)>& body) {
    GroupOptions options;
    options.deadline = std::chrono::seconds(20);
    run(ranks, options, body);
  }
  static void run(int ranks, const GroupOptions& options, const std::function<void(Group&)>& body) {
    if (MpiRank::here()) return MpiRank::run(ranks, body);
    GroupOptions own = options;
    own.encrypt = std::string_view(GetParam()) == "encrypted";
    own.secret = own.encrypt ? "s3cret" : options.secret;
    comm::run_rank_threads(ranks, own, body, backend());
  }
};

TEST_P(AnyBackend, AllReduceEveryDtype) {
  for (const int ranks : {1, 2, 4}) {
    run(ranks, [&](Group& group) {
      for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kLong, at::kInt}) {
        Tensor tensor = filled(group.rank(), dtype);
        group.all_reduce(tensor).wait();
        EXPECT_EQ(tensor[3].item<double>(), ranks * (ranks + 1) / 2);
      }
      Tensor largest = filled(group.rank());
      group.all_reduce(largest, ReduceOp::max).wait();
      EXPECT_EQ(largest[0].item<float>(), ranks);
    });
  }
}

TEST_P(AnyBackend, ReduceSumsAtOneRank) {
  for (const int ranks : {1, 2, 4}) {
    run(ranks, [&](Group& group) {
      for (int destination = 0; destination < ranks; ++destination) {
        for (const int64_t elements : {1, 7, 100'003}) {
          Tensor tensor = at::full({elements}, group.rank() + 1.0);
          group.reduce(tensor, destination).wait();
          if (group.rank() == destination) {
            EXPECT_TRUE(at::equal(tensor, at::full({elements}, ranks * (ranks + 1) / 2.0))) << elements;
          }
        }
      }
      EXPECT_THROW(group.reduce(at::ones({1}), ranks), ConfigError);
    });
  }
}

TEST_P(AnyBackend, GathersScattersAndExchanges) {
  for (const int ranks : {1, 2, 4}) {
    run(ranks, [&](Group& group) {
      const Tensor all = at::arange(1, ranks + 1, at::kFloat).repeat_interleave(4);
      Tensor gathered = at::empty({4 * ranks});
      group.all_gather(gathered, filled(group.rank())).wait();
      EXPECT_TRUE(at::equal(gathered, all));

      Tensor reduced = at::empty({4});
      group.reduce_scatter(reduced, all.clone()).wait();
      EXPECT_EQ(reduced[0].item<float>(), ranks * (group.rank() + 1));

      Tensor exchanged = at::empty({ranks});
      group.all_to_all(exchanged, at::full({ranks}, group.rank() + 1.0f)).wait();
      EXPECT_TRUE(at::equal(exchanged, at::arange(1, ranks + 1, at::kFloat)));
    });
  }
}

TEST_P(AnyBackend, CommonMemoryIsWrittenByOneAndReadByAll) {
  run(3, [&](Group& group) {
    EXPECT_EQ(group.shares_memory(), std::string_view(GetParam()) == "shm");
    const Tensor common = group.common_memory(3000, at::kFloat);
    EXPECT_EQ(common.defined(), group.shares_memory());
    if (!common.defined()) return;
    EXPECT_EQ(common.abs().max().item<float>(), 0);
    group.barrier();
    common.slice(0, 1000 * group.rank(), 1000 * (group.rank() + 1)).fill_(group.rank() + 1);
    group.barrier();
    EXPECT_EQ(common.sum().item<float>(), 1000 * (1 + 2 + 3));
    // Tensors in common memory are reduced in place, too.
    Tensor own = group.allocator()(5000, at::kFloat, at::kCPU);
    own.fill_(1);
    group.reduce(own, 2).wait();
    EXPECT_TRUE(group.rank() != 2 || own.min().item<float>() == 3);
  });
}

TEST_P(AnyBackend, BytesAndBarrier) {
  for (const int ranks : {1, 2, 4}) {
    run(ranks, [&](Group& group) {
      group.barrier();
      EXPECT_EQ(group.broadcast_bytes(group.rank() == 0 ? "decided" : "?", 0), "decided");
      EXPECT_EQ(group.broadcast_bytes("", 0), "");
      const auto all = group.all_gather_bytes(std::string(static_cast<size_t>(group.rank()), 'x'));
      ASSERT_EQ(std::ssize(all), ranks);
      for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(std::ssize(all[static_cast<size_t>(rank)]), rank);
    });
  }
}

TEST_P(AnyBackend, SendAndRecv) {
  run(2, [](Group& group) {
    Tensor tensor = filled(group.rank());
    if (group.rank() == 0) {
      group.send(tensor, 1, 7).wait();
    } else {
      group.recv(tensor, 0, 7).wait();
      EXPECT_EQ(tensor[0].item<float>(), 1);
    }
  });
}

TEST_P(AnyBackend, MessagesBeyondTheBufferAreSentWhileTheSenderWaits) {
  constexpr int messages = 200;
  run(2, [](Group& group) {
    Tensor reply = at::zeros({1});
    if (group.rank() == 0) {
      std::vector<Work> sends;
      for (int i = 0; i < messages; ++i) sends.push_back(group.send(at::full({3}, i), 1));
      group.recv(reply, 1).wait();
      for (Work& send : sends) send.wait();
    } else {
      for (int i = 0; i < messages; ++i) {
        Tensor message = at::zeros({3}, at::kLong);
        group.recv(message, 0).wait();
        EXPECT_EQ(message[2].item<int64_t>(), i);
      }
      group.send(reply, 0).wait();
    }
  });
}

TEST_P(AnyBackend, SubgroupsWorkConcurrentlyWithTheWhole) {
  run(4, [](Group& group) {
    const bool even = group.rank() % 2 == 0;
    const auto evens = group.subgroup({0, 2}, "evens");
    const auto odds = group.subgroup({1, 3}, "odds");
    EXPECT_EQ(evens != nullptr, even);
    Group& own = even ? *evens : *odds;
    Tensor tensor = filled(group.rank());
    own.all_reduce(tensor).wait();
    EXPECT_EQ(tensor[0].item<float>(), even ? 4 : 6);
    EXPECT_EQ(own.rank(), group.rank() / 2);
  });
}

TEST_P(AnyBackend, TensorsMayBeLargerThanAnyBuffer) {
  constexpr int64_t elements = 3'000'001;
  run(4, [](Group& group) {
    const Tensor values = at::arange(elements, at::kDouble) * (group.rank() + 1);
    Tensor sum = values.clone();
    group.all_reduce(sum).wait();
    EXPECT_TRUE(at::equal(sum, at::arange(elements, at::kDouble) * 10));
    Tensor all = at::empty({4 * elements}, at::kDouble);
    Tensor own = all.slice(0, group.rank() * elements, (group.rank() + 1) * elements);
    own.copy_(values);
    group.all_gather(all, own).wait();  // in place
    for (int rank = 0; rank < 4; ++rank)
      EXPECT_EQ(all[(rank + 1) * elements - 1].item<double>(), (rank + 1) * (elements - 1.0));
  });
}

TEST_P(AnyBackend, ManyReductionsInFlight) {
  run(2, [](Group& group) {
    std::vector<Tensor> tensors;
    std::vector<Work> works;
    for (int i = 0; i < 8; ++i) {
      tensors.push_back(at::full({1000}, i + group.rank()));
      works.push_back(group.all_reduce(tensors.back()));
    }
    for (int i = 0; i < 8; ++i) {
      works[static_cast<size_t>(i)].wait();
      EXPECT_EQ(tensors[static_cast<size_t>(i)][999].item<int64_t>(), 2 * i + 1);
    }
  });
}

TEST_P(AnyBackend, WrongShapesAreNamed) {
  run(2, [](Group& group) {
    EXPECT_EQ(message_of<ShapeError>([&] { group.all_gather(at::empty({5}), at::empty({2})).wait(); }),
              "all_gather: [5] Float must hold 2 times [2] Float");
    EXPECT_THROW(group.all_to_all(at::empty({4}, at::kBFloat16), at::ones({4})), ShapeError);
  });
}

TEST_P(AnyBackend, RanksThatDoNotExistAreRefused) {
  run(2, [](Group& group) {
    Tensor one = at::ones({1});
    for (const int rank : {-1, 2}) {
      EXPECT_THROW(group.broadcast(one, rank), ConfigError);
      EXPECT_THROW(group.send(one, rank), ConfigError);
      EXPECT_THROW(group.recv(one, rank), ConfigError);
    }
  });
}

TEST_P(AnyBackend, MissingPeerEndsAtTheDeadline) {
  run(2, [](Group& group) {
    if (group.rank() == 1) return;  // never joins the reduction
    EXPECT_THAT(message_of<DistributedError>([&] { group.all_reduce(at::ones({2})).wait(); }),
                ::testing::HasSubstr("rank 0: all_reduce [2] float32 #0 of group world"));
  });
}

class ComparedCalls : public AnyBackend {
 protected:
  // The error messages of two ranks that compare their calls.
  static std::vector<std::string> disagreement(const std::function<void(Group&)>& first,
                                               const std::function<void(Group&)>& second) {
    std::vector<std::string> messages(2, "nothing");
    GroupOptions options;
    options.deadline = std::chrono::seconds(20);
    options.compare_calls = true;
    run(2, options, [&](Group& group) {
      Tensor same = at::ones({3});
      for (int i = 0; i < 17; ++i) group.all_reduce(same).wait();
      try {
        (group.rank() == 0 ? first : second)(group);
      } catch (const DistributedError& error) {
        messages[static_cast<size_t>(group.rank())] = error.what();
      }
    });
    return messages;
  }
};

TEST_P(ComparedCalls, BothRanksReportBothCalls) {
  const auto messages =
      disagreement([](Group& group) { group.all_reduce(at::ones({8})).wait(); },
                   [](Group& group) { group.all_gather(at::empty({8}), at::ones({4})).wait(); });
  EXPECT_THAT(messages[0],
              ::testing::AllOf(::testing::StartsWith("rank 1 called all_gather [4] float32 #17, "),
                               has_all("rank 0 called all_reduce [8] float32 #17, ", "in group world",
                                       "the same calls in the same order")));
  EXPECT_THAT(messages[1],
              ::testing::AllOf(::testing::StartsWith("rank 0 called all_reduce [8] float32 #17, "),
                               has_all("rank 1 called all_gather [4] float32 #17, ")));
}

TEST_P(ComparedCalls, MoreThanTheShapeIsCompared) {
  const auto messages =
      disagreement([](Group& group) { group.all_reduce(at::ones({8})).wait(); },
                   [](Group& group) { group.all_reduce(at::ones({8}), ReduceOp::max).wait(); });
  EXPECT_THAT(
      messages[0],
      ::testing::StartsWith(
          "rank 1 called all_reduce [8] float32 #17 max, rank 0 called all_reduce [8] float32 #17 sum"));
  const auto roots = disagreement([](Group& group) { group.broadcast(at::ones({8}), 0).wait(); },
                                  [](Group& group) { group.broadcast(at::ones({8}), 1).wait(); });
  EXPECT_THAT(roots[1], ::testing::StartsWith("rank 0 called broadcast [8] float32 #17 root 0, rank 1"));
  const auto types = disagreement([](Group& group) { group.all_reduce(at::ones({8})).wait(); },
                                  [](Group& group) { group.all_reduce(at::ones({8}, at::kLong)).wait(); });
  EXPECT_THAT(types[0], ::testing::HasSubstr("rank 1 called all_reduce [8] int64 #17, rank 0"));
}

TEST_P(ComparedCalls, AMissingPeerIsNamed) {
  GroupOptions options;
  options.deadline = std::chrono::milliseconds(300);
  options.compare_calls = true;
  run(2, options, [&](Group& group) {
    if (group.rank() == 1) return;
    EXPECT_THAT(message_of<DistributedError>([&] { group.all_reduce(at::ones({8})).wait(); }),
                has_all("rank 0 called all_reduce [8] float32 #0", "rank 1 has not announced its call #0",
                        "group world"));
  });
}

TEST_P(ComparedCalls, EveryCallWorksIfRanksAgree) {
  GroupOptions options;
  options.deadline = std::chrono::seconds(20);
  options.compare_calls = true;
  run(4, options, [&](Group& group) {
    Tensor message = filled(group.rank());
    if (group.rank() == 0) group.send(message, 1).wait();
    if (group.rank() == 1) group.recv(message, 0).wait();
    group.barrier();
    EXPECT_EQ(group.broadcast_bytes(group.rank() == 2 ? "decided" : "", 2), "decided");
    EXPECT_EQ(group.all_gather_bytes("x").size(), 4u);
    const auto evens = group.subgroup({0, 2}, "evens");
    Tensor own = at::ones({4});
    if (evens) evens->all_reduce(own).wait();
    Tensor gathered = at::empty({16});
    group.all_gather(gathered, own).wait();
    group.reduce_scatter(own, gathered).wait();
  });
}

TEST_P(AnyBackend, WorkOfRankZeroMayTakeLongerThanTheDeadline) {
  GroupOptions options;
  options.deadline = std::chrono::milliseconds(300);
  std::atomic<bool> ready = false;
  run(3, options, [&](Group& group) {
    group.rank_0_first("tokenising", [&] {
      EXPECT_EQ(group.rank(), 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(700));
      ready = true;
    });
    EXPECT_TRUE(ready);
    EXPECT_THAT(
        message_of([&] { group.rank_0_first("reading", [] { throw DataError("train.tsv:3: no label"); }); }),
        "train.tsv:3: no label");
    EXPECT_NO_THROW(group.barrier());
  });
}

TEST_P(AnyBackend, EveryCollectiveIsInTheFlightRecord) {
  const cluster::FlightBoard board(2);
  const auto store = memory_store();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      StoreHandle handle = *store;
      handle.recorder = cluster::FlightRecorder::open(board.path(), rank);
      Group group(backend(), std::make_shared<StoreHandle>(handle), rank, 2);
      Tensor tensor = at::ones({2, 8}, at::kBFloat16);
      group.all_reduce(tensor).wait();
      const auto both = group.subgroup({0, 1}, "both");
      both->barrier();
      if (rank == 0) {
        group.send(tensor, 1).wait();
      } else {
        group.recv(tensor, 0).wait();
      }
      if (rank == 0) const Work never_waited_for = group.all_reduce(tensor);
      if (rank == 1) group.all_reduce(tensor).wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto first = board.read(0).collectives, second = board.read(1).collectives;
  ASSERT_EQ(first.size(), 4u);
  ASSERT_EQ(second.size(), 4u);
  const cluster::Collective& call = first[0].call;
  EXPECT_EQ(call.operation + " " + call.shape + " " + call.dtype, "all_reduce [2, 8] bfloat16");
  EXPECT_EQ(call.bytes, 32);
  EXPECT_EQ(call.group, "world");
  EXPECT_EQ(call.group_size, 2);
  EXPECT_GE(first[0].ended, first[0].waiting_since);
  EXPECT_EQ(first[1].call.operation + first[1].call.group, "barrierboth");
  EXPECT_EQ(first[1].call.group_id, second[1].call.group_id);
  EXPECT_NE(first[1].call.group_id, call.group_id);
  EXPECT_EQ(first[2].call.operation + second[2].call.operation, "sendrecv");
  EXPECT_EQ(first[2].call.group_id, 0u);
  EXPECT_EQ(first[3].call.sequence, 1u);
  EXPECT_EQ(first[3].waiting_since + first[3].ended, 0);
  EXPECT_GT(second[3].ended, 0);
}

const auto name_of_backend = [](const auto& backend) { return std::string(backend.param); };
INSTANTIATE_TEST_SUITE_P(Backends, AnyBackend, ::testing::ValuesIn(backends_and_encryption()),
                         name_of_backend);
INSTANTIATE_TEST_SUITE_P(Backends, ComparedCalls, ::testing::ValuesIn(backends()), name_of_backend);

TEST(Group, ABackEndThatCannotEncryptIsRefused) {
  GroupOptions options;
  options.secret = "s3cret";
  options.encrypt = true;
  EXPECT_THAT(message_of<ConfigError>([&] { Group("gloo", memory_store(), 0, 1, options); }),
              ::testing::HasSubstr("back end gloo: it cannot encrypt its traffic"));
}

// Rank 0 would end without a message when it sends to a peer that has ended.
TEST(Group, GlooDoesNotEndTheProcessBySigpipe) {
  const auto before = ::signal(SIGPIPE, SIG_DFL);
  comm::run_rank_threads(
      2, {}, [](Group& group) { group.barrier(); }, "gloo");
  EXPECT_EQ(::signal(SIGPIPE, before), SIG_IGN);
}

TEST(Group, UnknownBackendIsRefused) { EXPECT_THROW(Group("ucx", {}, 0, 1), ConfigError); }

}  // namespace
}  // namespace stretto
