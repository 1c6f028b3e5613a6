#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/trainer/api/module_fixture.h"

// Values that a module logs: StepContext::log().
namespace stretto::trainer {
namespace {

using ::testing::HasSubstr;

// Logged values are means over all samples of the window, independently of ranks and micro-batches.
struct Logging : Regression {
  Loss training_step(const Batch& batch, StepContext& context) override {
    context.log("first_sample", static_cast<double>(batch.sample_ids[0]), 1);
    context.log("mean_y", batch.at("y").mean().item<double>());
    return Regression::training_step(batch, context);
  }
};

TEST_F(ModuleTest, LoggedValuesAreMeansOverWindowAndRanks) {
  recipe_.training.max_steps = std::nullopt;
  recipe_.training.epochs = 1;
  recipe_.training.batch_size = 2;
  recipe_.track.log_every = 100;
  double expected = 0;
  for (int64_t i = 0; i < 43; ++i) expected += Plane(43).sample(i).at("y").item<double>() / 43;
  for (const int ranks : {1, 2}) {
    recipe_.training.global_batch_size = 4 * ranks;
    recipe_.output = folder_.path() / std::to_string(ranks);
    fit<Logging>(ranks, 43);
    ASSERT_EQ(records().size(), 1u);
    EXPECT_NEAR(records()[0].at("mean_y"), expected, 1e-12);
    EXPECT_TRUE(records()[0].contains("first_sample"));
  }
}

TEST_F(ModuleTest, LoggedValuesSurviveAResumeInsideTheirWindow) {
  recipe_.checkpoint.every = "6";
  recipe_.checkpoint.keep_last = 0;
  fit<Logging>(2);
  const auto whole = records();
  recipe_.resume = recipe_.output / "checkpoints/step-00000006";
  recipe_.output = folder_.path() / "resumed";
  EXPECT_EQ(fit<Logging>(2).resumed_after, 6);
  const auto resumed = records();
  ASSERT_EQ(resumed.size(), 2u);
  for (const char* name : {"loss", "mean_y", "first_sample"})
    EXPECT_EQ(resumed[0][name], whole[1][name]) << name;
}

struct LoggingEvaluation : Regression {
  Predictions validation_step(const Batch& batch, StepContext& context) override {
    EXPECT_FALSE(context.forward.training);
    context.log("mean_y", batch.at("y").mean().item<double>());
    return {};
  }
};

TEST_F(ModuleTest, AnEvaluationMayLogMeans) {
  recipe_.evaluate.every = "epoch";
  recipe_.evaluate.batch_size = 2;
  recipe_.checkpoint.monitor = "mean_y";
  recipe_.checkpoint.mode = "max";
  const Plane validation(7);
  double expected = 0;
  for (int64_t i = 0; i < 7; ++i) expected += validation.sample(i).at("y").item<double>() / 7;
  EXPECT_NEAR(fit<LoggingEvaluation>(2, 40, &validation).best->at("mean_y"), expected, 1e-12);
}

TEST_F(ModuleTest, AMonitoredMeanNeedsAMode) {
  recipe_.evaluate.every = "epoch";
  recipe_.checkpoint.monitor = "mean_y";
  const Plane validation(7);
  EXPECT_THAT(message_of<ConfigError>([&] { fit<LoggingEvaluation>(1, 40, &validation); }),
              HasSubstr("set checkpoint.mode to max or min"));
}

}  // namespace
}  // namespace stretto::trainer
