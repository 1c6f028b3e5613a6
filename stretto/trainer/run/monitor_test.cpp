#include "stretto/trainer/run/monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/config/recipe.h"

namespace stretto::trainer {
namespace {

using ::testing::ElementsAre;

TEST(Monitor, AllSettingsThatNameAMetricAreFound) {
  const Recipe recipe = parse_recipe(
      "checkpoint: {monitor: eval_f1, save_models: [best_auroc]}\n"
      "early_stopping: {patience: 1, monitor: valid_loss}\n"
      "scheduler: {type: ReduceLROnPlateau, mode: max, monitor: accuracy}\n",
      "r.yaml");
  std::vector<std::string> found;
  for (const auto& [key, monitor] : monitored_settings(recipe))
    found.push_back(key + ": " + monitor.metric());
  EXPECT_THAT(found, ElementsAre("checkpoint.monitor: f1", "early_stopping.monitor: loss",
                                 "checkpoint.save_models: auroc", "scheduler.monitor: accuracy"));
}

TEST(Monitor, MetricsThatNoEvaluationOfATaskHasAreRefused) {
  const std::vector<std::string> possible = {"loss", "f1", "accuracy"};
  const auto check = [&](const std::string& yaml) {
    require_metrics(parse_recipe(yaml, "r.yaml"), possible);
  };
  const auto refuses = [&](const std::string& yaml, const auto&... named) {
    EXPECT_THAT(message_of<ConfigError>([&] { check(yaml); }), has_all(named...)) << yaml;
  };
  const std::string plateau = "scheduler: {type: ReduceLROnPlateau, ";
  refuses(plateau + "monitor: recall}", "r.yaml:1:47: scheduler.monitor: ", "no metric \"recall\"",
          "loss, f1, accuracy");
  refuses(plateau + "mode: max, monitor: f2}", "no metric \"f2\"", "did you mean \"f1\"?", "they have loss");
  refuses("scheduler: {type: AnnealOnPlateau, monitor: quality}",
          "scheduler.monitor: \"quality\" is not a built-in");
  refuses("checkpoint: {monitor: eval_recall}", "checkpoint.monitor: evaluations of this task");
  refuses("checkpoint: {monitor: train_loss}", "checkpoint.monitor: evaluations of this task");
  refuses("checkpoint: {save_models: [best_recall]}", "checkpoint.save_models: evaluations of this task");
  refuses("early_stopping: {patience: 1, monitor: recall}",
          "early_stopping.monitor: evaluations of this task");
  check("checkpoint: {monitor: eval_f1, save_models: [best_valid_loss, best_train_loss]}");
  check(plateau + "monitor: train_loss}");
  check("scheduler: {type: AnnealOnPlateau, monitor: val_loss}\nearly_stopping: {monitor: train_loss}");
  EXPECT_NO_THROW(require_metrics(parse_recipe(plateau + "monitor: quality, mode: max}", "r.yaml")));
}

}  // namespace
}  // namespace stretto::trainer
