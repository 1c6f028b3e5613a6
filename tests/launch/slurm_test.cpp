#include "tests/support/hosts.h"
#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/strings.h"

// Tests Slurm jobs, with Slurm's daemons on two hosts; host0 runs the controller.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* configuration = R"(ClusterName=test
SlurmctldHost=host0
SlurmUser=USER
SlurmdUser=USER
AuthType=auth/munge
AuthInfo=socket=FOLDER/munge.socket
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation=FOLDER/state
SlurmdSpoolDir=FOLDER/spool.%n
SlurmctldPidFile=FOLDER/slurmctld.pid
SlurmdPidFile=FOLDER/slurmd.%n.pid
SlurmctldLogFile=FOLDER/slurmctld.log
SlurmdLogFile=FOLDER/slurmd.%n.log
SchedulerParameters=batch_sched_delay=0,sched_interval=1
MpiDefault=none
NodeName=host[0-1] CPUs=4 RealMemory=100 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
)";

// The route makes a host's own name resolve to the address by which others reach it.
constexpr const char* functions = R"(
export SLURM_CONF=$PWD/slurm.conf STRETTO_SECRET=s3cret
ip route add default dev eth0
if [ $(hostname) = host0 ]; then
  munged --force --foreground --key-file=$PWD/key --socket=$PWD/munge.socket --pid-file=$PWD/munge.pid \
    --log-file=$PWD/munge.log --seed-file=$PWD/munge.seed > munged.out 2>&1 & munged=$!
  until [ -S munge.socket ] || ! kill -0 $munged 2> /dev/null; do sleep 0.05; done
  slurmctld -D -i > slurmctld.out 2>&1 & controller=$!
fi
until [ -S munge.socket ] || [ -e ended ]; do sleep 0.05; done
slurmd -D -N $(hostname) > slurmd.$(hostname).out 2>&1 & daemon=$!
if [ $(hostname) = host0 ]; then
  for try in $(seq 200); do
    sinfo -h -o '%T %D' 2> /dev/null | grep -q 'idle 2' && touch works && break
    kill -0 $controller 2> /dev/null || break
    sleep 0.1
  done
  [ -e works ] || { touch ended; kill $controller $munged $daemon; exit 99; }
fi
serve() { until [ -e ended ]; do sleep 0.05; done; kill $daemon; wait $daemon; echo > served; }
# The controller ends last: until it has taken what a slurmd says of the job, that slurmd does not end.
finish() {
  scancel --state=RUNNING
  touch ended
  kill $daemon
  wait $daemon
  await served
  kill $controller $munged
  wait
  exit $1
}
)";

class Slurm : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = why_no_hosts()) GTEST_SKIP() << *reason;
    if (shell("command -v slurmctld && command -v slurmd && command -v munged").exit_code != 0)
      GTEST_SKIP() << "Slurm (packages slurm-wlm, munge) is missing";
  }
  // Runs a shell command on host0, once the daemons of both hosts run.
  HostResult run(const std::string& command) {
    const std::string here = folder_.path().string();
    std::string text = configuration;
    for (const auto& [word, value] : {std::pair<std::string, std::string>{"FOLDER", here},
                                      {"USER", std::string(trim(shell("id -un").out))}}) {
      for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + value.size()))
        text.replace(at, word.size(), value);
    }
    write_file_atomic(folder_.path() / "slurm.conf", text);
    write_file_atomic(folder_.path() / "slurm_functions", functions);
    shell(
        fmt::format("cd {} && rm -f ended served works && mkdir -p state spool.host0 spool.host1 && "
                    "head -c 1024 /dev/urandom > key && chmod 400 key",
                    here));
    const auto results = run_on_hosts(
        folder_.path(), {". ./slurm_functions; " + command + "; finish $?", ". ./slurm_functions; serve"});
    works_ = std::filesystem::exists(folder_.path() / "works");
    for (const HostResult& result : results) {
      EXPECT_NE(result.exit_code, -1) << "a daemon has not ended: " << result.err;
      EXPECT_THAT(result.left, IsEmpty()) << result.err;
    }
    return results[0];
  }
  std::string why_not() const {
    return "Slurm's daemons cannot be started here: " +
           shell(fmt::format("cd {}; tail -qn 2 munged.out slurmctld.out slurmd.*.out",
                             folder_.path().string()))
               .out;
  }
  std::string text(const std::string& name) const { return read_file(folder_.path() / name); }
  bool has(const std::string& name) const { return std::filesystem::exists(folder_.path() / name); }

  TempFolder folder_;
  bool works_ = false;
};

const std::string show_hosts =
    " launch -- sh -c 'echo rank $RANK of $WORLD_SIZE, $LOCAL_RANK on host $GROUP_RANK of $GROUP_WORLD_SIZE'";

TEST_F(Slurm, OneTaskPerNodeIsALauncher) {
  const HostResult result = run(
      fmt::format("srun -N 2 --ntasks-per-node=1 {} launch -N 2 {}", STRETTO_PROGRAM, show_hosts.substr(8)));
  if (!works_) GTEST_SKIP() << why_not();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("rank 0 of 4, 0 on host 0 of 2"), HasSubstr("rank 1 of 4, 1 on host 0 of 2"),
                    HasSubstr("rank 2 of 4, 0 on host 1 of 2"), HasSubstr("rank 3 of 4, 1 on host 1 of 2")));
  EXPECT_THAT(result.err, HasSubstr("host0 (node rank 0, ranks 0 to 1), host1 (node rank 1, ranks 2 to 3)"));
  EXPECT_THAT(result.err, Not(HasSubstr("warning")));
}

TEST_F(Slurm, RanksFillTheCoresOfATask) {
  const HostResult result =
      run(fmt::format("srun -N 2 --ntasks-per-node=1 --cpus-per-task=3 {} {}", STRETTO_PROGRAM, show_hosts));
  if (!works_) GTEST_SKIP() << why_not();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("rank 5 of 6, 2 on host 1 of 2"));
}

TEST_F(Slurm, ATaskCanBeARank) {
  const HostResult result = run(fmt::format("srun -N 2 --ntasks-per-node=2 {}; srun -n 4 {} launch -- true",
                                            RANK_PROBE, STRETTO_PROGRAM));
  if (!works_) GTEST_SKIP() << why_not();
  for (const char* line : {"probe 0 of 4, local 0 of 2", "probe 3 of 4, local 1 of 2"})
    EXPECT_THAT(result.out, HasSubstr(line));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("launch: srun or mpirun has started"));
}

// Jobs run with a launcher per node, and with a task per rank.
TEST_F(Slurm, TrainTakesTheStepsOfOneHost) {
  const Workspace workspace;
  const std::string settings = "training.max_steps=8 evaluate.every=never ";
  workspace.train("one", 4, settings);
  const auto srun = [&](const std::string& options, int ranks, const std::string& folder) {
    std::string command = workspace.command("train", ranks, settings + "output=" + workspace.path(folder));
    return "(" + command.replace(command.find("exec "), 5, "exec srun " + options + " ") + ")";
  };
  const HostResult result = run(srun("-N 2 --ntasks-per-node=1 --cpus-per-task=2", 2, "launchers") + " && " +
                                srun("-N 2 --ntasks-per-node=2", 1, "tasks"));
  if (!works_) GTEST_SKIP() << why_not();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* folder : {"launchers", "tasks"})
    EXPECT_LT(relative_difference(workspace.losses("one"), workspace.losses(folder)), 1e-9) << folder;
}

// Slurm signals every process of the job.
TEST_F(Slurm, ACancelledJobIsSaved) {
  const HostResult result = run(fmt::format(
      "srun -N 2 --ntasks-per-node=1 {} launch -- sh -c "
      "'trap \"sleep 0.3; echo saved > saved$RANK; exit 0\" TERM; echo up > up$RANK; while :; do sleep 0.05; done' & "
      "await up0; await up1; scancel --signal=TERM 1; wait $!",
      STRETTO_PROGRAM));
  if (!works_) GTEST_SKIP() << why_not();
  EXPECT_TRUE(has("saved0") && has("saved1")) << result.err;
}

TEST_F(Slurm, AJobIsRequeuedBeforeItsLimit) {
  // Ranks save when they receive SIGTERM; those of the second start run to their end.
  const std::string program =
      "sh -c '[ \"$SLURM_RESTART_COUNT\" = 1 ] && echo life 2 of rank $RANK with $STRETTO_SECRET >> lives && exit; "
      "trap \"sleep 0.3; echo saved > saved$RANK; exit 0\" TERM; echo up > up$RANK; while :; do sleep 0.05; done'";
  const HostResult result = run(fmt::format(
      "unset STRETTO_SECRET; {} launch --slurm-script --nodes 2 -N 2 --max-restarts 1 -- {} > job.sbatch && sbatch job.sbatch && "
      "await up0 && await up1 && await up2 && await up3 && scancel --signal=TERM --batch 1; "
      "for i in $(seq 300); do squeue -h -o %T | grep -q PENDING && break; sleep 0.1; done; "
      // Skips the two minutes that Slurm waits. Within two seconds, its nodes would mistake the new
      // credential for the revoked one.
      "sleep 2; scontrol update jobid=1 starttime=now; "
      "for i in $(seq 600); do [ \"$(squeue -h -o %T)\" ] || break; sleep 0.1; done; cat sh-1.out",
      STRETTO_PROGRAM, program));
  if (!works_) GTEST_SKIP() << why_not();
  EXPECT_THAT(text("job.sbatch"),
              AllOf(HasSubstr("#SBATCH --nodes=2\n"), HasSubstr("#SBATCH --cpus-per-task=2\n"),
                    HasSubstr("launch -N 2 --max-restarts 1 -- sh -c ")));
  ASSERT_TRUE(has("lives")) << result.out << text("slurmctld.out");
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_TRUE(has(fmt::format("saved{}", rank))) << rank << result.out;
    EXPECT_THAT(text("lives"), HasSubstr(fmt::format("life 2 of rank {} with ", rank))) << result.out;
  }
}

TEST(SlurmScript, ShowsTheCommandAsItIsRun) {
  const ShellResult train =
      shell(STRETTO_PROGRAM " launch --slurm-script --nodes 4 -N 8 -- stretto train 'a b.yaml' --strat fsdp");
  EXPECT_EQ(train.exit_code, 0) << train.err;
  EXPECT_THAT(train.out, AllOf(HasSubstr("\n  stretto train 'a b.yaml' --strat fsdp -N 8 &\n"),
                               HasSubstr("--job-name=train\n"), HasSubstr("#SBATCH --cpus-per-task=8\n"),
                               HasSubstr("#SBATCH --requeue\n")));
  EXPECT_EQ(shell("sh -n /dev/stdin <<'END'\n" + train.out + "END\n").exit_code, 0);
  EXPECT_THAT(shell(STRETTO_PROGRAM " launch --slurm-script --hosts a,b -- true").err,
              has_all("--slurm-script: ", "Slurm names the hosts", "--nodes only"));
  EXPECT_THAT(shell(STRETTO_PROGRAM " launch --slurm-script --log-dir l -- stretto train a.yaml").err,
              has_all("--log-dir l: ", "the recipe's output folder"));
}

}  // namespace
}  // namespace stretto
