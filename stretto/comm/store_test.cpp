
#include <future>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/cluster/rendezvous.h"
#include "stretto/comm/job.h"
#include "stretto/comm/store_handle.h"

// The store of ranks that were not started by stretto's launcher.
namespace stretto::comm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

// A port that was free a moment ago; no other test takes it, since all ask the system for a port.
int free_port() { return cluster::bound_endpoint(cluster::bind_socket({"127.0.0.1", 0})).port; }

// The local addresses of this network namespace's sockets that listen on `port`, as /proc/net writes them.
std::vector<std::string> listeners(int port) {
  std::vector<std::string> addresses;
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::istringstream table(read_file(path));
    for (std::string line; std::getline(table, line);) {
      std::istringstream fields(line);
      std::string number, local, remote, state;
      fields >> number >> local >> remote >> state;
      if (state == "0A" && local.ends_with(fmt::format(":{:04X}", port)))
        addresses.push_back(local.substr(0, local.find(':')));
    }
  }
  return addresses;
}

cluster::RankInfo rank_of_two(int rank, int hosts, int port) {
  return {.rank = rank,
          .world_size = 2,
          .local_rank = hosts == 1 ? rank : 0,
          .local_world_size = 2 / hosts,
          .launched = true,
          .master_addr = "127.0.0.1",
          .master_port = port};
}

// Connects both ranks, and lets each read what the other writes.
std::pair<std::shared_ptr<StoreHandle>, std::shared_ptr<StoreHandle>> connect_both(
    const cluster::RankInfo& zero, const cluster::RankInfo& one) {
  auto second = std::async(std::launch::async, [&] { return connect_store(one, 20s); });
  std::pair both(connect_store(zero, 20s), nullptr);
  const auto other = second.get();
  both.first->store->set("from.0", std::string("zero"));
  other->store->set("from.1", std::string("one"));
  EXPECT_EQ(other->store->get_to_str("from.0"), "zero");
  EXPECT_EQ(both.first->store->get_to_str("from.1"), "one");
  return {both.first, other};
}

TEST(StoreOfRanks, OnOneHostOpensNoPort) {
  const int port = free_port();
  const auto handles = connect_both(rank_of_two(0, 1, port), rank_of_two(1, 1, port));
  EXPECT_THAT(listeners(port), IsEmpty());
}

TEST(StoreOfRanks, OnSeveralHostsListensOnMasterAddrOnly) {
  const int port = free_port();
  const auto handles = connect_both(rank_of_two(0, 2, port), rank_of_two(1, 2, port));
  EXPECT_THAT(listeners(port), ElementsAre("0100007F"));
}

TEST(StoreOfRanks, OthersAreRefusedWithoutTheSecret) {
  const int port = free_port();
  const auto with = [&](int rank, const std::string& secret) {
    cluster::RankInfo info = rank_of_two(rank, 2, port);
    info.secret = secret;
    return info;
  };
  const auto handles = connect_both(with(0, "right"), with(1, "right"));
  for (const std::string secret : {"", "wrong"}) {
    EXPECT_THAT(message_of<DistributedError>([&] { connect_store(with(1, secret), 5s); }),
                HasSubstr("its secret (STRETTO_SECRET or STRETTO_SECRET_FILE) is not the job's"))
        << secret;
  }
}

class UnderAnAgent : public ::testing::Test {
 protected:
  // torchrun's agent.
  c10::intrusive_ptr<c10d::TCPStore> agent_ = [] {
    c10d::TCPStoreOptions options;
    options.isServer = true;
    options.port = 0;
    options.waitWorkers = false;
    return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  }();

  cluster::RankInfo info(int rank, int hosts, const std::string& secret) const {
    cluster::RankInfo info = rank_of_two(rank, hosts, agent_->getPort());
    info.agent_store = true;
    info.secret = secret;
    return info;
  }
  bool agent_holds(const std::string& key) const { return agent_->check({key}); }
};

TEST_F(UnderAnAgent, AgentsStoreIsUsedIfNothingElseIsShared) {
  const auto handles = connect_both(info(0, 2, ""), info(1, 2, ""));
  EXPECT_TRUE(agent_holds("stretto.restart0/from.0"));
}

// A program may make several groups one after the other, and the agent's store keeps the keys of each.
TEST_F(UnderAnAgent, OldKeysAreNotReadAgain) {
  for (int join = 0; join < 3; ++join) {
    const auto handles = connect_both(info(0, 2, ""), info(1, 2, ""));
    for (const char* key : {"hosts.0", "hosts.1"}) {
      EXPECT_FALSE(handles.first->store->check({key})) << "connection " << join;
      handles.second->store->set(key, std::string("old"));
    }
  }
}

TEST_F(UnderAnAgent, OneHostDoesNotUseTheAgentsStore) {
  const auto handles = connect_both(info(0, 1, ""), info(1, 1, ""));
  EXPECT_FALSE(agent_holds("stretto.restart0/from.0"));
}

TEST_F(UnderAnAgent, WithASecretOnlyAnAddressIsPublished) {
  const auto handles = connect_both(info(0, 2, "s"), info(1, 2, "s"));
  EXPECT_FALSE(agent_holds("stretto.restart0/from.0"));
  EXPECT_THROW(connect_store(info(1, 2, "wrong"), 5s), DistributedError);
  c10d::Store& store = *agent_;
  // Further connections of this process to the agent's port, which another test may have used, count on.
  for (int join = 1; join < 10; ++join)
    store.set("stretto.restart0.join" + std::to_string(join) + ".store", std::string("127.0.0.1:1 forged"));
  EXPECT_THAT(message_of<DistributedError>([&] { connect_store(info(1, 2, "s"), 5s); }),
              HasSubstr("published with another secret"));
}

TEST(StoreOfRanks, RankZerosStoreStaysUpForSlowerRanks) {
  const int port = free_port();
  auto [zero, one] = connect_both(rank_of_two(0, 1, port), rank_of_two(1, 1, port));
  auto late = std::async(std::launch::async, [store = std::exchange(one, nullptr)]() mutable {
    std::this_thread::sleep_for(200ms);
    const auto read = std::exchange(store, nullptr);
    return read->store->get_to_str("from.0");
  });
  zero.reset();
  EXPECT_EQ(late.get(), "zero");
}

TEST(StoreOfRanks, AMissingRankZeroIsExplained) {
  EXPECT_THAT(message_of<DistributedError>([&] { connect_store(rank_of_two(1, 1, free_port()), 200ms); }),
              HasSubstr("rank 0 hosts it: see its output"));
}

}  // namespace
}  // namespace stretto::comm
