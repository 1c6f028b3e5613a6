#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/config/recipe_fixture.h"
#include "stretto/settings/describe.h"

// Which settings change the result of a run, may change when it resumes, or must be equal on all ranks.
namespace stretto {
namespace {

TEST(Recipe, ComputingSettingsAffectTheResult) {
  const auto settings = computing_settings(recipe_of("optimizer: {lr: 0.5}\n", {}));
  EXPECT_EQ(settings.at("optimizer.lr"), 0.5);
  for (const char* free :
       {"output", "resume", "training.device", "training.batch_size", "checkpoint.every"}) {
    EXPECT_FALSE(settings.contains(free)) << free;
  }
}

// A change of this list changes which checkpoints a run accepts.
TEST(Recipe, SettingsThatMayChangeOnResumeAreDeclaredSo) {
  const std::set<std::string> free = {"checkpoint",
                                      "track",
                                      "evaluate",
                                      "early_stopping",
                                      "output",
                                      "resume",
                                      "data.validation",
                                      "data.test",
                                      "data.max_validation_samples",
                                      "data.max_test_samples",
                                      "data.cache",
                                      "data.pad_to_multiple_of",
                                      "training.fast_dev_run",
                                      "training.steps_this_run",
                                      "training.max_time",
                                      "token_classification.embeddings_storage_mode",
                                      "causal_lm.stride",
                                      "question_answering.n_best_size",
                                      "question_answering.max_answer_length",
                                      "question_answering.null_score_diff_threshold",
                                      "training.device",
                                      "training.strategy",
                                      "training.backend",
                                      "training.kernels",
                                      "training.products",
                                      "training.bucket_mb",
                                      "training.shared_parameters",
                                      "training.dp_shard",
                                      "training.mesh",
                                      "training.mesh.dp",
                                      "training.mesh.tp",
                                      "training.mesh.pp",
                                      "training.mesh.cp",
                                      "training.mesh.sequence_parallel",
                                      "training.reshard_after_forward",
                                      "training.wrap_min_parameters",
                                      "training.offload_optimizer",
                                      "training.offload_parameters",
                                      "training.activation_checkpointing",
                                      "training.batch_size",
                                      "training.global_batch_size",
                                      "training.max_tokens",
                                      "training.grad_accumulation_steps"};
  Recipe recipe;
  std::set<std::string> seen;
  for (const char* task :
       {"text-classification", "token-classification", "question-answering", "causal-lm"}) {
    recipe.task = task;
    const auto fields = settings::fields_of(recipe);
    const auto compared = computing_settings(recipe);
    for (const std::string& name : settings::all_names(fields)) {
      const bool is_free = free.contains(name) || free.contains(name.substr(0, name.find('.')));
      if (seen.insert(name).second) {
        EXPECT_EQ(may_change_on_resume(name), is_free) << name;
      }
      EXPECT_FALSE(is_free && compared.contains(name)) << name;
    }
  }
  EXPECT_FALSE(may_change_on_resume("optimizer.lrr"));
}

TEST(Recipe, SharedSettingsAreAllButThePathsOfInputs) {
  const auto settings = shared_settings(recipe_of("output: o\n"));
  for (const char* name : {"output", "track.log_every", "optimizer.lr", "data.max_length", "resume"}) {
    EXPECT_TRUE(settings.contains(name)) << name;
  }
  for (const char* name : {"model.path", "data.train", "data.cache", "tokenizer.path"}) {
    EXPECT_FALSE(settings.contains(name)) << name;
  }
}

}  // namespace
}  // namespace stretto
