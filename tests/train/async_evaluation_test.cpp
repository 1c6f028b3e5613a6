#include <csignal>
#include <map>
#include <set>

#include "tests/train/run_states.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/message_support.h"

// evaluate.async: a process of its own evaluates snapshots while the ranks train.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class AsyncEvaluation : public RunStates<Workspace> {
 protected:
  // By step, the metrics of each evaluation; the speed is left out.
  std::map<int64_t, nlohmann::json> evaluations(const std::string& run) const {
    std::map<int64_t, nlohmann::json> found;
    for (const nlohmann::json& record : workspace_.metrics(run)) {
      nlohmann::json metrics;
      for (const auto& [name, value] : record.items()) {
        if (name.starts_with("eval_") && name != "eval_runtime" && !name.ends_with("per_second"))
          metrics[name] = value;
      }
      if (metrics.is_null()) continue;
      EXPECT_FALSE(found.contains(record["step"])) << run << ": two records of step " << record["step"];
      found[record["step"]] = metrics;
    }
    return found;
  }
  // 8 steps of 16 samples.
  static std::string every(int steps) { return fmt::format("evaluate.every={} ", steps); }
  void expect_same_evaluations(const std::string& run, const std::string& other) const {
    const auto found = evaluations(run), expected = evaluations(other);
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [step, metrics] : expected) {
      ASSERT_TRUE(found.contains(step)) << step;
      for (const auto& [name, value] : metrics.items())
        EXPECT_NEAR(found.at(step).at(name).get<double>(), value.get<double>(), 1e-6) << name << step;
    }
  }
  static std::vector<pid_t> evaluators(const BackgroundShell& run) {
    std::vector<pid_t> found;
    for (const pid_t rank : children_of(run.pid(), "RANK=0"))
      for (const pid_t process : children_of(rank)) found.push_back(process);
    return found;
  }
};

TEST_F(AsyncEvaluation, HasTheMetricsAndModelsOfAnEvaluationByTheRanks) {
  for (
      const auto& [ranks, settings] :
      {std::pair(1, "optimizer.lr=0.01"),
       {2, "training.strategy=fsdp optimizer.lr=0.01"},
       {2, "training.mesh.tp=2 optimizer.lr=0.01"},
       {2, "training.precision=bf16 training.products=aten ema.decay=0.9 optimizer.lr=0.01"},
       {2,
        "training.strategy=hsdp training.dp_shard=2 training.grad_accumulation_steps=2 optimizer.lr=0.01"}}) {
    const std::string common = every(3) + settings + " checkpoint.save_models=[best_accuracy]";
    workspace_.train("ranks", ranks, common + " evaluate.at_start=true");
    workspace_.train("async", ranks, common + " evaluate.at_start=true evaluate.async=true");
    expect_same_evaluations("async", "ranks");
    for (const char* file : {"model/model.safetensors", "models/best_accuracy/model.safetensors"}) {
      ASSERT_TRUE(workspace_.has(std::string("ranks/") + file)) << file;
      EXPECT_EQ(workspace_.read(std::string("async/") + file), workspace_.read(std::string("ranks/") + file))
          << file << ", " << settings;
    }
    EXPECT_EQ(workspace_.losses("async"), workspace_.losses("ranks"));
    EXPECT_FALSE(workspace_.has("async/evaluating"));
    EXPECT_TRUE(workspace_.has("async/logger_logs/evaluation.log"));
    for (const char* run : {"ranks", "async"}) std::filesystem::remove_all(path(run));
  }
}

TEST_F(AsyncEvaluation, MetricsTakeEffectAtTheNextEvaluation) {
  const std::string stopping = " early_stopping.stopping_threshold=100 early_stopping.monitor=loss";
  workspace_.train("ranks", 1, every(2) + stopping);
  workspace_.train("async", 1, every(2) + stopping + " evaluate.async=true");
  EXPECT_EQ(workspace_.losses("ranks").size(), 2u);
  EXPECT_EQ(workspace_.losses("async").size(), 4u);
  EXPECT_EQ(evaluations("async").size(), 2u) << "that of the last step is waited for";
}

TEST_F(AsyncEvaluation, ResumesExactly) {
  const std::string settings =
      every(2) +
      "evaluate.async=true training.epochs=3 scheduler.warmup_ratio=null scheduler.type=ReduceLROnPlateau "
      "scheduler.patience=0 scheduler.threshold=0.5 ";
  workspace_.train("whole", 1, settings + "checkpoint.every=3 checkpoint.keep_last=0");
  for (const int steps : {3, 5}) {  // after a step that evaluates (6, 10), and between two (3, 5, 9)
    const std::string run = fmt::format("parts-{}", steps);
    for (int part = 0; part * steps < 12; ++part)
      workspace_.train(run, 1, settings + fmt::format("training.steps_this_run={}", steps));
    EXPECT_EQ(workspace_.losses(run), workspace_.losses("whole")) << steps;
    expect_same_evaluations(run, "whole");
    EXPECT_EQ(workspace_.read(run + "/model/model.safetensors"),
              workspace_.read("whole/model/model.safetensors"));
  }
  // A run that was killed after its checkpoint of step 3 needs no snapshot of step 2, which may be gone.
  std::filesystem::copy(path("whole"), path("killed"), std::filesystem::copy_options::recursive);
  for (const int step : {6, 9, 12}) std::filesystem::remove_all(checkpoint("killed", step));
  const ShellResult killed =
      shell(workspace_.command("train", 1, settings + "output=" + workspace_.path("killed")));
  EXPECT_EQ(killed.exit_code, 0) << killed.err;
  EXPECT_THAT(killed.err, AllOf(HasSubstr("resumed    after step 3"), Not(HasSubstr("is left out"))));
  EXPECT_EQ(workspace_.losses("killed"), workspace_.losses("whole"));
  expect_same_evaluations("killed", "whole");
}

TEST_F(AsyncEvaluation, APendingEvaluationIsRepeatedFromTheCheckpoint) {
  const std::string settings = every(4) + "checkpoint.every=4 ", async = settings + "evaluate.async=true ";
  workspace_.train("whole", 1, async);
  workspace_.train("crashed", 1, async + "training.steps_this_run=4");
  std::filesystem::remove_all(path("crashed/evaluating"));  // the checkpoint has the weights
  workspace_.train("crashed", 1, async);
  expect_same_evaluations("crashed", "whole");
  // Without the process, the ranks evaluate what is pending.
  workspace_.train("ranks", 1, async + "training.steps_this_run=4");
  workspace_.train("ranks", 1, settings);
  expect_same_evaluations("ranks", "whole");
}

TEST_F(AsyncEvaluation, AProcessThatWasKilledIsStartedAgainOnce) {
  const std::string settings = every(2) + "evaluate.async=true training.max_steps=400 track.log_every=100 ";
  BackgroundShell run(workspace_.command("train", 1, settings));
  std::set<pid_t> killed;
  const auto kill_next = [&] {
    return eventually([&] {
      for (const pid_t process : evaluators(run)) {
        if (!killed.insert(process).second) continue;
        ::kill(process, SIGKILL);
        return true;
      }
      return !run.running();
    });
  };
  ASSERT_TRUE(kill_next());
  ASSERT_TRUE(eventually([&] { return run.err().find("it is started again") != std::string::npos; }));
  ASSERT_TRUE(kill_next());
  const ShellResult result = run.wait();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(
      result.err,
      AllOf(ContainsRegex("warning: evaluate.async: process [0-9]+, which evaluates, was killed by SIGKILL "
                          ".*; it is started again to evaluate step 2"),
            ContainsRegex("evaluate.async: process [0-9]+, which evaluates, was killed by SIGKILL .*, "
                          "again while step 2 was evaluated"),
            HasSubstr("evaluate.async: false")));
}

TEST_F(AsyncEvaluation, AFailureIsThatOfTheRun) {
  const ShellResult result =
      workspace_.run("train", 2, every(2) + "evaluate.async=true optimizer.lr=1e300 training.max_steps=8");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("not finite"));
  const ShellResult best =
      workspace_.run("train", 1, every(2) + "evaluate.async=true checkpoint.keep_best=1");
  EXPECT_EQ(best.exit_code, 2);
  EXPECT_THAT(best.err, has_all("checkpoint.keep_best: ", "needs the metrics", "checkpoint is saved"));
}

// The process ends with the run, however the run ends.
TEST_F(AsyncEvaluation, TheProcessEndsWithTheRun) {
  BackgroundShell run(
      workspace_.command("train", 1, every(2) + "evaluate.async=true training.max_steps=100000"));
  std::vector<pid_t> processes;
  ASSERT_TRUE(eventually([&] {
    processes = evaluators(run);
    return !processes.empty() && workspace_.recorded_lines("run") > 4;
  }));
  ::kill(run.pid(), SIGKILL);
  const std::string status = fmt::format("/proc/{}/stat", processes[0]);
  EXPECT_TRUE(eventually([&] {
    const std::string text = read_proc(status);
    return text.empty() || text.find(") Z") != std::string::npos;
  }));
}

}  // namespace
}  // namespace stretto
