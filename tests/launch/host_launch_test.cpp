#include "tests/support/hosts.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/strings.h"

// Tests `stretto launch` on several hosts, with a launcher on each.
namespace stretto {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int usage_error = 2;
const std::string launch = "env STRETTO_SECRET=s3cret " STRETTO_PROGRAM " launch ";
const std::string two_hosts = launch + "--nodes 2 --master-addr 10.77.0.1 ";
const std::string show = " -- sh -c 'echo $RANK $LOCAL_RANK $GROUP_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE'";
// The program of a rank that runs until another launcher has been refused.
const std::string until_refused = " -- sh -c 'echo > up$RANK; until [ -e refused ]; do sleep 0.02; done'";
const std::string refused = "; code=$?; echo > refused; exit $code";
const std::string check = std::string(" -- ") + COLLECTIVE_PROBE + " check shm";

class HostLaunch : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = why_no_hosts()) GTEST_SKIP() << *reason;
  }
  std::vector<HostResult> run(const std::vector<std::string>& commands) const {
    auto results = run_on_hosts(folder_.path(), commands);
    for (const HostResult& result : results) EXPECT_THAT(result.left, IsEmpty());
    return results;
  }
  // The message of a job that is refused on all hosts with the same message.
  std::string refusal(const std::vector<std::string>& commands, int exit_code = usage_error) const {
    const auto results = run(commands);
    for (const HostResult& result : results) {
      EXPECT_EQ(result.exit_code, exit_code) << result.err;
      EXPECT_EQ(result.err, results[0].err);
    }
    return results[0].err;
  }
  TempFolder folder_;
};

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string_view line : split(trim(text), '\n')) lines.emplace_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST_F(HostLaunch, RanksAreNumberedOverTheHosts) {
  const auto results =
      run({two_hosts + "-N 1 --node-rank 0" + show, two_hosts + "-N 3 --node-rank 1" + show});
  EXPECT_EQ(results[0].out, "0 0 0 4 1\n");
  EXPECT_THAT(sorted_lines(results[1].out),
              ElementsAre("[rank 1] 1 0 1 4 3", "[rank 2] 2 1 1 4 3", "[rank 3] 3 2 1 4 3"));
  EXPECT_THAT(results, Each(Field(&HostResult::exit_code, 0)));
  for (const HostResult& result : results)
    EXPECT_THAT(result.err, has_all("host0 (node rank 0, rank 0)", "host1 (node rank 1, ranks 1 to 3)"));
}

TEST_F(HostLaunch, RanksOfAllHostsFormOneGroup) {
  const auto results =
      run({two_hosts + "-N 2 --node-rank 0" + check, two_hosts + "-N 2 --node-rank 1" + check});
  for (const HostResult& result : results) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("shared memory, 2 ranks on this host; TCP between 2 hosts"));
    EXPECT_THAT(result.err, Not(HasSubstr("warning")));
  }
}

TEST_F(HostLaunch, TheTrafficBetweenHostsMayBeEncrypted) {
  const std::string command = two_hosts + "--encrypt -N 2" + check;
  for (const HostResult& result : run({command, command})) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("shared memory, 2 ranks on this host; TCP between 2 hosts, encrypted"));
  }
}

TEST_F(HostLaunch, HostsWithoutANumberTakeAFreeOne) {
  const std::string command = launch + "--nodes 3 --master-addr 10.77.0.2 --master-port 4242" + show;
  const auto results = run({command, command, command});
  EXPECT_EQ(results[1].out, "0 0 0 3 1\n") << results[1].err;
  EXPECT_THAT((std::vector<std::string>{results[0].out, results[2].out}),
              ::testing::UnorderedElementsAre("[rank 1] 1 0 1 3 1\n", "[rank 2] 2 0 2 3 1\n"));
}

TEST_F(HostLaunch, TakesTorchrunsOptions) {
  const std::string options =
      "--nnodes=2 --rdzv_backend=c10d --rdzv-id=7 --max-restarts=0 --nproc-per-node=1 ";
  const auto results = run(
      {launch + options + "--rdzv_endpoint=10.77.0.1:4242 --node_rank=0 -- sh -c 'echo $TORCHELASTIC_RUN_ID'",
       launch + "--nnodes 2:2 --rdzv-endpoint 10.77.0.1:4242 --no-python" + show});
  EXPECT_EQ(results[0].out, "7\n") << results[0].err;
  EXPECT_EQ(results[1].out, "[rank 1] 1 0 1 2 1\n") << results[1].err;
  const ShellResult elastic = shell(launch + "--nnodes 1:4 --rdzv-endpoint a -- true");
  EXPECT_EQ(elastic.exit_code, usage_error);
  EXPECT_THAT(elastic.err, has_all("\"1:4\"", "number of hosts"));
}

TEST_F(HostLaunch, ReadsWhatLightningReads) {
  const std::string variables = "env MASTER_ADDR=10.77.0.1 MASTER_PORT=4242 NODE_RANK=";
  const auto results =
      run({variables + "0 " + launch + "--nodes 2" + show, variables + "1 " + launch + "--nodes 2" + show});
  EXPECT_EQ(results[0].out, "0 0 0 2 1\n") << results[0].err;
  EXPECT_EQ(results[1].out, "[rank 1] 1 0 1 2 1\n") << results[1].err;
}

TEST_F(HostLaunch, WorksOverIpv6) {
  const std::string command = launch + "--nodes 2 --rdzv-endpoint [fd77::1]:4242" + check;
  for (const HostResult& result : run({command, command})) EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(HostLaunch, WarnsOfAJobWithoutASecret) {
  const std::string command = STRETTO_PROGRAM " launch --nodes 2 --master-addr 10.77.0.1" + show;
  const auto results = run({command, command});
  EXPECT_THAT(results, Each(Field(&HostResult::exit_code, 0)));
  EXPECT_THAT(results[0].err, has_all("warning: ", "10.77.0.1:29500", "STRETTO_SECRET"));
  EXPECT_THAT(results[1].err, Not(HasSubstr("warning")));
}

TEST_F(HostLaunch, TheExitCodeIsThatOfTheJob) {
  const std::string command = " -- sh -c '[ $RANK = 1 ] && exit 7; exec sleep 100'";
  const auto results = run({two_hosts + "--node-rank 0" + command, two_hosts + "--node-rank 1" + command});
  EXPECT_THAT(results, Each(Field(&HostResult::exit_code, 7)));
  for (const HostResult& result : results)
    EXPECT_THAT(result.err, has_all("error: rank 1 on host1 (process ", "exit code 7"));
}

// ---- refused jobs

TEST_F(HostLaunch, ANumberThatIsTakenNamesItsHolder) {
  const auto results = run({two_hosts + "--node-rank 0" + show, two_hosts + "--node-rank 0" + show,
                            "await code.1; exec " + two_hosts + "--node-rank 1" + show});
  EXPECT_THAT(results[1].err,
              has_all("--master-addr 10.77.0.1:", "host1 (10.77.0.2)", "start node rank 0 on"));
  EXPECT_THAT(results[0].exit_code, 0) << results[0].err;
  const auto twice = run({two_hosts + "--node-rank 0" + show + "; exit",
                          "exec " + two_hosts + "--node-rank 1" + until_refused,
                          "await up1; " + two_hosts + "--node-rank 1" + show + refused});
  EXPECT_EQ(twice[2].exit_code, usage_error);
  EXPECT_THAT(twice[2].err, has_all("--node-rank 1: ", "host1 (process ", "10.77.0.1:29500", "before host2"));
}

TEST_F(HostLaunch, OneHostTooManyIsRefused) {
  const auto results = run({two_hosts + until_refused, two_hosts + until_refused,
                            "await up0; await up1; " + two_hosts + show + refused});
  EXPECT_EQ(results[2].exit_code, usage_error);
  EXPECT_THAT(results[2].err, has_all("--nodes 2: 2 hosts", "10.77.0.1:29500", "host2"));
  EXPECT_EQ(results[0].exit_code, 0) << results[0].err;
  EXPECT_EQ(results[1].exit_code, 0) << results[1].err;
  EXPECT_THAT(shell(two_hosts + "--node-rank 2 -- true").err,
              has_all("--node-rank 2:", "--nodes 2", "0 .. 1"));
}

TEST_F(HostLaunch, HostsThatDifferAreNamed) {
  EXPECT_THAT(refusal({launch + "--nodes 2 --max-restarts 1 --master-addr 10.77.0.1 --node-rank 0" + show,
                       launch + "--nodes 2 --max-restarts 2 --master-addr 10.77.0.1 --node-rank 1" + show}),
              has_all("the hosts differ:",
                      "\n  --max-restarts: 1 on host0 (node rank 0), 2 on host1 (node rank 1)\n"));
  EXPECT_THAT(refusal({launch + "--nodes 3 --master-addr 10.77.0.1 --node-rank 0" + show,
                       launch + "--nodes 2 --master-addr 10.77.0.1 --node-rank 1" + show}),
              HasSubstr("--nodes: 3 on host0 (node rank 0)"));
}

TEST_F(HostLaunch, AHostThatDoesNotJoinIsNamed) {
  const auto results =
      run({two_hosts + "--node-rank 0 --join-timeout 1" + show,
           launch + "--nodes 2 --node-rank 1 --master-addr 10.77.0.77 --join-timeout 1" + show});
  EXPECT_EQ(results[0].exit_code, 1);
  EXPECT_THAT(results[0].err, has_all("only 1 of 2 hosts", "10.77.0.1:29500", "1 s (--join-timeout)",
                                      "missing: node rank 1"));
  EXPECT_EQ(results[1].exit_code, 1);
  EXPECT_THAT(results[1].err, has_all("node rank 0", "--master-addr 10.77.0.77 --master-port 29500", " 1 s"));
}

TEST_F(HostLaunch, AWrongSecretIsRefusedOnBothSides) {
  const auto results = run({two_hosts + "--node-rank 0 --join-timeout 2" + show,
                            "export STRETTO_SECRET=other; " STRETTO_PROGRAM
                            " launch --nodes 2 --master-addr 10.77.0.1 --node-rank 1" +
                                show});
  EXPECT_EQ(results[1].exit_code, usage_error);
  EXPECT_THAT(results[1].err,
              has_all("10.77.0.1:29500", "refused", "(STRETTO_SECRET or STRETTO_SECRET_FILE)"));
  EXPECT_THAT(results[0].err, HasSubstr("only 1 of 2 hosts"));
  EXPECT_THAT(results[0].err, HasSubstr("could not join: 10.77.0.2 (it does not have the job's secret)"));
}

TEST_F(HostLaunch, TheFirstHostNamesALauncherThatCouldNotJoin) {
  const std::string three_hosts = launch + "--nodes 3 --master-addr 10.77.0.1 --join-timeout 3 --node-rank ";
  const auto results = run({three_hosts + "0" + show, three_hosts + "1" + show, three_hosts + "1" + show});
  EXPECT_THAT(results[0].err, has_all("a launcher could not join: --node-rank 1: ",
                                      "with this node rank before", "missing: node rank 2\n"));
}

TEST_F(HostLaunch, EncryptionOfOneSideOnlyIsRefusedOnBothHosts) {
  const std::string encrypted = two_hosts + "--encrypt --join-timeout 2",
                    plain = two_hosts + "--join-timeout 2";
  const auto other_plain = run({encrypted + " --node-rank 0" + show, plain + " --node-rank 1" + show});
  const auto first_plain = run({plain + " --node-rank 0" + show, encrypted + " --node-rank 1" + show});
  for (const auto& results : {other_plain, first_plain}) {
    EXPECT_EQ(results[1].exit_code, usage_error);
    EXPECT_THAT(results[1].err, has_all("--master-addr 10.77.0.1: 10.77.0.1:29500: the process there ",
                                        "pass --encrypt on all hosts or on none\n"));
    EXPECT_THAT(results[0].err,
                has_all("only 1 of 2 hosts", "could not join: 10.77.0.2 (it ended the connection before"));
  }
}

TEST_F(HostLaunch, EncryptionNeedsTheSameSecret) {
  const auto results = run({two_hosts + "--encrypt --node-rank 0 --join-timeout 2" + show,
                            "export STRETTO_SECRET=other; " STRETTO_PROGRAM
                            " launch --nodes 2 --master-addr 10.77.0.1 --node-rank 1 --encrypt" +
                                show});
  EXPECT_EQ(results[1].exit_code, usage_error);
  EXPECT_THAT(results[1].err, has_all("10.77.0.1:29500: ", "encryption of this process was refused",
                                      "(STRETTO_SECRET or STRETTO_SECRET_FILE)", "not the job's\n"));
  EXPECT_THAT(shell("env -u STRETTO_SECRET " STRETTO_PROGRAM
                    " launch --nodes 2 --master-addr 127.0.0.1 --encrypt -- true")
                  .err,
              has_all("--encrypt: ", "the job's secret", "there is none"));
}

TEST_F(HostLaunch, ASecretThatOthersCanReadIsRefused) {
  const std::string file = (folder_.path() / "secret").string();
  write_file_atomic(file, "abc\n");
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  const std::string command =
      STRETTO_PROGRAM " launch --nodes 2 --master-addr 127.0.0.1 --secret-file " + file + " -- true";
  EXPECT_THAT(shell(command).err, has_all("--secret-file:", file + " (mode 644)", "chmod 600 " + file));
  EXPECT_THAT(shell(STRETTO_PROGRAM " launch --nodes 2 -- true").err, HasSubstr("--nodes 2: --master-addr"));
  EXPECT_THAT(shell(STRETTO_PROGRAM " launch --node-rank 1 -- true").err, HasSubstr("the job has one host"));
}

TEST_F(HostLaunch, APortInUseIsNamed) {
  const auto results = run({"background " + two_hosts + "--node-rank 0 -- true; await /proc/net/tcp :733C; " +
                            two_hosts + "--node-rank 0 -- true; code=$?; kill $job; wait $job; exit $code"});
  EXPECT_EQ(results[0].exit_code, usage_error);
  EXPECT_THAT(results[0].err, has_all("--master-port 29500:", "10.77.0.1:29500", "Address already in use"));
}

TEST_F(HostLaunch, ANameThatResolvesToTheHostItself) {
  const std::string command = launch + "--nodes 2 --master-addr host0 --join-timeout 5";
  const auto with_route = run({"ip route add default dev eth0; exec " + command + show, command + show});
  EXPECT_EQ(with_route[0].exit_code, 0) << with_route[0].err;
  EXPECT_EQ(with_route[0].out, "0 0 0 2 1\n");
  const auto without = run({command + show});
  EXPECT_EQ(without[0].exit_code, usage_error);
  EXPECT_THAT(without[0].err, has_all("--master-addr:", "host0:29500", "127.0.1.1", "default route"));
}

}  // namespace
}  // namespace stretto
