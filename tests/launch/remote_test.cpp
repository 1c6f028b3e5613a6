#include "tests/support/shell.h"
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/socket.h"

// Tests `stretto launch --hosts`: the first launcher starts the others. The other hosts are this machine,
// reached by a script that replaces ssh, and by a real ssh server.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int usage_error = 2;

// As with sshd, the command runs in a separate session, which outlives the connection.
constexpr const char* rsh_double = R"(#!/bin/sh
echo "$@" >> rsh.commands
env >> rsh.environment
echo $$ >> rsh.pids
shift
exec 3<&0
setsid sh -c "$*" <&3 3<&- &
exec 3<&-
wait $!
)";

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// Whether the process runs; a zombie has ended.
bool runs(pid_t pid) {
  if (::kill(pid, 0) != 0) return false;
  const std::string status = read_file(fmt::format("/proc/{}/stat", pid));
  return status.substr(status.rfind(')') + 2, 1) != "Z";
}

class Remote : public ::testing::Test {
 protected:
  void SetUp() override { write_script("rsh", rsh_double); }
  void write_script(const std::string& name, const std::string& text) const {
    write_file_atomic(folder_.path() / name, text);
    std::filesystem::permissions(folder_.path() / name, std::filesystem::perms(0700));
  }
  std::string command(const std::string& options, const std::string& program) const {
    return fmt::format("cd {} && exec {} launch --rsh '{}' {} -- {}", folder_.path().string(),
                       STRETTO_PROGRAM, rsh_, options, program);
  }
  ShellResult launch(const std::string& options, const std::string& program = "true") const {
    return shell(command(options, program));
  }
  std::string text(const std::string& name) const { return read_file(folder_.path() / name); }
  bool has(const std::string& name) const { return std::filesystem::exists(folder_.path() / name); }
  pid_t number_in(const std::string& name) const {
    EXPECT_TRUE(eventually([&] { return has(name) && text(name).ends_with('\n'); })) << name;
    return static_cast<pid_t>(parse_int(trim(text(name))).value_or(0));
  }
  // Three ranks, the last two on another host, which save when they are asked to end.
  const std::string saving =
      "sh -c 'trap \"echo saved > saved$RANK; exit 0\" TERM; echo $$ > pid$RANK; "
      "while :; do sleep 0.05; done'";
  std::vector<pid_t> ranks() const { return {number_in("pid0"), number_in("pid1"), number_in("pid2")}; }

  std::string rsh_ = "./rsh";
  TempFolder folder_;
};

const std::string show =
    "sh -c 'echo rank $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE, in $(basename $PWD)'";

TEST_F(Remote, RanksRunOnAllHosts) {
  const ShellResult result = launch("-N 2 --hosts localhost,b,c:1", show);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string here = folder_.path().filename().string();
  EXPECT_THAT(result.out, AllOf(HasSubstr("rank 0 of 5, 0 of 2, in " + here + "\n"),
                                HasSubstr("[rank 3] rank 3 of 5, 1 of 2, in " + here + "\n"),
                                HasSubstr("[rank 4] rank 4 of 5, 0 of 1, in " + here + "\n")));
  EXPECT_EQ(count(result.err, "hosts "), 1u) << result.err;
  EXPECT_THAT(result.err, HasSubstr("(node rank 2, rank 4)"));
  EXPECT_THAT(result.err, Not(HasSubstr("warning")));
}

TEST_F(Remote, AHostfileNamesThem) {
  write_file_atomic(folder_.path() / "hosts", "localhost slots=1 # this one\nb slots=2\n");
  const ShellResult result = launch("--hostfile hosts", show);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("[rank 2] rank 2 of 3, 1 of 2"));
}

TEST_F(Remote, TheSecretIsInNoCommandLine) {
  write_file_atomic(folder_.path() / "secret", "correct-horse\n");
  std::filesystem::permissions(folder_.path() / "secret", std::filesystem::perms(0600));
  for (const std::string given : {"--secret-file secret", ""}) {
    const ShellResult result = shell(fmt::format(
        "cd {} && {} {} launch --rsh ./rsh --hosts localhost,b {} -- sh -c 'echo $STRETTO_SECRET'",
        folder_.path().string(), given.empty() ? "STRETTO_SECRET=correct-horse" : "", STRETTO_PROGRAM,
        given));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(count(result.out, "correct-horse"), 2u) << result.out;
    EXPECT_THAT(text("rsh.commands") + text("rsh.environment"), Not(HasSubstr("correct-horse")));
  }
  const ShellResult made = launch("--hosts localhost,b", "sh -c 'echo $STRETTO_SECRET > secret.$RANK'");
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_GE(text("secret.0").size(), 33u) << "each job has a new secret";
  EXPECT_EQ(text("secret.0"), text("secret.1"));
  EXPECT_THAT(text("rsh.commands") + text("rsh.environment"), Not(HasSubstr(trim(text("secret.0")))));
}

TEST_F(Remote, SettingsOfLibrariesReachAllHosts) {
  write_script("rsh", "#!/bin/sh\nshift\nunset OMP_NUM_THREADS\nexec sh -c \"$*\"\n");
  const ShellResult result =
      shell("export OMP_NUM_THREADS=3 HERE=1; " +
            command("--hosts localhost,b", "sh -c 'echo $RANK threads $OMP_NUM_THREADS'"));
  EXPECT_THAT(result.out, HasSubstr("1 threads 3")) << result.err;
}

TEST_F(Remote, AFailureOnAnotherHostIsReportedOnce) {
  const ShellResult result =
      launch("--hosts localhost,b:2 ", "sh -c '[ $RANK = 2 ] && echo bad disk && exit 7; exec sleep 100'");
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(count(result.err, "error: "), 1u) << result.err;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("rank 2 on "), HasSubstr("ended with exit code 7"), HasSubstr("bad disk")));
}

TEST_F(Remote, AllHostsRestart) {
  const ShellResult result =
      launch("--hosts localhost,b --max-restarts 1",
             "sh -c 'echo life $TORCHELASTIC_RESTART_COUNT; exit $((1 - TORCHELASTIC_RESTART_COUNT))'");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("[rank 1] life 1"));
  EXPECT_EQ(count(result.err, "restart 1 of 1"), 1u) << result.err;
}

// ---- ends of jobs

TEST_F(Remote, ASignalToTheFirstLauncherLetsAllRanksSave) {
  for (const int signal : {SIGINT, SIGHUP, SIGTERM}) {
    BackgroundShell job(command("--hosts localhost,b:2", saving));
    const auto pids = ranks();
    ::kill(job.pid(), signal);
    const ShellResult result = job.wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    for (const int rank : {0, 1, 2}) {
      EXPECT_TRUE(has(fmt::format("saved{}", rank))) << rank;
      std::filesystem::remove(folder_.path() / fmt::format("saved{}", rank));
      std::filesystem::remove(folder_.path() / fmt::format("pid{}", rank));
    }
    for (const pid_t pid : pids) EXPECT_FALSE(runs(pid));
  }
}

TEST_F(Remote, NothingOutlivesTheFirstLauncher) {
  BackgroundShell job(command("--hosts localhost,b:2", "sh -c 'echo $$ > pid$RANK; exec sleep 1000'"));
  const auto pids = ranks();
  ::kill(job.pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return std::ranges::none_of(pids, runs); }));
  EXPECT_TRUE(eventually([&] {
    return shell("grep -lsz " + folder_.path().filename().string() + " /proc/[0-9]*/environ").out.empty();
  }));
}

TEST_F(Remote, ABrokenConnectionEndsTheJob) {
  BackgroundShell job(command("--hosts localhost,b:2", saving));
  const auto pids = ranks();
  ::kill(number_in("rsh.pids"), SIGKILL);
  const ShellResult result = job.wait();
  EXPECT_THAT(result.err, HasSubstr("SIGHUP (Hangup): stopping"));
  for (const int rank : {0, 1, 2}) EXPECT_TRUE(has(fmt::format("saved{}", rank))) << rank;
  for (const pid_t pid : pids) EXPECT_FALSE(runs(pid));
}

TEST_F(Remote, AnInterruptedStartLeavesNothing) {
  write_script("rsh", "#!/bin/sh\necho $$ > pid\nexec sleep 1000\n");
  BackgroundShell job(command("--hosts localhost,b --host-timeout 1", "true"));
  const pid_t pid = number_in("pid");
  ::kill(job.pid(), SIGINT);
  EXPECT_NE(job.wait().exit_code, 0);
  EXPECT_FALSE(runs(pid));
}

// ---- failures at the start

TEST_F(Remote, AHostThatCannotBeReachedIsNamed) {
  write_script("rsh",
               "#!/bin/sh\necho \"ssh: connect to host $1 port 22: Connection refused\" >&2\nexit 255\n");
  const ShellResult result = launch("--hosts localhost,b");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, has_all("error: the launcher on b (node rank 1)", "exit code 255", "`./rsh b true`",
                                  "\n  ssh: connect to host b port 22: Connection refused\n"));
}

TEST_F(Remote, AMissingProgramIsNamed) {
  write_script("rsh", "#!/bin/sh\nshift\nexec sh -c \"$(echo \"$*\" | sed 's|/bin/stretto|/bin/none|')\"\n");
  const ShellResult result = launch("--hosts localhost,b");
  EXPECT_EQ(result.exit_code, usage_error);
  EXPECT_THAT(result.err,
              has_all("the launcher on b (node rank 1)", "exit code 127", "same path on all hosts"));
}

TEST_F(Remote, HostsThatDifferAreNamedOnce) {
  write_script(
      "rsh",
      "#!/bin/sh\nshift\nexec sh -c \"$(echo \"$*\" | sed 's/--max-restarts 1/--max-restarts 2/')\"\n");
  const ShellResult result = launch("--max-restarts 1 --hosts localhost,b");
  EXPECT_EQ(result.exit_code, usage_error);
  EXPECT_EQ(count(result.err, "the hosts differ:\n  --max-restarts: 1 on "), 1u) << result.err;
}

TEST_F(Remote, MistakesAreRefusedBeforeAnythingIsStarted) {
  write_file_atomic(folder_.path() / "hosts", "localhost slots=1\nb slot=2\n");
  const auto is_refused = [&](const std::string& options, const auto&... parts) {
    const ShellResult result = launch(options);
    EXPECT_NE(result.exit_code, 0) << options;
    EXPECT_THAT(result.err, has_all(parts...)) << options;
    EXPECT_EQ(count(result.err, "\n"), 1u) << result.err;
  };
  is_refused("--hostfile hosts", "hosts:2:", "\"slot=2\"", "number of ranks");
  is_refused("--hostfile none", "none");
  is_refused("--hostfile hosts --hosts a", "--hosts and --hostfile", "remove one");
  is_refused("--hosts 198.51.100.7,localhost", "--hosts:", "198.51.100.7");
  is_refused("--hosts localhost,b --node-rank 1", "--node-rank 1:", "--hosts or --hostfile", "number 0");
  is_refused("--hosts localhost,b --nodes 3", "--nodes 3:", "2 hosts");
  is_refused("", "--rsh \"./rsh\":", "--hosts or --hostfile");
  is_refused("--hosts localhost,localhost", "--rsh \"./rsh\":", "localhost is the only host of the list");
  is_refused("--hosts localhost,-oProxyCommand=x", "--hosts", "\"-oProxyCommand=x\"");
  EXPECT_FALSE(has("rsh.commands"));
}

TEST_F(Remote, OneHostNeedsNoOther) {
  const ShellResult result =
      shell(fmt::format("cd {} && exec {} launch --hosts localhost:2 {}", folder_.path().string(),
                        STRETTO_PROGRAM, "-- " + std::string(show)));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("rank 1 of 2"));
  EXPECT_FALSE(has("rsh.commands"));
}

TEST_F(Remote, EncryptionOfOneHostHasNoEffect) {
  for (const char* hosts : {"", "--hosts localhost,localhost "}) {
    const ShellResult result = shell(fmt::format("{} launch --encrypt {}-- true", STRETTO_PROGRAM, hosts));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, has_all("--encrypt has no effect", "one host")) << hosts;
  }
}

TEST_F(Remote, EncryptionWithoutASecretNamesWhatAsksForIt) {
  const auto refusal = [](const std::string& variables, const std::string& options) {
    return shell(
               fmt::format("env -u STRETTO_SECRET {} {} launch --nodes 2 --master-addr 127.0.0.1 {} -- true",
                           variables, STRETTO_PROGRAM, options))
        .err;
  };
  EXPECT_THAT(refusal("", "--encrypt"), has_all("error: --encrypt: ", "the job's secret"));
  EXPECT_THAT(refusal("STRETTO_ENCRYPT=1", ""),
              has_all("error: environment: STRETTO_ENCRYPT: ", "the job's secret"));
}

TEST_F(Remote, AStrayVariableIsNamed) {
  const ShellResult result = shell("STRETTO_JOIN=stdin " STRETTO_PROGRAM " launch -- true < /dev/null");
  EXPECT_EQ(result.exit_code, usage_error);
  EXPECT_THAT(result.err, has_all("STRETTO_JOIN is set", "standard input"));
}

// ---- a real ssh server with generated keys on a free port

class Ssh : public Remote {
 protected:
  void SetUp() override {
    if (shell("command -v ssh && command -v ssh-keygen && test -x /usr/sbin/sshd").exit_code != 0)
      GTEST_SKIP() << "OpenSSH (packages openssh-server, openssh-client) is missing";
    const int port = cluster::bound_endpoint(cluster::bind_socket({"127.0.0.1", 0})).port;
    const std::string here = folder_.path().string();
    const ShellResult keys = shell(fmt::format(
        "cd {} && ssh-keygen -q -t ed25519 -N '' -f host_key && ssh-keygen -q -t ed25519 -N '' -f key && cp key.pub authorized_keys && "
        "echo \"[127.0.0.1]:{} $(cut -d' ' -f1,2 host_key.pub)\" > known_hosts && mkdir -p /run/sshd 2>/dev/null || true",
        here, port));
    write_file_atomic(
        folder_.path() / "sshd_config",
        fmt::format(
            "Port {}\nListenAddress 127.0.0.1\nHostKey {}/host_key\nAuthorizedKeysFile {}/authorized_keys\n"
            "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nPidFile none\n",
            port, here, here));
    server_.emplace(fmt::format("exec /usr/sbin/sshd -D -e -f {}/sshd_config", here));
    rsh_ = fmt::format("ssh -F none -p {} -i {}/key -o BatchMode=yes -o UserKnownHostsFile={}/known_hosts",
                       port, here, here);
    bool ready = false;
    for (int i = 0; i < 100 && server_->running() && !ready; ++i) {
      ready = shell(rsh_ + " 127.0.0.1 true").exit_code == 0;
      if (!ready) ::usleep(50'000);
    }
    if (!ready) GTEST_SKIP() << "an ssh server cannot be started here: " << keys.err << server_->err();
  }
  std::optional<BackgroundShell> server_;
};

TEST_F(Ssh, StartsTheRanksOfOtherHosts) {
  const ShellResult result = launch("-N 2 --hosts localhost,127.0.0.1", show);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("[rank 3] rank 3 of 4, 1 of 2, in " + folder_.path().filename().string()));
}

TEST_F(Ssh, NothingOutlivesTheFirstLauncher) {
  BackgroundShell job(
      command("--hosts localhost,127.0.0.1:2", "sh -c 'echo $$ > pid$RANK; exec sleep 1000'"));
  const auto pids = ranks();
  ::kill(job.pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return std::ranges::none_of(pids, runs); }));
}

TEST_F(Ssh, CtrlCLetsAllRanksSave) {
  BackgroundShell job(command("--hosts localhost,127.0.0.1:2", saving));
  const auto pids = ranks();
  ::kill(job.pid(), SIGINT);
  EXPECT_EQ(job.wait().exit_code, 0);
  for (const int rank : {0, 1, 2}) EXPECT_TRUE(has(fmt::format("saved{}", rank))) << rank;
  for (const pid_t pid : pids) EXPECT_FALSE(runs(pid));
}

TEST_F(Ssh, AConnectionThatIsRefusedIsNamed) {
  std::filesystem::remove(folder_.path() / "key");
  const ShellResult result = launch("--hosts localhost,127.0.0.1");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              has_all("the launcher on 127.0.0.1 (node rank 1)", "exit code 255", "Permission denied"));
}

}  // namespace
}  // namespace stretto
