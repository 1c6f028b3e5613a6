#include <thread>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/optim_config/schedules.h"
#include "stretto/trainer/run/loop_fixture.h"

// Tests when the Trainer evaluates, logs, saves and ends.
namespace stretto::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct NanFrom : Line {  // from the second evaluation on
  Predictions validation_step(const Batch&, StepContext& context) override {
    context.log("loss", ++evaluations >= 2 ? NAN : 1.0);
    return {};
  }
  int evaluations = 0;
};

TEST_F(LoopTest, EvaluatesInsideOfEpochs) {
  recipe_.evaluate.every = 5;
  recipe_.track.log_every = "0.5ep";
  for (const int ranks : {1, 2}) {
    recipe_.output = folder_.path() / std::to_string(ranks);
    ::testing::internal::CaptureStderr();
    const FitResult result = fit(ranks);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("best       step 10, in epoch 2: "));
    EXPECT_THAT(steps_with("eval_loss"), ElementsAre(5, 10, 15, 20, 21));
    EXPECT_THAT(steps_with("lr"), ElementsAre(4, 7, 11, 14, 18, 21));
    EXPECT_EQ(samples_, 5 * 10) << "each sample once per evaluation";
    EXPECT_EQ(result.best_step, 10);
    EXPECT_EQ(result.best_epoch, 2);
  }
}

TEST_F(LoopTest, EvaluatesByTimeAndLogsByEvaluations) {
  recipe_.evaluate.every = "0.000001s";
  recipe_.track.log_every = "2eval";
  recipe_.training.max_steps = 6;
  fit(2);
  EXPECT_THAT(steps_with("eval_loss"), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(steps_with("lr"), ElementsAre(2, 4, 6));
}

TEST_F(LoopTest, EvaluatesBeforeTheFirstStep) {
  recipe_.evaluate.at_start = true;
  recipe_.training.max_steps = 3;
  recipe_.optimizer.as<optim::AdamwOptions>().lr = 1e3;  // everything gets worse
  const FitResult result = fit(2);
  EXPECT_THAT(steps_with("eval_loss"), ElementsAre(0, 3));
  EXPECT_EQ(result.best_step, 3) << "the evaluation at the start selects no model";
  recipe_.checkpoint.every = 1;
  recipe_.training.steps_this_run = 1;
  recipe_.output = folder_.path() / "parts";
  for (int part = 0; part < 3; ++part) fit(2);
  EXPECT_THAT(steps_with("eval_loss"), ElementsAre(0, 3)) << "not when a run is resumed";
}

TEST_F(LoopTest, LimitsTheValidationSamples) {
  recipe_.evaluate.max_samples = 3;
  recipe_.evaluate.batch_size = 2;
  for (const int ranks : {1, 2}) {
    recipe_.output = folder_.path() / std::to_string(ranks);
    fit(ranks);
    EXPECT_EQ(samples_, 3 * 3);
  }
}

TEST_F(LoopTest, TrainsOnAPartOfTheSamples) {
  recipe_.training.max_samples = 9;
  for (const int ranks : {1, 2}) {
    recipe_.output = folder_.path() / std::to_string(ranks);
    const FitResult result = fit(ranks);
    EXPECT_EQ(result.steps, 3 * 3);
    EXPECT_EQ(result.samples, 3 * 9);
  }
}

struct NoSuchMetric : Line {
  Predictions validation_step(const Batch&, StepContext& context) override {
    context.log("quality", 1);
    return {};
  }
};

TEST_F(LoopTest, ChecksTheEvaluationBeforeTraining) {
  recipe_.evaluate.sanity_steps = 1;
  recipe_.evaluate.batch_size = 2;
  fit(2);
  EXPECT_EQ(samples_, 4 + 3 * 10);
  recipe_.output = folder_.path() / "refused";
  EXPECT_THAT(message_of<ConfigError>([&] { fit<NoSuchMetric>(2); }),
              has_all("checkpoint.monitor: ", "no metric \"loss\"", "available: quality"));
  EXPECT_FALSE(std::filesystem::exists(recipe_.output / "config.yaml")) << "it ended before the first step";
  recipe_.scheduler = optim::ReduceLrOnPlateauOptions{.monitor = "quality", .mode = "max"};
  EXPECT_THAT(
      message_of<ConfigError>([&] { fit(2); }),
      has_all("scheduler.monitor: ", "no metric \"quality\"", "available: closeness, loss, train_loss"));
  recipe_.scheduler = optim::ReduceLrOnPlateauOptions{.monitor = "train_loss"};
  recipe_.early_stopping = {.patience = 1, .monitor = "quality", .mode = "max"};
  EXPECT_THAT(
      message_of<ConfigError>([&] { fit(2); }),
      has_all("early_stopping.monitor: ", "no metric \"quality\"", "available: closeness, loss, train_loss"));
  EXPECT_FALSE(std::filesystem::exists(recipe_.output / "config.yaml"));
}

TEST_F(LoopTest, SavesAfterEvaluations) {
  recipe_.evaluate.every = 4;
  recipe_.checkpoint.every = "2eval";
  recipe_.checkpoint.keep_last = 0;
  fit(2);
  EXPECT_THAT(checkpoints(), ElementsAre(8, 16, 21));
}

TEST_F(LoopTest, TheTimeOfARunIsLimited) {
  recipe_.training.max_time = "0.000001s";
  recipe_.checkpoint.every = "1ep";
  const FitResult result = fit(2);
  EXPECT_LE(result.steps, 1);
  EXPECT_EQ(result.ended_by, "training.max_time, 0.000001s, is over");
  recipe_.training.max_time = "1d";
  recipe_.output = folder_.path() / "long";
  EXPECT_EQ(fit(2).steps, 21);
}

class StopAt : public Callback {  // sleeps until the run's time must be over
 public:
  std::string name() const override { return "sleeper"; }
  void step_end(FitContext& fit, const StepReport&) override {
    if (fit.steps_done == 2) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
};

TEST_F(LoopTest, TheTimeOfARunIsSummedOverItsParts) {
  recipe_.training.max_time = "1h";
  recipe_.training.steps_this_run = 2;
  const auto sleep = [](Trainer& trainer) { trainer.add(std::make_shared<StopAt>()); };
  EXPECT_TRUE(fit(2, sleep).stopped);
  recipe_.training.max_time = "0.25s";  // less than the first part has slept
  const FitResult second = fit(2, sleep);
  EXPECT_FALSE(second.stopped);
  EXPECT_EQ(second.steps, 2);
  EXPECT_THAT(second.ended_by, HasSubstr("training.max_time"));
  EXPECT_TRUE(fit(2, sleep).was_finished);
}

TEST_F(LoopTest, StopsWhenEvaluationsNoLongerImprove) {
  recipe_.checkpoint.monitor = "closeness";
  recipe_.checkpoint.mode = "max";
  recipe_.checkpoint.every = 1;
  recipe_.evaluate.every = 1;
  recipe_.training.epochs = 20;
  recipe_.early_stopping.patience = 3;
  recipe_.early_stopping.mode = "max";
  for (const int ranks : {1, 2}) {
    recipe_.output = folder_.path() / std::to_string(ranks);
    const FitResult ended = fit(ranks);
    EXPECT_THAT(ended.ended_by, HasSubstr("for 3 evaluations (early_stopping.patience)"));
    EXPECT_EQ(ended.steps, ended.best_step + 3);
    const std::string summary = read_file(recipe_.output / "summary.json");
    EXPECT_THAT(summary, HasSubstr("has not improved on"));
    const FitResult again = fit(ranks);
    EXPECT_TRUE(again.was_finished) << "a run that stopped stays stopped";
    EXPECT_EQ(again.steps, ended.steps);
    EXPECT_EQ(read_file(recipe_.output / "summary.json"), summary);
    recipe_.early_stopping.patience = 5;
    EXPECT_EQ(fit(ranks).steps, ended.steps + 2) << "unless it may continue";
    recipe_.early_stopping.patience = 3;
  }
}

TEST_F(LoopTest, StopsAtThresholds) {
  recipe_.evaluate.every = 1;
  recipe_.early_stopping.stopping_threshold = 1.5;
  EXPECT_THAT(fit(2).ended_by, HasSubstr("better than early_stopping.stopping_threshold 1.5"));
  recipe_.output = folder_.path() / "diverged";
  recipe_.early_stopping.stopping_threshold = std::nullopt;
  recipe_.early_stopping.divergence_threshold = 100;
  recipe_.optimizer.as<optim::AdamwOptions>().lr = 1e3;
  const FitResult result = fit(2);
  EXPECT_EQ(result.steps, 1);
  EXPECT_THAT(result.ended_by, HasSubstr("worse than early_stopping.divergence_threshold 100"));
}

TEST_F(LoopTest, AMetricThatIsNotFiniteEndsTheRunOrIsAnError) {
  EXPECT_THAT(message_of([&] { fit<NanFrom>(); }), HasSubstr("the evaluation's loss (nan) is not finite"));
  recipe_.output = folder_.path() / "stopped";
  recipe_.early_stopping.patience = 9;
  const FitResult result = fit<NanFrom>();
  EXPECT_EQ(result.ended_by, "loss is nan, not finite");
  EXPECT_EQ(result.best_epoch, 1) << "NaN is never the best";
  EXPECT_EQ(result.steps, 14);
  recipe_.early_stopping.check_finite = false;
  recipe_.output = folder_.path() / "unchecked";
  EXPECT_THROW(fit<NanFrom>(), Error);
}

TEST_F(LoopTest, KeepsModelsByOtherMetrics) {
  recipe_.evaluate.every = 2;
  recipe_.checkpoint.save_models = {"best_closeness:max", "best_train_loss", "best_loss<0.000001"};
  for (const int ranks : {1, 2}) {
    recipe_.output = folder_.path() / std::to_string(ranks);
    const FitResult result = fit(ranks, [](Trainer& trainer) {
      trainer.register_model_saving("best_valid_loss", {.saving_below = 1e3});
    });
    double closest = -1e300;
    nlohmann::json step, epoch;
    for (const auto& record : records()) {
      if (!record.contains("eval_closeness") || record.at("eval_closeness") <= closest) continue;
      closest = record.at("eval_closeness");
      step = record.at("step");
      epoch = record.at("epoch");
    }
    ASSERT_LT(step, 21);
    EXPECT_EQ(
        saved_state("best_closeness"),
        (nlohmann::json{{"metric", "closeness"}, {"value", closest}, {"step", step}, {"epoch", epoch}}));
    EXPECT_EQ(saved_state("best_train_loss").at("metric"), "train_loss");
    EXPECT_EQ(saved_state("best_valid_loss").at("step"), result.best_step);
    EXPECT_EQ(read_file(recipe_.output / "models/best_valid_loss/model.safetensors"),
              read_file(recipe_.output / "model/model.safetensors"));
    EXPECT_NE(read_file(recipe_.output / "models/best_closeness/model.safetensors"),
              read_file(recipe_.output / "model/model.safetensors"));
    EXPECT_FALSE(std::filesystem::exists(recipe_.output / "models/best_loss")) << "never below the limit";
  }
}

TEST_F(LoopTest, TheTrainingLossNeedsNoEvaluation) {
  recipe_.evaluate.every = "never";
  recipe_.checkpoint.save_models = {"best_train_loss"};
  fit(2);
  EXPECT_EQ(saved_state("best_train_loss").at("step"), 14);
}

TEST_F(LoopTest, AMetricWithoutADirectionIsNamedWithItsPlace) {
  recipe_.origins.places = {{"early_stopping.monitor", "r.yaml:3:9"}, {"scheduler.monitor", "r.yaml:5:9"}};
  recipe_.early_stopping = {.patience = 1, .monitor = "quality"};
  EXPECT_THAT(message_of<ConfigError>([&] { fit(); }),
              has_all("r.yaml:3:9: early_stopping.monitor: \"quality\"", "not a built-in metric",
                      "set early_stopping.mode"));
  recipe_.early_stopping = {};
  recipe_.scheduler = optim::ReduceLrOnPlateauOptions{.monitor = "quality"};
  EXPECT_THAT(message_of<ConfigError>([&] { fit(); }),
              HasSubstr("r.yaml:5:9: scheduler.monitor: \"quality\" is not"));
}

TEST_F(LoopTest, TwoRulesOfOneNameAreRefused) {
  recipe_.checkpoint.save_models = {"best_loss", "loss"};
  EXPECT_THAT(message_of<ConfigError>([&] { fit(); }), HasSubstr("best_loss is given twice"));
  recipe_.checkpoint.save_models = {"best_quality"};
  EXPECT_THAT(
      message_of<ConfigError>([&] { fit(); }),
      has_all("checkpoint.save_models: \"quality\"", "not a built-in metric", "write best_quality:max"));
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { fit(1, [](Trainer& trainer) { trainer.register_model_saving("../x"); }); }),
              HasSubstr("is not a name for saved models"));
}

TEST_F(LoopTest, TheRateFollowsEvaluations) {
  recipe_.evaluate.every = 1;
  recipe_.track.log_every = 1;
  recipe_.checkpoint.monitor = "closeness";
  recipe_.checkpoint.mode = "max";
  recipe_.scheduler = optim::ReduceLrOnPlateauOptions{.factor = 0.5, .patience = 0};
  fit(2);
  double best = -1e300, lr = 0.1;
  for (const auto& record : records()) {
    if (record.contains("lr")) {
      EXPECT_EQ(record.at("lr").get<double>(), lr) << record;
      continue;
    }
    const double value = record.at("eval_closeness");
    if (value > best + 1e-4 * best) {
      best = value;
    } else if (lr * 0.5 > 1e-8) {
      lr *= 0.5;
    }
  }
  EXPECT_LT(lr, 0.1);
  recipe_.output = folder_.path() / "annealed";
  recipe_.scheduler = optim::AnnealOnPlateauOptions{.patience = 0, .min_learning_rate = 0.04};
  EXPECT_THAT(fit(2).ended_by, HasSubstr("is below scheduler.min_learning_rate, 0.04"));
  recipe_.checkpoint.every = 1;
  recipe_.output = folder_.path() / "annealed-twice";
  fit(2);
  EXPECT_TRUE(fit(2).was_finished);
}

// A run in parts of two steps equals the whole run under every strategy.
class PartsTest : public LoopTest, public ::testing::WithParamInterface<std::tuple<std::string, int>> {};

TEST_P(PartsTest, ARunInPartsEqualsTheWholeRun) {
  const auto [strategy, ranks] = GetParam();
  recipe_.training.strategy = strategy;
  if (strategy == "hsdp") recipe_.training.dp_shard = ranks;
  recipe_.training.epochs = 8;
  recipe_.evaluate.every = 3;
  recipe_.track.log_every = "0.25ep";
  recipe_.checkpoint.monitor = "closeness";
  recipe_.checkpoint.mode = "max";
  recipe_.checkpoint.save_models = {"best_closeness:max", "best_train_loss", "best_loss"};
  recipe_.early_stopping = {.patience = 4, .monitor = "closeness", .mode = "max"};
  recipe_.scheduler = optim::ReduceLrOnPlateauOptions{.factor = 0.5, .patience = 1};
  const FitResult whole = fit(ranks);
  EXPECT_FALSE(whole.ended_by.empty());
  const auto strip = [](std::vector<nlohmann::json> records) {
    for (auto& record : records) {
      for (const char* name :
           {"time", "samples_per_second", "tokens_per_second", "communication", "data_wait", "rank_imbalance",
            "memory_mib", "eval_runtime", "eval_samples_per_second", "eval_steps_per_second"})
        record.erase(name);
    }
    return records;
  };
  const auto expected = strip(records());
  const auto first = recipe_.output;
  recipe_.output = folder_.path() / "parts";
  recipe_.checkpoint.every = "2";
  recipe_.training.steps_this_run = 2;
  FitResult part;
  int parts = 0;
  do {
    part = fit(ranks);
    ASSERT_LT(++parts, 100);
  } while (part.stopped);
  EXPECT_EQ(part.steps, whole.steps);
  EXPECT_EQ(part.ended_by, whole.ended_by);
  EXPECT_EQ(part.best, whole.best);
  EXPECT_EQ(part.best_step, whole.best_step);
  EXPECT_EQ(strip(records()), expected);
  for (const char* file : {"model/model.safetensors", "models/best_closeness/model.safetensors",
                           "models/best_train_loss/model.safetensors", "models/best_loss/state.json"}) {
    EXPECT_EQ(read_file(recipe_.output / file), read_file(first / file)) << file;
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, PartsTest,
                         ::testing::Combine(::testing::Values("ddp", "zero1", "zero2", "fsdp", "hsdp"),
                                            ::testing::Values(1, 2)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "On" + std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace stretto::trainer
