#include <csignal>
#include <map>
#include <random>
#include <thread>

#include "tests/train/meshes.h"
#include "tests/train/run_states.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

// Programs that are killed, stopped by a signal or stopped by a disk error are resumed as if they had never
// stopped.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class Interrupted : public RunStates<Workspace> {
 protected:
  ShellResult train(const std::string& run, int ranks, const std::string& settings) const {
    return workspace_.run("train", ranks, settings + " output=" + path(run));
  }
};

// ---- kills

// SIGKILL is sent to the launcher, and thereby ends all ranks. A quarter of the kills come at any moment; the
// others are aimed at the start, at a step or at a save. Afterwards the test determines which of these each
// one hit.
class Kills : public Interrupted {
 protected:
  enum Phase { starting, stepping, saving };

  static bool has_stepped(const BackgroundShell& run) {
    return run.err().find("\nstep ") != std::string::npos;
  }
  bool is_saving() const { return !checkpoint_format::list_partial(path("killed/checkpoints")).empty(); }

  // Waits until the run reaches the moment at which kill number `kill` is aimed, or ends.
  void wait_for_moment(const BackgroundShell& run, int kill) {
    const auto wait_until = [&](const auto& condition) {
      while (run.running() && !condition()) std::this_thread::sleep_for(std::chrono::microseconds(100));
    };
    const auto pause = [&](int64_t shortest, int64_t longest) {
      const auto moment = std::chrono::steady_clock::now() +
                          std::chrono::milliseconds(shortest + random_() % (longest - shortest));
      wait_until([&] { return std::chrono::steady_clock::now() >= moment; });
    };
    if (kill % 4 == 0) return pause(100, 1600);
    if (kill % 4 == 1) return pause(0, 300);
    wait_until([&] { return has_stepped(run); });
    pause(0, 100);
    wait_until([&] { return is_saving() == (kill % 4 == 3); });
  }
  // Determines what a run was doing when it was killed. Partial checkpoints belong to this run if it has
  // taken a step: they are removed at the start.
  Phase phase(const BackgroundShell& run) const {
    if (!has_stepped(run)) return starting;
    return is_saving() ? saving : stepping;
  }

  // Kills a run on this mesh `kills` times, lets it end, and compares it with a run that was not killed.
  void kill_often(const RunMesh& mesh, int kills) {
    for (const char* run : {"whole", "killed"}) std::filesystem::remove_all(path(run));
    const std::string settings = settings_ + mesh.settings;
    workspace_.train("whole", mesh.ranks, settings);
    const auto expected = state_of("whole", 60);
    const std::string weights = workspace_.read("whole/model/model.safetensors");
    const auto expect_whole = [&] {
      expect_same(state_of("killed", 60), expected);
      EXPECT_TRUE(workspace_.read("killed/model/model.safetensors") == weights);
      ++completed_;
    };
    for (int killed = 0; killed < kills;) {
      BackgroundShell run(workspace_.command("train", mesh.ranks, settings + " output=" + path("killed")));
      wait_for_moment(run, killed);
      const bool was_running = run.running();
      if (was_running) ::kill(run.pid(), SIGKILL);
      const ShellResult result = run.wait();
      if (result.exit_code == 128 + SIGKILL) {
        ++hits_[phase(run)];
        ++killed;
        continue;
      }
      ASSERT_EQ(result.exit_code, 0) << result.err;
      ASSERT_NO_FATAL_FAILURE(expect_whole());
      std::filesystem::remove_all(path("killed"));
    }
    const ShellResult last = train("killed", mesh.ranks, settings);
    ASSERT_EQ(last.exit_code, 0) << last.err;
    expect_whole();
  }

  std::map<Phase, int> hits_;
  int completed_ = 0;  // runs

 private:
  const std::string settings_ =
      "training.precision=fp32 training.epochs=100 training.max_steps=60 checkpoint.every=3 ";
  std::mt19937 random_{1};
};

// STRETTO_KILLS sets the number of kills, which all meshes share. By default there are a few on one mesh, and
// ReplayOnAMesh kills rank threads on each.
TEST_F(Kills, AtRandomMomentsChangeNothing) {
  const char* given = std::getenv("STRETTO_KILLS");
  const int kills = given == nullptr ? 12 : static_cast<int>(std::strtol(given, nullptr, 10));
  const int meshes = given == nullptr ? 1 : static_cast<int>(std::size(run_meshes));
  workspace_.write("train.tsv", make_rows(160, 3));
  for (int mesh = 0; mesh < meshes; ++mesh) {
    SCOPED_TRACE(run_meshes[mesh].name);
    const int begin = kills * mesh / meshes, end = kills * (mesh + 1) / meshes;
    ASSERT_NO_FATAL_FAILURE(kill_often(run_meshes[mesh], end - begin));
  }
  printf(
      "%d kills on %d %s: %d at the start, %d in a step, %d in a save; %d runs completed, all with the "
      "weights of a run that was not killed\n",
      kills, meshes, meshes == 1 ? "mesh" : "meshes", hits_[starting], hits_[stepping], hits_[saving],
      completed_);
  for (const Phase phase : {starting, stepping, saving}) {
    EXPECT_GE(hits_[phase], kills / 10) << "too few kills hit phase " << phase << ": aim them better";
  }
}

// ---- signals

class ResumeAfterSignal : public Interrupted {
 protected:
  const std::string settings_ = "training.precision=fp32 training.epochs=1000 training.max_steps=";

  BackgroundShell start(const std::string& steps) {
    return BackgroundShell(workspace_.command("train", 2, settings_ + steps + " output=" + path("run")));
  }
  bool has_begun() const { return workspace_.recorded_lines("run") > 0; }
};

TEST_F(ResumeAfterSignal, StoppingSavesAndPrintsTheCommandThatResumes) {
  for (const int signal : {SIGTERM, SIGINT}) {
    std::filesystem::remove_all(path("run"));
    const std::string command = workspace_.command("train", 2, settings_ + "100000 output=" + path("run")) +
                                " --max-restarts 2 --grace 50 --hang-timeout 100";
    BackgroundShell run(command);
    ASSERT_TRUE(eventually([&] { return has_begun(); }));
    ::kill(run.pid(), signal);
    const ShellResult result = run.wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const std::string arguments = command.substr(command.find(" train "));
    EXPECT_THAT(result.err,
                HasSubstr("stopped    the state is saved; resume with: stretto" + arguments + "\n"));
    EXPECT_EQ(newest("run"), static_cast<int64_t>(workspace_.losses("run").size()));
    EXPECT_FALSE(workspace_.has("run/summary.json"));
  }
  const int64_t stopped_after = newest("run");
  const auto last = std::to_string(stopped_after + 3);
  workspace_.train("whole", 2, settings_ + last + " checkpoint.accept_changes=[training.max_steps]");
  workspace_.train("run", 2, settings_ + last + " checkpoint.accept_changes=[training.max_steps]");
  EXPECT_EQ(workspace_.losses("run").size(), static_cast<size_t>(stopped_after + 3));
}

TEST_F(ResumeAfterSignal, SigusrOneSavesAndContinues) {
  BackgroundShell run(workspace_.command("train", 2, settings_ + "100000 output=" + path("run")));
  ASSERT_TRUE(eventually([&] { return has_begun(); }));
  ::kill(run.pid(), SIGUSR1);
  ASSERT_TRUE(eventually([&] { return newest("run") > 0; }));
  const auto saved = newest("run");
  ASSERT_TRUE(eventually([&] { return workspace_.recorded_lines("run") > saved; }));
  checkpoint_format::verify(checkpoint("run", static_cast<int>(saved)));
}

// ---- refusals

TEST_F(Interrupted, OtherSettingsAreRefusedUnlessAccepted) {
  const std::string settings =
      "training.precision=fp32 training.max_steps=4 checkpoint.every=2 evaluate.every=never ";
  const auto expect_refusal = [&](const std::string& changes,
                                  const ::testing::Matcher<const std::string&>& message) {
    const ShellResult result = train("run", 1, settings + changes);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, message);
  };
  workspace_.train("run", 1, settings);
  expect_refusal("optimizer.lr=0.5 training.seed=8",
                 AllOf(HasSubstr("was saved by a run with other settings:"),
                       HasSubstr("optimizer.lr: 0.001 in the checkpoint, now 0.5"),
                       HasSubstr("training.seed: 7 in the checkpoint, now 8"),
                       HasSubstr("checkpoint.accept_changes=[optimizer.lr, training.seed]")));
  const ShellResult meant =
      train("run", 1, settings + "training.max_steps=6 checkpoint.accept_changes=[training.max_steps]");
  EXPECT_EQ(meant.exit_code, 0) << meant.err;
  EXPECT_THAT(meant.err, HasSubstr("training.max_steps changed from 4 to 6"));
  EXPECT_THAT(workspace_.losses("run"), SizeIs(6));
  expect_refusal("checkpoint.accept_changes=[optimizer.lrr]", HasSubstr("did you mean \"optimizer.lr\"?"));
}

TEST_F(Interrupted, TwoRunsInOneFolderAreRefused) {
  BackgroundShell first(
      workspace_.command("train", 1, "training.max_steps=1000000 output=" + path("shared")));
  ASSERT_TRUE(eventually([&] { return workspace_.has("shared/metrics.jsonl"); }));
  const std::string refusal = "another run is writing into " + path("shared");
  const std::string again = workspace_.command("train", 1, "output=" + path("shared"));
  BackgroundShell launched(again);  // each waits for the lock for a moment: both at the same time
  BackgroundShell by_torchrun(torchrun_variables(0, 1) + again);
  for (const ShellResult& refused : {launched.wait(), by_torchrun.wait()}) {
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr(refusal));
  }
  EXPECT_THAT(workspace_.read("shared/logger_logs/training_0.log"), Not(HasSubstr("another run")))
      << "the first run's log is its own";
}

TEST_F(Interrupted, AKilledRunReleasesItsFolder) {
  const std::string settings = "training.epochs=100000 training.max_steps=1000000 output=" + path("run");
  BackgroundShell first(workspace_.command("train", 2, settings));
  ASSERT_TRUE(eventually([&] { return workspace_.has("run/metrics.jsonl"); }));
  ::kill(first.pid(), SIGKILL);
  BackgroundShell second(workspace_.command("train", 2, settings));
  ASSERT_TRUE(
      eventually([&] { return !second.running() || second.err().find("step ") != std::string::npos; }));
  EXPECT_TRUE(second.running()) << second.err();
}

// ---- disk errors

TEST_F(Interrupted, AFullDiskOfOneRankIsReportedAndTrainingContinues) {
  const std::string settings =
      "training.max_steps=6 checkpoint.every=2 evaluate.every=never output=" + path("run");
  const ShellResult result = shell(with_file_fault("enospc@1+:rank=1:path=step-00000004") +
                                   workspace_.command("train", 2, settings));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("the checkpoint of step 4 was not saved: rank 1: "),
                                HasSubstr("No space left")));
  EXPECT_THAT(workspace_.read("run/logger_logs/training_0.log"),
              HasSubstr("the checkpoint of step 4 was not saved: rank 1"));
  EXPECT_EQ(newest("run"), 6);
  EXPECT_THAT(checkpoint_format::list_checkpoints(path("run/checkpoints")), SizeIs(2));
}

TEST_F(Interrupted, ALastCheckpointThatFailsFailsTheRunAndLeavesTheModel) {
  const std::string settings = "training.max_steps=4 checkpoint.every=2 evaluate.every=never output=";
  ASSERT_EQ(workspace_.run("train", 2, settings + path("whole")).exit_code, 0);
  const ShellResult result = shell(with_file_fault("enospc@1+:path=step-00000004") +
                                   workspace_.command("train", 2, settings + path("run")));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("the last checkpoint was not saved: "),
                                HasSubstr("; the model is in " + path("run/model"))));
  EXPECT_EQ(newest("run"), 2);
  EXPECT_TRUE(workspace_.read("run/model/model.safetensors") ==
              workspace_.read("whole/model/model.safetensors"));
}

// ---- the end

// Once a run has ended, the same command must not start from a checkpoint of an earlier interruption.
TEST_F(Interrupted, AFinishedRunTakesNoSteps) {
  const std::string settings =
      "training.max_steps=300 evaluate.every=never training.precision=fp32 output=" + path("run");
  BackgroundShell run(workspace_.command("train", 2, settings));
  ASSERT_TRUE(eventually([&] { return workspace_.recorded_lines("run") > 0; }));
  ::kill(run.pid(), SIGINT);
  ASSERT_EQ(run.wait().exit_code, 0);
  const int64_t stopped_after = newest("run");
  ASSERT_GT(stopped_after, 0);
  if (stopped_after == 300) GTEST_SKIP() << "it had ended before the signal came";

  ASSERT_EQ(workspace_.run("train", 2, settings).exit_code, 0);
  EXPECT_EQ(newest("run"), 300) << "the final state is saved";
  const std::string summary = workspace_.read("run/summary.json"),
                    metrics = workspace_.read("run/metrics.jsonl"),
                    log = workspace_.read("run/logger_logs/training_0.log"),
                    weights = workspace_.read("run/model/model.safetensors");

  const ShellResult again = workspace_.run("train", 2, settings);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, AllOf(HasSubstr("nothing to do: the run in " + path("run") +
                                         " has completed all of its steps (300)"),
                               HasSubstr("raise training.max_steps")));
  EXPECT_EQ(workspace_.read("run/summary.json"), summary);
  EXPECT_EQ(workspace_.read("run/metrics.jsonl"), metrics);
  EXPECT_EQ(workspace_.read("run/logger_logs/training_0.log"), log);
  EXPECT_TRUE(workspace_.read("run/model/model.safetensors") == weights);

  workspace_.train("run", 2,
                   "evaluate.every=never training.precision=fp32 training.max_steps=310 "
                   "checkpoint.accept_changes=[training.max_steps]");
  EXPECT_EQ(newest("run"), 310);
}

}  // namespace
}  // namespace stretto
