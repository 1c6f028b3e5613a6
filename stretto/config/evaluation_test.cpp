#include "stretto/config/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto {
namespace {

Recipe resolved(const std::string& yaml) {
  Recipe recipe = parse_recipe("data: {train: a.tsv}\n" + yaml, "r.yaml");
  resolve_evaluation(recipe);
  return recipe;
}

void refuses(const std::string& yaml, const auto&... named) {
  const Recipe recipe = resolved(yaml);
  EXPECT_THAT(message_of<ConfigError>([&] {
                require_evaluated_samples(recipe);
                check_evaluation(recipe);
              }),
              has_all(named...))
      << yaml;
}

TEST(Evaluation, NeedsSamples) {
  const Recipe alone = resolved("");
  EXPECT_TRUE(alone.evaluate.every.never());
  EXPECT_FALSE(alone.checkpoint.monitor);
  EXPECT_EQ(why_not_evaluated(alone), "data.validation is not set");
  EXPECT_NO_THROW(check_evaluation(alone));
  EXPECT_FALSE(parse_recipe("data: {train: a.tsv, validation_split: 0.1}", "r.yaml").evaluate.every.never());
  const Recipe whole = parse_recipe("data: {train: a.tsv, validation: b.tsv}", "r.yaml");
  Recipe same = whole;
  resolve_evaluation(same);
  EXPECT_EQ(same, whole);
  refuses("evaluate: {every: 10}", "r.yaml:2:19: evaluate.every: ", "no samples to evaluate",
          "data.validation or data.validation_split");
}

// The config.yaml of a run is a recipe that trains in the same way.
TEST(Evaluation, ADumpedRecipeIsEvaluatedInTheSameWay) {
  const Recipe alone = resolved("");
  Recipe again = parse_recipe(dump_recipe(alone), "config.yaml");
  resolve_evaluation(again);
  EXPECT_EQ(again, alone);
  EXPECT_NO_THROW(check_evaluation(again));
}

TEST(Evaluation, SettingsThatNeedItAreRefused) {
  refuses("early_stopping: {patience: 2}", "r.yaml:2:28: early_stopping.patience: ", "without evaluations",
          "data.validation is not set");
  refuses("evaluate: {every: never}\nearly_stopping: {stopping_threshold: 0.9}",
          "r.yaml:3:38: early_stopping.stopping_threshold: ", "without evaluations",
          "evaluate.every (r.yaml:2:19) is never");
  for (const auto& [yaml, setting] :
       {std::pair("checkpoint: {monitor: loss}", "checkpoint.monitor"),
        {"checkpoint: {mode: min}", "checkpoint.mode"},
        {"checkpoint: {keep_best: 1}", "checkpoint.keep_best"},
        {"checkpoint: {every: eval}", "checkpoint.every"},
        {"checkpoint: {save_models: [best_accuracy]}", "checkpoint.save_models"},
        {"track: {log_every: 2eval}", "track.log_every"},
        {"scheduler: {type: ReduceLROnPlateau}", "scheduler.type"},
        {"early_stopping: {divergence_threshold: 9}", "early_stopping.divergence_threshold"},
        {"evaluate: {at_start: true}", "evaluate.at_start"},
        {"evaluate: {max_samples: 9}", "evaluate.max_samples"},
        {"evaluate: {sanity_steps: 1}", "evaluate.sanity_steps"},
        {"evaluate: {by_class: true}", "evaluate.by_class"},
        {"evaluate: {async: true}", "evaluate.async"}})
    refuses(yaml, std::string(setting) + ": ");
  EXPECT_NO_THROW(check_evaluation(resolved("checkpoint: {save_models: [best_train_loss]}")));
  EXPECT_NO_THROW(check_evaluation(resolved("training: {fast_dev_run: 2}\nevaluate: {batch_size: 8}")));
}

}  // namespace
}  // namespace stretto
