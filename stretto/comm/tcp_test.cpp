#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/cluster/socket.h"
#include "stretto/comm/peer_sockets.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/comm/store_handle.h"

// The back end "tcp": who may connect, calls that differ, messages, ranks that leave. group_test.cpp tests
// its results.
namespace stretto::comm {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

GroupOptions tcp_options(const std::string& secret, std::chrono::milliseconds deadline = 20s) {
  GroupOptions options;
  options.deadline = deadline;
  options.secret = secret;
  return options;
}

// The errors of all ranks, "" for none.
std::vector<std::string> errors_of(int ranks, const std::function<void(Group&)>& body) {
  std::vector<std::string> errors(static_cast<size_t>(ranks));
  run_rank_threads(
      ranks, tcp_options("s3cret"),
      [&](Group& group) {
        try {
          body(group);
        } catch (const DistributedError& error) {
          errors[static_cast<size_t>(group.rank())] = error.what();
        }
      },
      "tcp");
  return errors;
}

// Connects and sends `bytes`; returns what comes back after the nonce before the connection ends.
std::string send_unauthenticated(const cluster::Endpoint& where, const std::string& bytes) {
  const auto deadline = cluster::Clock::now() + 10s;
  const Fd socket = cluster::connect_socket(where, deadline);
  cluster::receive_exactly(socket, where, 32, deadline);
  cluster::send_all(socket, where, bytes, deadline);
  std::string answer;
  try {
    while (true) answer += cluster::receive_exactly(socket, where, 1, deadline);
  } catch (const DistributedError&) {
    return answer;
  }
}

TEST(Tcp, UnauthenticatedConnectionsAreRefusedAndTheGroupForms) {
  const auto store = memory_store();
  auto zero = std::async(std::launch::async, [&] {
    Group group("tcp", store, 0, 2, tcp_options("s3cret"));
    Tensor sum = at::ones({3});
    group.all_reduce(sum).wait();
    return sum[2].item<float>();
  });
  const auto where = cluster::parse_endpoint(store->store->get_to_str("tcp.address.0"), "rank 0");
  const auto deadline = cluster::Clock::now() + 10s;
  const Fd silent = cluster::connect_socket(where, deadline);
  { const Fd gone = cluster::connect_socket(where, deadline); }
  EXPECT_EQ(send_unauthenticated(where, std::string(88, 'x')), "");
  const std::string rank_1 = std::string("stretto2") + std::string("\1\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0", 16);
  EXPECT_EQ(send_unauthenticated(where, rank_1 + std::string(64, 'x')), "");
  std::vector<Fd> flood;
  for (int i = 0; i < 100; ++i) flood.push_back(cluster::connect_socket(where, deadline));
  Group one("tcp", store, 1, 2, tcp_options("s3cret"));
  Tensor sum = at::ones({3});
  one.all_reduce(sum).wait();
  EXPECT_EQ(zero.get(), 2);
  EXPECT_THROW(cluster::connect_socket(where, cluster::Clock::now() + 100ms), DistributedError);
}

// Ranks of a large group connect at the same time, and all are accepted, however late each of them reacts.
TEST(Tcp, ManyRanksMayConnectBeforeTheFirstAuthenticates) {
  const auto store = memory_store();
  auto zero = std::async(std::launch::async, [&]() -> std::string {
    try {
      const PeerSockets sockets(*store->store, 0, 101, tcp_options("s3cret", 3s));
    } catch (const DistributedError& error) {
      return error.what();
    }
    return "";
  });
  const auto where = cluster::parse_endpoint(store->store->get_to_str("tcp.address.0"), "rank 0");
  const auto deadline = cluster::Clock::now() + 10s;
  std::vector<Fd> connections;
  for (int i = 0; i < 200; ++i) {
    connections.push_back(cluster::connect_socket(where, deadline));
    EXPECT_EQ(cluster::receive_exactly(connections.back(), where, 32, deadline).size(), 32u);
  }
  char byte = 0;
  for (const Fd& connection : connections) {
    EXPECT_EQ(::recv(connection.get(), &byte, 1, MSG_DONTWAIT), -1) << "this rank was refused";
  }
  EXPECT_THAT(zero.get(), HasSubstr("did not connect to this rank in time"));
}

TEST(Tcp, RanksWithDifferentSecretsDoNotConnect) {
  const auto store = memory_store();
  const auto join = [&](int rank, const std::string& secret) -> std::string {
    try {
      Group group("tcp", store, rank, 2, tcp_options(secret, 2s));
    } catch (const DistributedError& error) {
      return error.what();
    }
    return "";
  };
  auto zero = std::async(std::launch::async, [&] { return join(0, "one secret"); });
  EXPECT_THAT(join(1, "another"), AllOf(HasSubstr("no connection to rank 0"),
                                        HasSubstr("all ranks need the same STRETTO_SECRET")));
  EXPECT_THAT(zero.get(), HasSubstr("rank 1 did not connect to this rank in time"));
}

// The ports through which ranks have connected no longer accept connections.
TEST(Tcp, NoSocketListensAfterwards) {
  const auto store = memory_store();
  std::promise<void> looked;
  const std::shared_future<void> until = looked.get_future().share();
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      Group group("tcp", store, rank, 3, tcp_options(""));
      group.barrier();
      if (rank == 0) store->store->set("met", std::string("yes"));
      until.wait();
    });
  }
  store->store->wait({"met"}, 20s);
  for (int rank = 0; rank < 2; ++rank) {
    const auto where = cluster::parse_endpoint(
        store->store->get_to_str("tcp.address." + std::to_string(rank)), "the address");
    EXPECT_THROW(cluster::connect_socket(where, cluster::Clock::now() + 100ms), DistributedError);
  }
  looked.set_value();
  for (std::thread& rank : ranks) rank.join();
}

TEST(Tcp, SumsAreBitwiseEqualOnAllRanksAndInEveryRun) {
  for (const int ranks : {2, 3, 5}) {
    for (const int64_t elements : {1, 4, 1000, 100'003}) {
      std::vector<Tensor> sums(static_cast<size_t>(2 * ranks));
      for (int run = 0; run < 2; ++run) {
        run_rank_threads(
            ranks, tcp_options(""),
            [&](Group& group) {
              Tensor tensor = at::sin(at::arange(elements, at::kFloat) * (group.rank() + 1));
              group.all_reduce(tensor).wait();
              sums[static_cast<size_t>(run * ranks + group.rank())] = tensor;
            },
            "tcp");
      }
      for (const Tensor& sum : sums) EXPECT_TRUE(at::equal(sum, sums[0])) << ranks << " ranks, " << elements;
    }
  }
}

TEST(Tcp, CallsThatDifferAreNamed) {
  const auto errors = errors_of(2, [](Group& group) {
    Tensor tensor = at::ones({4}), all = at::ones({8});
    group.barrier();
    group.rank() == 0 ? group.all_reduce(tensor).wait() : group.all_gather(all, tensor).wait();
  });
  EXPECT_THAT(errors, Each(AnyOf(has_all("rank 1 called all_gather of 4 float32 as its collective #1",
                                         "rank 0 called all_reduce of 4 float32 (sum) as #1"),
                                 HasSubstr("rank 0 called all_reduce of 4 float32"),
                                 HasSubstr("closed the connection"))));
  EXPECT_THAT(errors[0] + errors[1], HasSubstr("the same calls in the same order"));
}

TEST(Tcp, AfterAFailureEveryCallFails) {
  const auto errors = errors_of(2, [](Group& group) {
    if (group.rank() == 1) return;  // its group ends
    Tensor tensor = at::ones({4});
    EXPECT_THROW(group.all_reduce(tensor).wait(), DistributedError);
    group.all_reduce(tensor).wait();
  });
  EXPECT_THAT(errors[0],
              AllOf(HasSubstr("an earlier call failed"), HasSubstr("rank 1 closed the connection")));
}

TEST(Tcp, MessagesAreMatchedByTag) {
  run_rank_threads(
      2, tcp_options(""),
      [](Group& group) {
        if (group.rank() == 0) {
          group.send(at::full({300'000}, 5), 1, 5).wait();
          group.send(at::full({2}, 3), 1, 3).wait();
          group.send(at::full({2}, 33), 1, 3).wait();
          group.send(at::zeros({0}), 1, 4).wait();
          group.barrier();
          return;
        }
        Tensor three = at::zeros({2}, at::kLong), again = at::zeros({2}, at::kLong), nothing = at::zeros({0}),
               five = at::zeros({300'000}, at::kLong);
        group.recv(three, 0, 3).wait();
        group.recv(again, 0, 3).wait();
        group.recv(nothing, 0, 4).wait();
        group.recv(five, 0, 5).wait();
        EXPECT_EQ(three[1].item<int64_t>(), 3);
        EXPECT_EQ(again[1].item<int64_t>(), 33);
        EXPECT_TRUE(at::equal(five, at::full({300'000}, 5)));
        group.barrier();
      },
      "tcp");
}

TEST(Tcp, AMessageOfAnotherSizeIsAnErrorOfThatMessage) {
  for (const bool early : {true, false}) {
    const auto errors = errors_of(2, [&](Group& group) {
      Tensor wanted = at::zeros({3});
      if (group.rank() == 0) {
        if (!early) group.barrier();
        group.send(at::ones({5}), 1).wait();
        group.send(at::ones({3}), 1).wait();
        group.barrier();
        return;
      }
      if (early) std::this_thread::sleep_for(50ms);
      Work first = group.recv(wanted, 0);
      if (!early) group.barrier();
      try {
        first.wait();
        ADD_FAILURE() << "a message of another size was taken";
      } catch (const DistributedError& error) {
        EXPECT_THAT(error.what(), HasSubstr("a message of 20 bytes arrived; expected [3] Float"));
      }
      group.recv(wanted, 0).wait();
      EXPECT_EQ(wanted[2].item<float>(), 1);
      group.barrier();
    });
    EXPECT_THAT(errors, Each(""));
  }
}

// Each rank begins a sum, and then waits for a message that the other sends before it begins the same sum.
TEST(Tcp, MessagesDoNotWaitForCollectives) {
  run_rank_threads(
      2, tcp_options(""),
      [](Group& group) {
        Tensor sum = at::ones({1'000'000}), message = at::full({1}, 7.0f);
        if (group.rank() == 0) {
          Work reduction = group.all_reduce(sum);
          group.recv(message, 1).wait();
          reduction.wait();
        } else {
          std::this_thread::sleep_for(20ms);
          group.send(message, 0).wait();
          group.all_reduce(sum).wait();
        }
        EXPECT_EQ(sum[999'999].item<float>(), 2);
      },
      "tcp");
}

}  // namespace
}  // namespace stretto::comm
