#include "stretto/launch/hosts/link.h"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/launch/hosts/job_watch.h"

// Launchers as threads, over real sockets.
namespace stretto::launch {
namespace {

using ::testing::HasSubstr;
using Kind = HostEvent::Kind;

// Links are destroyed from the last to the first, since that of node 0 waits for the others.
struct Links : std::vector<std::unique_ptr<HostLink>> {
  using vector::vector;
  Links(Links&&) = default;
  ~Links() {
    while (!empty()) pop_back();
  }
};

HostOptions options(int node, int nodes, int port) {
  return {.nodes = nodes,
          .node_rank = node,
          .master = {"127.0.0.1", port},
          .secret = "s3cret",
          .join_timeout = std::chrono::seconds(30),
          .host_timeout = std::chrono::seconds(20)};
}

int free_port() { return cluster::bound_endpoint(cluster::bind_socket({"127.0.0.1", 0})).port; }

Links meet(int nodes) {
  const int port = free_port();
  Links links(static_cast<size_t>(nodes));
  std::vector<std::thread> threads;
  for (int node = 0; node < nodes; ++node) {
    threads.emplace_back([&, node] {
      HostMeeting meeting = meet_hosts(options(node, nodes, port), node + 1, [] { return false; });
      links[static_cast<size_t>(node)] =
          std::make_unique<HostLink>(std::move(meeting), options(node, nodes, port).host_timeout);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return links;
}

// Reads events up to the first one of kind `last`.
std::vector<HostEvent> read_until(HostLink& link, Kind last) {
  std::vector<HostEvent> events;
  while (events.empty() || events.back().kind != last) {
    pollfd watched{link.fd(), POLLIN, 0};
    if (::poll(&watched, 1, 30'000) != 1) break;
    if (auto event = link.next()) events.push_back(*event);
  }
  return events;
}

TEST(HostLink, HostsAgreeOnTheirRanks) {
  const Links links = meet(3);
  for (int node = 0; node < 3; ++node) {
    const HostPlan& plan = links[static_cast<size_t>(node)]->plan();
    EXPECT_EQ(plan.node_rank, node);
    EXPECT_EQ(plan.world_size(), 6);
    EXPECT_EQ(plan.first_rank(2), 3);
    EXPECT_THAT(plan.describe(2), HasSubstr("(node rank 2, ranks 3 to 5)"));
  }
}

TEST(HostLink, EventsHaveOneOrder) {
  const Links links = meet(2);
  for (int life : {0, 1, 2}) {
    for (const auto& link : links) link->begin(life);
    std::vector<std::thread> threads;
    for (const auto& link : links) {
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) link->post({.kind = Kind::look, .code = i, .text = "the same"});
        link->post({.kind = Kind::stopped, .code = life});
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<std::string> logs;
    for (const auto& link : links) {
      std::string& log = logs.emplace_back();
      size_t stopped = 0;
      while (stopped < 2) {
        const auto events = read_until(*link, Kind::stopped);
        ASSERT_FALSE(events.empty());
        for (const HostEvent& event : events)
          log += fmt::format("{}.{}.{} ", static_cast<int>(event.kind), event.node, event.code);
        ++stopped;
      }
      EXPECT_TRUE(link->over());
    }
    EXPECT_EQ(logs[0], logs[1]);
    EXPECT_THAT(logs[0], HasSubstr("4.1.49 ")) << "a look of node 1";
  }
}

TEST(HostLink, ALauncherThatEndsIsDetectedAtOnce) {
  Links links = meet(3);
  for (const auto& link : links) link->begin(0);
  links[1].reset();
  for (const size_t other : {size_t{0}, size_t{2}}) {
    const auto events = read_until(*links[other], Kind::lost);
    ASSERT_FALSE(events.empty());
    EXPECT_EQ(events.back().node, 1);
    EXPECT_THAT(events.back().text, has_all("(node rank 1, ranks 1 to 2) is lost", "launcher has ended"));
    EXPECT_FALSE(links[other]->over());
  }
  links[0].reset();  // ends the store, too
  const auto events = read_until(*links[2], Kind::lost);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().node, 0);
  EXPECT_TRUE(links[2]->over());
}

// While its launcher waits before a restart, a host reads no events.
TEST(HostLink, TheLossOfNode0BetweenTwoStartsIsReportedInTheSecond) {
  Links links = meet(3);
  for (const auto& link : links) link->begin(0);
  links[1].reset();  // so that the end of node 0 does not wait for the others
  HostLink& other = *links[2];
  for (HostLink* link : {links[0].get(), &other}) ASSERT_FALSE(read_until(*link, Kind::lost).empty());
  for (HostLink* link : {links[0].get(), &other}) link->post({.kind = Kind::stopped});
  for (int stopped = 0; stopped < 2; ++stopped) ASSERT_FALSE(read_until(other, Kind::stopped).empty());
  links[0].reset();
  pollfd lost{other.fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&lost, 1, 30'000), 1);
  other.begin(1);
  const auto events = read_until(other, Kind::lost);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().kind, Kind::lost);
  EXPECT_EQ(events.back().node, 0);
  EXPECT_TRUE(other.over());
}

TEST(HostLink, TextsAreVisibleBeforeTheirEvents) {
  const Links links = meet(2);
  for (const auto& link : links) link->begin(0);
  links[1]->publish("record", "a text");
  links[1]->post({.kind = Kind::failure, .code = 3, .text = "rank 1 failed"});
  const auto events = read_until(*links[0], Kind::failure);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(links[0]->published_by(1, "record"), "a text");
  EXPECT_EQ(links[0]->published_by(0, "record"), std::nullopt);
}

// A hang may be suspected repeatedly for hours.
TEST(HostLink, TheRecordsOfAHostReplaceEachOther) {
  const Links links = meet(2);
  for (const auto& link : links) link->begin(0);
  JobWatch watch(*links[1], std::chrono::seconds(300), /*own_program=*/true);
  for (int look = 1; look <= 3; ++look) watch.send_record(look, {.host = fmt::format("look {}", look)});
  std::vector<HostEvent> events;
  while (events.empty() || events.back().code != 3) {
    events = read_until(*links[0], Kind::record);
    ASSERT_FALSE(events.empty());
  }
  EXPECT_THAT(links[0]->published_by(1, "look").value_or("nothing"), HasSubstr("look 3"));
}

TEST(HostMeeting, AnotherNumberOfHostsIsNamedOnce) {
  const int port = free_port();
  std::vector<std::string> errors(2);
  std::vector<std::thread> threads;
  for (int node = 0; node < 2; ++node) {
    threads.emplace_back([&, node] {
      try {
        meet_hosts(options(node, node == 0 ? 3 : 2, port), 1, [] { return false; });
      } catch (const ConfigError& error) {
        errors[static_cast<size_t>(node)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(errors[0], ::testing::ContainsRegex(
                             "--nodes: 3 on [^ ]+ \\(node rank 0\\), 2 on [^ ]+ \\(node rank 1\\)\n"));
  EXPECT_EQ(errors[0], errors[1]);
}

TEST(HostMeeting, AllHostsGetTheSameVerdict) {
  const int port = free_port();
  std::vector<std::string> errors(2);
  std::vector<std::thread> threads;
  for (int node = 0; node < 2; ++node) {
    threads.emplace_back([&, node] {
      HostOptions own = options(node, 2, port);
      own.inputs = {{"seed", std::to_string(node), "r.yaml:1:1"}};
      try {
        meet_hosts(own, 1, [] { return false; });
      } catch (const ConfigError& error) {
        errors[static_cast<size_t>(node)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(errors[0], HasSubstr("the hosts differ:\n  seed: 0 on "));
  EXPECT_EQ(errors[0], errors[1]);
}

}  // namespace
}  // namespace stretto::launch
