#include "stretto/launch/process/rank_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/cluster/environment.h"

namespace stretto::launch {
namespace {

using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

// The job of the second of two hosts, which have two and four ranks.
const JobContext job{.ranks = 4,
                     .first_rank = 2,
                     .world_size = 6,
                     .node_rank = 1,
                     .nodes = 2,
                     .gpus = 0,
                     .master = {"127.0.0.1", 2001},
                     .store = {"127.0.0.1", 2002},
                     .secret = "s3",
                     .heartbeat = "/proc/1/fd/9",
                     .restart_count = 2,
                     .max_restarts = 5,
                     .terminal = 7};

TEST(RankEnvironment, IsWhatTheClusterLayerReads) {
  const Environment environment = rank_environment({{"RANK", "stale"}}, job, 5, "");
  const auto info = cluster::read_rank_info([&](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  });
  EXPECT_EQ(info.rank, 5);
  EXPECT_EQ(info.local_rank, 3);
  EXPECT_EQ(info.group_rank, 1);
  EXPECT_EQ(info.world_size, 6);
  EXPECT_EQ(info.local_world_size, 4);
  EXPECT_EQ(info.master_port, 2001);
  EXPECT_FALSE(info.agent_store);
  EXPECT_EQ(info.store->text(), "127.0.0.1:2002");
  EXPECT_EQ(info.secret, "s3");
  EXPECT_EQ(info.heartbeat, "/proc/1/fd/9");
  EXPECT_EQ(info.restart_count, 2);
}

TEST(RankEnvironment, VariablesOfAnOuterLauncherAreRemoved) {
  const Environment outer = {{"TORCHELASTIC_USE_AGENT_STORE", "True"},
                             {"STRETTO_SECRET_FILE", "/outer"},
                             {"STRETTO_LOG_FILE", "/outer.log"},
                             {"STRETTO_TERMINAL", "1"},
                             {"HOME", "/home/me"}};
  const Environment environment = rank_environment(outer, job, 1, "");
  for (const char* name :
       {"TORCHELASTIC_USE_AGENT_STORE", "STRETTO_SECRET_FILE", "STRETTO_LOG_FILE", "STRETTO_TERMINAL"}) {
    EXPECT_THAT(environment, Not(Contains(Key(name))));
  }
  EXPECT_THAT(environment, Contains(Pair("HOME", "/home/me")));
}

TEST(RankEnvironment, TheUsersNumberOfThreadsIsKept) {
  EXPECT_THAT(rank_environment({}, job, 0, ""), Contains(Pair("OMP_NUM_THREADS", "1")));
  EXPECT_THAT(rank_environment({{"OMP_NUM_THREADS", "3"}}, job, 0, ""),
              Contains(Pair("OMP_NUM_THREADS", "3")));
  EXPECT_THAT(rank_environment({}, {.ranks = 1, .gpus = 1}, 0, ""), Not(Contains(Key("OMP_NUM_THREADS"))));
}

TEST(RankEnvironment, RankZeroGetsTheTerminalAndEachRankItsLog) {
  EXPECT_THAT(rank_environment({}, job, 0, "/l/training_0.log"), Contains(Pair("STRETTO_TERMINAL", "7")));
  EXPECT_THAT(rank_environment({}, job, 1, "/l/training_1.log"),
              Contains(Pair("STRETTO_LOG_FILE", "/l/training_1.log")));
  EXPECT_THAT(rank_environment({}, job, 1, ""), Not(Contains(Key("STRETTO_TERMINAL"))));
}

}  // namespace
}  // namespace stretto::launch
