#include "tests/support/hosts.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/strings.h"

// If a host of a job fails, the others stop and name it, and no process remains. This must not depend on
// timeouts: the grace, the hang timeout and the timeout of collectives are longer than the tests wait.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int hang_exit_code = 124;

class HostFailure : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = why_no_hosts()) GTEST_SKIP() << *reason;
  }
  // Runs two hosts with two ranks each that reduce repeatedly; once all ranks run, runs a shell command on
  // each host.
  std::vector<HostResult> run(const std::string& on_first, const std::string& on_second,
                              const std::string& options = "", const std::string& mode = "busy") const {
    std::vector<std::string> commands;
    for (const std::string& action : {on_first, on_second}) {
      const auto node = commands.size();
      commands.push_back(
          fmt::format("background env STRETTO_SECRET=s3cret {} launch -N 2 --nodes 2 --master-addr 10.77.0.1 "
                      "--node-rank {} --grace 600 {} -- {} {} shm; {}; end",
                      STRETTO_PROGRAM, node, options, COLLECTIVE_PROBE, mode, action));
    }
    auto results = run_on_hosts(folder_.path(), commands);
    for (const HostResult& result : results) EXPECT_THAT(result.left, IsEmpty()) << result.err;
    return results;
  }
  // The process id of rank 3, on the second host.
  const std::string rank_3 = "$(grep -lsz ^RANK=3 /proc/[0-9]*/environ | cut -d/ -f3 | head -1)";
  const std::string running = "await out.0 reduces; await out.1 reduces; ";
  TempFolder folder_;
};

TEST_F(HostFailure, ARankThatIsKilledEndsAllAndIsNamed) {
  const auto results =
      run(":", "await logs/training_2.log reduces; await out.0 reduces; kill -9 " + rank_3, "--log-dir logs");
  for (const HostResult& result : results) {
    EXPECT_EQ(result.exit_code, 137) << result.err;
    EXPECT_THAT(result.err,
                ContainsRegex("error: rank 3 on host1 \\(process [0-9]+\\) was killed by SIGKILL"));
  }
  // A rank may detect the end of its peer before its launcher is notified of rank 3.
  EXPECT_THAT(
      results[0].err,
      AnyOf(
          ContainsRegex("on this host ranks? 0.* in all_reduce \\[2097152\\] float32 #[0-9]+ of group world"),
          ContainsRegex("rank 0 on host0 \\(process [0-9]+\\) ended with exit code 1, after the first "
                        "failure")));
  const auto record = nlohmann::json::parse(read_file(folder_.path() / "logs/flight_record.json"));
  ASSERT_EQ(record["ranks"].size(), 4u);
  for (int rank = 0; rank < 4; ++rank) {
    const auto& entry = record["ranks"][static_cast<size_t>(rank)];
    EXPECT_EQ(entry["rank"], rank);
    EXPECT_EQ(entry["host"], rank < 2 ? "host0" : "host1");
    EXPECT_EQ(entry["last_calls"].back()["operation"], "all_reduce");
  }
  EXPECT_THAT(record["reason"].get<std::string>(), HasSubstr("rank 3 on host1"));
}

TEST_F(HostFailure, ARankThatIsStoppedEndsAllAndIsNamed) {
  const auto results = run(":", running + "kill -STOP " + rank_3, "--host-timeout 1");
  for (const HostResult& result : results) {
    EXPECT_EQ(result.exit_code, hang_exit_code) << result.err;
    EXPECT_THAT(
        result.err,
        ContainsRegex(
            "error: rank 3 on host1 \\(process [0-9]+\\) has been stopped by a signal \\(state T\\) for 1 s; "
            "rank 2 waits in all_reduce"));
  }
}

TEST_F(HostFailure, ALauncherThatIsKilledEndsTheOtherHost) {
  const auto results = run(":", running + "kill -9 $job");
  EXPECT_EQ(results[0].exit_code, 1) << results[0].err;
  EXPECT_THAT(results[0].err,
              has_all("error: host1 (node rank 1, ranks 2 to 3) is lost", "launcher has ended"));
}

TEST_F(HostFailure, TheFirstLauncherThatIsKilledEndsTheOtherHost) {
  const auto results = run(running + "kill -9 $job", ":");
  EXPECT_EQ(results[1].exit_code, 1) << results[1].err;
  EXPECT_THAT(results[1].err, has_all("error: host0 (node rank 0, ranks 0 to 1) is lost",
                                      "launcher has ended or is stopped"));
}

// The ranks of the host continue until their peers have ended; its launcher detects that when it is
// continued.
TEST_F(HostFailure, ALauncherThatIsStoppedEndsTheOtherHost) {
  for (const bool first : {true, false}) {
    const std::string stop =
        fmt::format("{}kill -STOP $job; await code.{}; kill -CONT $job", running, first ? 1 : 0);
    const std::string timeout = "--host-timeout 1";
    const auto results = first ? run(stop, ":", timeout) : run(":", stop, timeout);
    const HostResult& other = results[first ? 1 : 0];
    EXPECT_EQ(other.exit_code, 1) << other.err;
    EXPECT_THAT(other.err, HasSubstr(first ? "host0 (node rank 0, ranks 0 to 1) is lost"
                                           : "host1 (node rank 1, ranks 2 to 3) is lost"));
    EXPECT_NE(results[first ? 0 : 1].exit_code, 0);
    for (const char* out : {"out.0", "out.1"}) std::filesystem::remove(folder_.path() / out);
  }
}

TEST_F(HostFailure, ALinkThatGoesDownEndsBothHosts) {
  const auto results = run(":", running + "ip link set eth0 down", "--host-timeout 1");
  for (const HostResult& result : results) {
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_THAT(
        result.err,
        ContainsRegex("on this host ranks? .* in all_reduce \\[2097152\\] float32 #[0-9]+ of group world"));
  }
  EXPECT_THAT(results[0].err, HasSubstr("error: host1 (node rank 1, ranks 2 to 3) is lost"));
  EXPECT_THAT(results[1].err, HasSubstr("error: host0 (node rank 0, ranks 0 to 1) is lost"));
}

// Rank 1, on the first host, does not make the call in which all other ranks wait, including those of the
// second host.
TEST_F(HostFailure, ARankThatHangsIsNamedOnAllHosts) {
  const auto results = run(":", ":", "--hang-timeout 1 --log-dir logs", "skip");
  for (const HostResult& result : results) {
    EXPECT_EQ(result.exit_code, hang_exit_code) << result.err;
    EXPECT_THAT(
        result.err,
        ContainsRegex(
            "error: rank 1 on host0 has made no progress for [0-9.]+ s: it is sleeping \\(state S\\) and has not called "
            "all_reduce \\[1024\\] float32 #17 of group world.*ranks 0, 2, 3 wait in all_reduce"));
  }
  const ShellResult report =
      shell(fmt::format("{} inspect {}", STRETTO_PROGRAM, (folder_.path() / "logs").string()));
  EXPECT_THAT(report.out, AllOf(HasSubstr("rank 1 has not called all_reduce [1024] float32 #17"),
                                HasSubstr("rank 3 on host1")));
}

TEST_F(HostFailure, AllHostsRestartTogether) {
  const auto results = run(":", ":", "--hang-timeout 1 --max-restarts 1", "skip");
  for (const HostResult& result : results) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, has_all("restart 1 of 1 in 1 s", "rank 1 on host0 has made no progress"));
  }
}

TEST_F(HostFailure, RestartsAreCountedOnAllHosts) {
  const auto results = run(":", ":", "--max-restarts 1", "die");
  for (const HostResult& result : results) {
    EXPECT_EQ(result.exit_code, 134) << result.err;
    EXPECT_THAT(result.err, AllOf(HasSubstr("restart 1 of 1 in 1 s, because rank 1 on host0"),
                                  HasSubstr("giving up after 1 restart")));
  }
}

TEST_F(HostFailure, ALostHostIsNotWaitedFor) {
  const auto results = run(":", running + "kill -9 $job", "--max-restarts 3");
  EXPECT_EQ(results[0].exit_code, 1) << results[0].err;
  EXPECT_THAT(results[0].err, Not(HasSubstr("restart 1 of")));
}

TEST_F(HostFailure, ASignalToOneLauncherEndsAll) {
  const auto results = run(":", running + "kill -TERM $job");
  for (const HostResult& result : results) {
    EXPECT_EQ(result.exit_code, 143) << result.err;
  }
  EXPECT_THAT(results[0].err, HasSubstr("host1: SIGTERM (Terminated): stopping"));
}

TEST_F(HostFailure, APauseOfOneLauncherIsRefused) {
  const auto results = run(running + "kill -TSTP $job; await err.0 SIGTSTP; sleep 1.5; kill -TERM $job", ":",
                           "--host-timeout 1");
  for (const HostResult& result : results) EXPECT_EQ(result.exit_code, 143) << result.err;
  EXPECT_THAT(results[0].err, has_all("warning: SIGTSTP (Ctrl-Z) is ignored", "several hosts",
                                      "lost after 1 s without a heartbeat", "Ctrl-C ends the job"));
}

TEST_F(HostFailure, AUsageErrorExplainsOtherFailures) {
  const auto results = run(":", ":", "--max-restarts 3", "refuse");
  for (const HostResult& result : results) {
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr("the first mistake"));
    EXPECT_THAT(result.err, Not(HasSubstr("restart 1 of")));
  }
}

}  // namespace
}  // namespace stretto
