#include <csignal>
#include <list>

#include "tests/support/shell.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/cluster/socket.h"

// Ranks without stretto's launcher, one of which is killed while all of them reduce through shared memory.
namespace stretto {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class DeadPeer : public ::testing::TestWithParam<int> {
 protected:
  static constexpr int ranks = 3;

  void SetUp() override {
    const int port = cluster::bound_endpoint(cluster::bind_socket({"127.0.0.1", 0})).port;
    for (int rank = 0; rank < ranks; ++rank) {
      runs_.emplace_back(fmt::format(
          "export RANK={0} LOCAL_RANK={0} WORLD_SIZE={1} LOCAL_WORLD_SIZE={1} MASTER_ADDR=127.0.0.1 MASTER_PORT={2}; exec {3} busy shm",
          rank, ranks, port, COLLECTIVE_PROBE));
    }
    for (const BackgroundShell& run : runs_) {
      ASSERT_TRUE(eventually([&] { return run.out() == "reduces\n"; })) << run.err();
    }
  }

  std::list<BackgroundShell> runs_;
};

TEST_P(DeadPeer, IsNamedByAllOthers) {
  const auto victim = std::next(runs_.begin(), GetParam());
  ::kill(victim->pid(), SIGKILL);
  for (BackgroundShell& run : runs_) {
    if (&run == &*victim) continue;
    const ShellResult result = run.wait();
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err,
                ContainsRegex("probe: rank [0-2]: all_reduce \\[2097152\\] float32 #[0-9]+ of group world "));
    EXPECT_THAT(result.err,
                HasSubstr(fmt::format(": rank {} (process {}) has ended\n", GetParam(), victim->pid())));
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, DeadPeer, ::testing::Values(0, 2));

}  // namespace
}  // namespace stretto
