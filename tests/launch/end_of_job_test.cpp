#include "tests/support/hosts.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

// Tests how users and cluster managers end a job on several hosts by signals.
namespace stretto {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Ranks on two hosts that, when asked to end, save until a file `go` exists, and a shell command for each
// host, run once all ranks run. Only a signal ends them earlier: the grace is longer than the tests'
// patience.
class EndOfJob : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = why_no_hosts()) GTEST_SKIP() << *reason;
  }
  std::vector<HostResult> end_by(const std::string& on_first, const std::string& on_second) const {
    for (const char* old : {"up0", "up1", "go"}) std::filesystem::remove(folder_.path() / old);
    std::vector<std::string> commands;
    for (const std::string& action : {on_first, on_second}) {
      commands.push_back(fmt::format(
          "background env --default-signal=INT STRETTO_SECRET=s3cret {} launch --nodes 2 "
          "--master-addr 10.77.0.1 --node-rank {} --grace 600 {} -- sh -c '"
          "trap \"echo > saves$RANK; until [ -e go ]; do sleep 0.02; done; echo saved; exit 0\" TERM; "
          "echo up > up$RANK; while :; do sleep 0.05; done'; await up0; await up1; {}; end",
          STRETTO_PROGRAM, commands.size(), options, action));
    }
    auto results = run_on_hosts(folder_.path(), commands);
    for (const HostResult& result : results) EXPECT_THAT(result.left, IsEmpty()) << result.err;
    return results;
  }
  const std::string all_save = "await saves0; await saves1; ";
  std::string options;
  TempFolder folder_;
};

// A cluster's manager ends a job in this way; ranks must have time to save.
TEST_F(EndOfJob, OneSignalToAllLaunchersLetsRanksSave) {
  const std::string later = all_save + "kill -TERM $job; sleep 0.3; echo > go";
  for (const HostResult& result : end_by("kill -TERM $job", later)) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("saved"));
  }
  options = "--stop-exit-code 143";
  const std::string both_sent = "kill -INT $job; await sent; echo > go";
  for (const HostResult& result : end_by("kill -INT $job; echo > sent", both_sent)) {
    EXPECT_EQ(result.exit_code, 143) << result.err;
    EXPECT_THAT(result.out, HasSubstr("saved"));
  }
}

TEST_F(EndOfJob, ASecondSignalToALauncherKills) {
  for (const HostResult& result : end_by("kill -TERM $job; " + all_save + "kill -TERM $job", ":")) {
    EXPECT_EQ(result.exit_code, 143) << result.err;
    EXPECT_THAT(result.out, Not(HasSubstr("saved")));
  }
}

// Within 3 s a second signal counts as the first one, which a terminal may send to all hosts.
TEST_F(EndOfJob, ALaterCtrlCOnAnotherHostKills) {
  for (const HostResult& result : end_by("kill -INT $job", all_save + "sleep 3.1; kill -INT $job")) {
    EXPECT_EQ(result.exit_code, 130) << result.err;
    EXPECT_THAT(result.out, Not(HasSubstr("saved")));
  }
}

}  // namespace
}  // namespace stretto
