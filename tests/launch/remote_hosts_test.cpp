#include <cstdlib>

#include "tests/support/hosts.h"
#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/strings.h"

// Tests jobs that one host starts on others by ssh: with --hosts, and with Open MPI's mpirun. The hosts are
// network namespaces (scripts/testbed.sh), with a real ssh server on host1.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SshHosts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = why_no_hosts()) GTEST_SKIP() << *reason;
    if (shell("command -v ssh && command -v ssh-keygen && test -x /usr/sbin/sshd").exit_code != 0)
      GTEST_SKIP() << "OpenSSH (packages openssh-server, openssh-client) is missing";
    const std::string here = folder_.path().string();
    shell(fmt::format(
        "cd {} && ssh-keygen -q -t ed25519 -N '' -f host_key && ssh-keygen -q -t ed25519 -N '' -f key && "
        "cp key.pub authorized_keys && echo \"host1,10.77.0.2,fd77::2 $(cut -d' ' -f1,2 host_key.pub)\" > known_hosts; "
        "mkdir -p /run/sshd",
        here));
    write_file_atomic(
        folder_.path() / "sshd_config",
        fmt::format("HostKey {}/host_key\nAuthorizedKeysFile {}/authorized_keys\nStrictModes no\nUsePAM no\n"
                    "PasswordAuthentication no\nPermitRootLogin yes\nPidFile none\n",
                    here, here));
    ssh_ = fmt::format("ssh -F none -i {}/key -o BatchMode=yes -o UserKnownHostsFile={}/known_hosts", here,
                       here);
  }
  // Runs a command on host0, in which "ssh" may be used, while host1 runs only the server. If the server
  // cannot be used, works_ is false and the command is not run.
  const std::vector<HostResult>& run(const std::string& command) {
    for (const char* name : {"ended", "works"}) std::filesystem::remove(folder_.path() / name);
    write_file_atomic(folder_.path() / "ssh", "#!/bin/sh\nexec /usr/bin/" + ssh_ + " \"$@\"\n");
    std::filesystem::permissions(folder_.path() / "ssh", std::filesystem::perms(0700));
    results_ = run_on_hosts(
        folder_.path(),
        {"export PATH=$PWD:$PATH; for try in $(seq 50); do [ -e ended ] && break; "
         "ssh host1 true 2> /dev/null && touch works && break; sleep 0.05; done; "
         "[ -e works ] || { touch ended; exit 99; }; " +
             command + "; code=$?; touch ended; exit $code",
         "/usr/sbin/sshd -D -e -f sshd_config & s=$!; until [ -e ended ] || ! kill -0 $s; do sleep 0.02; done; "
         "touch ended; kill $s; wait"});
    works_ = has("works");
    for (const HostResult& result : results_) EXPECT_THAT(result.left, IsEmpty()) << result.err;
    return results_;
  }
  bool has(const std::string& name) const { return std::filesystem::exists(folder_.path() / name); }
  std::string why_not() const { return "an ssh server cannot be started here: " + results_[1].err; }
  TempFolder folder_;
  bool works_ = false;
  std::string ssh_ = "false";
  std::vector<HostResult> results_;
};

TEST_F(SshHosts, OneCommandStartsTheRanksOfAll) {
  const HostResult& result =
      run(fmt::format("{} launch -N 2 --hosts host0,host1 -- {}", STRETTO_PROGRAM, RANK_PROBE))[0];
  if (!works_) GTEST_SKIP() << why_not();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("probe 0 of 4, local 0 of 2"), HasSubstr("[rank 3] probe 3 of 4, local 1 of 2"),
                    HasSubstr("probe 0 met 4")));
  EXPECT_THAT(result.err, HasSubstr("host0 (node rank 0, ranks 0 to 1), host1 (node rank 1, ranks 2 to 3)"));
}

// The lines that README.md shows for several machines, with the names, recipe and folder of this test.
TEST_F(SshHosts, ReadmesLinesTakeTheStepsOfOneHost) {
  const std::string readme = read_file(README), mark = "<!-- on node-a and node-b -->\n```sh\n";
  ASSERT_THAT(readme, HasSubstr(mark));
  const std::string block = readme.substr(readme.find(mark) + mark.size());
  const auto lines = split(std::string_view(block).substr(0, block.find("\n```")), '\n');
  ASSERT_EQ(lines.size(), 2u);
  const Workspace workspace;
  const std::string settings = "training.max_steps=8 evaluate.every=never ";
  workspace.train("one", 4, settings);
  workspace.write("secret", std::string(64, 'a'));
  std::filesystem::permissions(workspace.path("secret"), std::filesystem::perms(0600));
  const auto here = [&](std::string_view line, const std::string& folder) {
    std::string command = fmt::format("{} --no-pin {} output={}", line, settings, workspace.path(folder));
    for (const auto& [word, meant] :
         {std::pair<std::string, std::string>{"stretto ", std::string(STRETTO_PROGRAM) + " "},
          {"questions.yaml", workspace.path("recipe.yaml")},
          {"-file secret", "-file " + workspace.path("secret")},
          {"node-a", "host0"},
          {"node-b", "host1"}}) {
      if (const size_t at = command.find(word); at != std::string::npos)
        command.replace(at, word.size(), meant);
    }
    return command;
  };
  const auto expect_the_same = [&](const std::string& folder) {
    EXPECT_LT(relative_difference(workspace.losses("one"), workspace.losses(folder)), 1e-9) << folder;
    EXPECT_LT(weight_difference(read_weights(workspace.path("one/model/model.safetensors")),
                                read_weights(workspace.path(folder + "/model/model.safetensors"))),
              1e-9)
        << folder;
  };
  const HostResult by_ssh = run("(" + here(lines[0], "ssh") + ")")[0];
  if (!works_) GTEST_SKIP() << why_not();
  ASSERT_EQ(by_ssh.exit_code, 0) << by_ssh.err;
  EXPECT_THAT(workspace.read("ssh/logger_logs/training_0.log"),
              HasSubstr("shared memory, 2 ranks on this host; TCP between 2 hosts"));
  expect_the_same("ssh");
  // On Debian a host's own name resolves to a loopback address; the route determines the one by which others
  // reach it.
  const std::string on_each = "ip route add default dev eth0; " + here(lines[1], "on_each");
  for (const HostResult& host : run_on_hosts(folder_.path(), {on_each, on_each}))
    ASSERT_EQ(host.exit_code, 0) << host.err;
  expect_the_same("on_each");
}

TEST_F(SshHosts, NothingOutlivesTheFirstLauncher) {
  const HostResult& result = run(
      fmt::format("background {} launch --hosts host0,host1:2 -- sh -c 'echo > up$RANK; exec sleep 1000'; "
                  "await up0; await up1; await up2; kill -9 $job; wait $job",
                  STRETTO_PROGRAM))[0];
  if (!works_) GTEST_SKIP() << why_not();
  EXPECT_EQ(result.exit_code, 137);
}

TEST_F(SshHosts, CtrlCAndAClosedTerminalLetRanksSave) {
  for (const char* signal : {"INT", "HUP"}) {
    const HostResult& result = run(fmt::format(
        "rm -f up*; background env --default-signal=INT,HUP {} launch --hosts host0,host1 -- sh -c "
        "'trap \"echo saved > {}$RANK; exit 0\" TERM; echo > up$RANK; while :; do sleep 0.05; done'; "
        "await up0; await up1; kill -{} $job; wait $job",
        STRETTO_PROGRAM, signal, signal))[0];
    if (!works_) GTEST_SKIP() << why_not();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(has(std::string(signal) + "0") && has(std::string(signal) + "1")) << result.err;
  }
}

TEST_F(SshHosts, SocketsListenOnTheChosenInterface) {
  const std::string add =
      "ip link add extra type veth peer name other && ip addr add 10.99.0.1/24 dev extra && ip link set extra up; ";
  const HostResult& result = run(
      add +
      fmt::format(
          "{} launch --hosts host0,host1 --interface 10.77.0.0/16 -- {} && {} launch --interface eth9 --hosts host0,host1 -- true",
          STRETTO_PROGRAM, RANK_PROBE, STRETTO_PROGRAM))[0];
  if (!works_) GTEST_SKIP() << why_not();
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.out, HasSubstr("probe 0 met 2")) << result.err;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("--interface: \"eth9\": this host has no address there; its interfaces are "),
                    HasSubstr("extra (10.99.0.1)"), HasSubstr("eth0 (10.77.0.1)")));
}

TEST_F(SshHosts, MpirunStartsRanksOnSeveralHosts) {
  if (shell("mpirun --version").exit_code != 0)
    GTEST_SKIP() << "Open MPI's mpirun (package openmpi-bin) is missing";
  const std::string mpirun =
      "mpirun --allow-run-as-root --bind-to none --mca plm_rsh_agent ssh --host host0:2,host1:2 ";
  const HostResult& result = run(mpirun + "-x MASTER_ADDR=10.77.0.1 " + RANK_PROBE)[0];
  if (!works_) GTEST_SKIP() << why_not();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("probe 1 of 4, local 1 of 2"), HasSubstr("probe 2 of 4, local 0 of 2")));
  EXPECT_THAT(run(mpirun + RANK_PROBE)[0].err, HasSubstr("mpirun -x MASTER_ADDR=<the first host>"));
}

// The run is repeated with stretto's back ends and over MPI.
TEST_F(SshHosts, MpirunsTrainingTakesTheStepsOfOneHost) {
  if (shell("mpirun --version").exit_code != 0)
    GTEST_SKIP() << "Open MPI's mpirun (package openmpi-bin) is missing";
  const Workspace workspace;
  const std::string settings = "training.max_steps=8 evaluate.every=never ";
  workspace.train("one", 4, settings);
  const auto expect_the_same = [&](const std::string& folder) {
    EXPECT_LT(relative_difference(workspace.losses("one"), workspace.losses(folder)), 1e-9);
    EXPECT_LT(weight_difference(read_weights(workspace.path("one/model/model.safetensors")),
                                read_weights(workspace.path(folder + "/model/model.safetensors"))),
              1e-9);
  };
  std::string command = workspace.command("train", 1, settings + "output=" + workspace.path("mpi"));
  command.replace(
      command.find("exec "), 5,
      "exec mpirun --allow-run-as-root --bind-to none --mca plm_rsh_agent ssh --host host0:2,host1:2 "
      "-x MASTER_ADDR=10.77.0.1 -x STRETTO_SECRET=s3cret " +
          std::string(std::getenv("TSAN_OPTIONS") != nullptr ? "-x TSAN_OPTIONS " : ""));
  const HostResult by_mpirun = run("(" + command + ")")[0];
  if (!works_) GTEST_SKIP() << why_not();
  ASSERT_EQ(by_mpirun.exit_code, 0) << by_mpirun.err;
  expect_the_same("mpi");
  if (!STRETTO_HAS_MPI) GTEST_SKIP() << "Open MPI (package libopenmpi-dev) is missing";
  command.replace(command.find(workspace.path("mpi")), workspace.path("mpi").size(),
                  workspace.path("over_mpi") + " --set training.backend=mpi");
  const HostResult over_mpi = run("(" + command + ")")[0];
  ASSERT_EQ(over_mpi.exit_code, 0) << over_mpi.err;
  EXPECT_THAT(workspace.read("over_mpi/logger_logs/training_0.log"), HasSubstr("comm       mpi"));
  expect_the_same("over_mpi");
}

}  // namespace
}  // namespace stretto
