#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/comm/contributions_fixture.h"
#include "stretto/comm/group.h"
#include "stretto/comm/store_handle.h"

// Groups over several hosts: shared memory within each, TCP between them.
namespace stretto::comm {
namespace {

using ::testing::HasSubstr;

// Ranks as threads that claim to run on hosts with these names.
void run_on_hosts(const std::vector<std::string>& hosts, const std::function<void(Group&)>& body) {
  const auto store = memory_store();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < std::ssize(hosts); ++rank) {
    threads.emplace_back([&, rank] {
      GroupOptions options;
      options.deadline = std::chrono::seconds(20);
      options.host = hosts[static_cast<size_t>(rank)];
      Group group("shm", store, rank, static_cast<int>(hosts.size()), options);
      body(group);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Calls `call` on each rank after an all_reduce and a barrier; every rank must fail. Returns the errors that
// name two calls, which must not take longer than two seconds.
std::vector<std::string> names_of_calls(const std::vector<std::string>& hosts,
                                        const std::function<void(Group&)>& call) {
  std::mutex mutex;
  std::vector<std::string> naming;
  run_on_hosts(hosts, [&](Group& group) {
    group.all_reduce(at::ones({100'000})).wait();  // several pieces, each a transfer on the rails
    group.barrier();
    const auto begin = std::chrono::steady_clock::now();
    try {
      call(group);
      group.barrier();  // for a rank that had nothing to wait for
      ADD_FAILURE() << "rank " << group.rank() << " should have failed";
    } catch (const DistributedError& error) {
      const std::lock_guard lock(mutex);
      if (std::string_view(error.what()).find("must make the same calls") == std::string_view::npos) return;
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2)) << error.what();
      naming.emplace_back(error.what());
    }
  });
  return naming;
}

TEST(Hosts, SingleRanksPerHostUseTcp) {
  run_on_hosts({"a", "b"}, [](Group& group) {
    EXPECT_EQ(group.transport(), "TCP between 2 hosts");
    Tensor tensor = at::ones({3});
    group.all_reduce(tensor).wait();
    EXPECT_EQ(tensor[2].item<float>(), 2);
  });
}

// Two or more ranks per host, also different numbers; data in place and staged, in several pieces, and other
// calls in between that do not use shared memory.
TEST(Hosts, AllReduceGoesThroughBoth) {
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{"a", "b", "a", "b"}, {"a", "a", "b"}, {"a", "a", "b", "b", "b"}}) {
    const auto ranks = static_cast<int>(names.size());
    run_on_hosts(names, [&](Group& group) {
      EXPECT_THAT(group.transport(), HasSubstr(" on this host; TCP between 2 hosts"));
      std::vector<Tensor> tensors;
      std::vector<Work> works;
      for (const int64_t n : {0, 1, 1000, 300'001}) {
        tensors.push_back(group.rank() % 2 == 0 ? group.allocator()(n, at::kDouble, at::kCPU)
                                                : at::empty({n}, at::kDouble));
        tensors.back().copy_(contribution_of(group.rank(), n, at::kDouble));
        works.push_back(group.all_reduce(tensors.back()));
      }
      EXPECT_FALSE(group.shares_memory());
      Tensor at_last = at::full({1000}, group.rank() + 1.0);
      Work reduced = group.reduce(at_last, ranks - 1);
      group.barrier();
      EXPECT_EQ(group.broadcast_bytes(group.rank() == 1 ? "decided" : "", 1), "decided");
      reduced.wait();
      EXPECT_TRUE(group.rank() + 1 != ranks || at_last[999].item<double>() == ranks * (ranks + 1) / 2.0);
      for (Work& work : works) work.wait();
      for (const Tensor& tensor : tensors) {
        EXPECT_TRUE(at::allclose(tensor, sum_of_all(ranks, tensor.numel(), at::kDouble), 1e-14, 1e-14));
      }
      Tensor largest = at::full({3}, group.rank());
      group.all_reduce(largest, ReduceOp::max).wait();
      EXPECT_EQ(largest[2].item<int64_t>(), ranks - 1);
    });
  }
}

TEST(Hosts, AnAllReduceThatAnotherHostAnswersWithAnotherCollectiveIsNamed) {
  const std::map<std::string, std::function<Work(Group&, const Tensor&)>> others = {
      {"reduce of 4 float32 (sum, root 0)", [](Group& g, const Tensor& t) { return g.reduce(t, 0); }},
      {"broadcast of 4 float32 (root 3)", [](Group& g, const Tensor& t) { return g.broadcast(t, 3); }},
      {"all_gather of 1 float32", [](Group& g, const Tensor& t) { return g.all_gather(t, at::ones({1})); }},
      {"reduce_scatter of 1 float32 (sum)",
       [](Group& g, const Tensor& t) { return g.reduce_scatter(at::empty({1}), t); }},
      {"all_to_all of 1 float32",
       [](Group& g, const Tensor& t) { return g.all_to_all(at::empty_like(t), t); }}};
  for (const auto& [name, other] : others) {
    for (const int host : {0, 1}) {  // whose ranks call all_reduce
      SCOPED_TRACE(fmt::format("{} {}", name, host));
      const auto naming = names_of_calls({"a", "a", "b", "b"}, [&, &other = other](Group& group) {
        const Tensor tensor = at::ones({4});
        (group.rank() / 2 == host ? group.all_reduce(tensor) : other(group, tensor)).wait();
      });
      ASSERT_FALSE(naming.empty());
      EXPECT_THAT(naming[0], HasSubstr("all_reduce of 4 float32 (sum) as"));
      EXPECT_THAT(naming[0], HasSubstr("#2"));
    }
  }
}

// Ranks 1 to 4 are ranks 0 to 3 of their group.
TEST(Hosts, RanksOfAGroupAreNamedByTheirNumbersInTheJob) {
  const auto naming = names_of_calls({"a", "a", "a", "b", "b"}, [](Group& world) {
    const auto group = world.subgroup({1, 2, 3, 4}, "some");
    if (!group) return;
    const Tensor tensor = at::ones({4});
    (group->rank() < 2 ? group->all_reduce(tensor) : group->reduce(tensor, 3)).wait();
  });
  ASSERT_FALSE(naming.empty());
  EXPECT_THAT(naming[0], has_all("rank 1 called all_reduce of 4 float32 (sum) as its collective #0",
                                 "rank 3 called reduce of 4 float32 (sum, root 4) as #0"));
}

TEST(Hosts, RanksOfOneHostThatCallDifferentCollectivesAreNamed) {
  for (const int odd : {0, 1, 3}) {  // rank 1 has no rail, since the other host has one rank
    SCOPED_TRACE(odd);
    const auto naming = names_of_calls({"a", "a", "a", "b"}, [&](Group& group) {
      group.rank() == odd ? group.all_reduce(at::ones({4})).wait() : group.barrier();
    });
    ASSERT_FALSE(naming.empty());
    EXPECT_THAT(naming[0], HasSubstr(fmt::format("rank {} called all_reduce of 4 float32 (sum) as", odd)));
    EXPECT_THAT(naming[0], HasSubstr("called barrier as"));
  }
}

TEST(Hosts, OneHostIsReported) {
  run_on_hosts({"a", "a", "a"},
               [](Group& group) { EXPECT_EQ(group.transport(), "shared memory, 3 ranks on this host"); });
}

}  // namespace
}  // namespace stretto::comm
