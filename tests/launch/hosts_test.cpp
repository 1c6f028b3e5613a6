#include "tests/support/hosts.h"

#include "tests/support/shell.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/strings.h"
#include "stretto/settings/scoped_variable_support.h"

// Tests groups whose ranks are on several hosts with separate networks.
namespace stretto {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class Hosts : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const auto reason = why_no_hosts()) GTEST_SKIP() << *reason;
  }
  static ShellResult run(int hosts, int ranks_per_host, const std::string& mode) {
    return shell(
        on_hosts(hosts, ranks_per_host, fmt::format("exec {} {} {}", COLLECTIVE_PROBE, mode, GetParam())));
  }
};

TEST_P(Hosts, EveryCollectiveReachesAllRanks) {
  const ShellResult result = run(3, 2, "check");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(split(trim(result.out), '\n'), SizeIs(6)) << result.out;
  const bool shared = std::string(GetParam()) == "shm";
  EXPECT_THAT(result.out, HasSubstr(shared ? "; TCP between 3 hosts\n" : GetParam()));
}

TEST_P(Hosts, ARankThatDiesOnAnotherHostEndsAll) {
  const ShellResult result = run(2, 2, "die");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, ContainsRegex("probe: rank 0: all_reduce \\[1024\\] float32 #17 of group world "));
  EXPECT_THAT(result.err, ContainsRegex("probe: rank 3: all_reduce \\[1024\\] float32 #17 of group world "));
}

TEST_P(Hosts, AStoreWithoutASecretIsWarnedOfOnce) {
  const std::string warning = "has no authentication";
  const ShellResult open = run(2, 1, "check");
  EXPECT_EQ(open.exit_code, 0) << open.err;
  EXPECT_EQ(open.err.find(warning), open.err.rfind(warning));
  EXPECT_THAT(open.err, HasSubstr("warning: the rendezvous store at 10.77.0.1:29500 (of rank 0) " + warning));
  const settings::ScopedVariable secret("STRETTO_SECRET", "shared by all ranks");
  const ShellResult closed = run(2, 1, "check");
  EXPECT_EQ(closed.exit_code, 0) << closed.err;
  EXPECT_THAT(closed.err, Not(HasSubstr(warning)));
}

INSTANTIATE_TEST_SUITE_P(Backends, Hosts, ::testing::Values("shm", "tcp", "gloo"),
                         [](const auto& backend) { return std::string(backend.param); });

}  // namespace
}  // namespace stretto
