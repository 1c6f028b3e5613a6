#include "stretto/compat/flair_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/config/recipe.h"
#include "stretto/config/tasks/tagger_settings.h"
#include "stretto/config/tasks/token_classification.h"
#include "stretto/optim_config/optimizers.h"

namespace stretto::compat {
namespace {

using ::testing::HasSubstr;

class FlairScript : public ::testing::Test {
 protected:
  FlairScript() {
    for (const char* name : {"train.txt", "dev.txt", "test.txt", ".hidden.train"})
      write_file_atomic(data_.path() / name, "a O\n");
  }
  ScriptPlan translate(std::vector<std::string> more) {
    more.insert(more.begin(), {"--model_name_or_path", "models/xlm", "--dataset_name", data_.path()});
    return translate_flair_script(more);
  }
  std::string error(const std::vector<std::string>& more) {
    return message_of<ConfigError>([&] { translate(more); });
  }
  TempFolder data_;
};

// The command of Flair's notebook for this script.
TEST_F(FlairScript, IsTranslatedToARecipe) {
  const ScriptPlan plan = translate({"--batch_size",
                                     "32",
                                     "--learning_rate",
                                     "4e-05",
                                     "--embeddings_storage_mode",
                                     "gpu",
                                     "--num_epochs",
                                     "2",
                                     "--context_size",
                                     "0",
                                     "--accelerator",
                                     "gpu",
                                     "--strategy",
                                     "ddp",
                                     "--devices",
                                     "4",
                                     "--num_nodes",
                                     "1",
                                     "--precision",
                                     "16",
                                     "--layers",
                                     "-1",
                                     "--use_crf",
                                     "False",
                                     "--output_dir",
                                     "out"});
  const Recipe recipe = parse_recipe(plan.recipe, "run-flair-ner");
  EXPECT_EQ(recipe.task, "token-classification");
  EXPECT_EQ(recipe.model.path, "models/xlm");
  EXPECT_EQ(recipe.training.epochs, 2);
  EXPECT_EQ(recipe.training.global_batch_size, 32);
  EXPECT_EQ(recipe.training.precision, "bf16");
  EXPECT_EQ(recipe.training.device, "cuda");
  EXPECT_EQ(recipe.training.max_grad_norm, 5);
  EXPECT_EQ(recipe.training.seed, 42);
  EXPECT_EQ(recipe.optimizer.as<optim::AdamwOptions>().lr, 4e-5);
  EXPECT_EQ(recipe.task_settings.as<TokenClassificationConfig>().tag_scheme, "IOBES");
  EXPECT_EQ(recipe.data.train, data_.path() / "train.txt");
  EXPECT_EQ(recipe.data.validation, data_.path() / "dev.txt");
  EXPECT_EQ(recipe.data.test, data_.path() / "test.txt");
  EXPECT_EQ(recipe.output, "out/run");
  EXPECT_EQ(plan.ranks, 4);
  EXPECT_TRUE(plan.train && plan.evaluate && plan.predict);
}

// Options that a head on each word's first token lacks select a sequence tagger.
TEST_F(FlairScript, LayersPoolingAndCrfSelectASequenceTagger) {
  const Recipe field = parse_recipe(translate({"--use_crf"}).recipe, "");
  EXPECT_EQ(field.model.type, "sequence-tagger");
  EXPECT_FALSE(field.model.path.has_value());
  EXPECT_EQ(field.task_settings.as<TaggerSettings>().transformer, "models/xlm");
  EXPECT_TRUE(field.task_settings.as<TaggerSettings>().use_crf);
  EXPECT_EQ(field.task_settings.as<TaggerSettings>().rnn_type, "none");
  EXPECT_FALSE(field.task_settings.as<TaggerSettings>().reproject_embeddings);
  const Recipe layers = parse_recipe(translate({"--layers", "-1,-2", "--subtoken_pooling=mean"}).recipe, "");
  EXPECT_EQ(layers.task_settings.as<TaggerSettings>().layers, "-1,-2");
  EXPECT_EQ(layers.task_settings.as<TaggerSettings>().subtoken_pooling, "mean");
  EXPECT_FALSE(layers.task_settings.as<TaggerSettings>().use_crf);
  EXPECT_EQ(layers.task_settings.as<TaggerSettings>().word_dropout, 0);
  EXPECT_EQ(parse_recipe(translate({"--use_crf", "False"}).recipe, "").model.path, "models/xlm");
}

TEST_F(FlairScript, DefaultsAndNamesAreTranslated) {
  const ScriptPlan plan = translate({"--strategy=deepspeed", "--devices=0,2", "--device", "cpu"});
  const Recipe recipe = parse_recipe(plan.recipe, "run-flair-ner");
  EXPECT_EQ(recipe.training.epochs, 10);
  EXPECT_EQ(recipe.training.global_batch_size, 8);
  EXPECT_EQ(recipe.training.strategy, "zero2");
  EXPECT_EQ(recipe.training.device, "cpu");
  EXPECT_EQ(plan.ranks, 2);
  EXPECT_EQ(plan.output_dir, "resources/taggers/ner");
}

TEST_F(FlairScript, AJsonFileReplacesTheFlags) {
  const std::filesystem::path file = data_.path() / "arguments.json";
  write_file_atomic(file,
                    R"({"model_name_or_path": "models/xlm", "dataset_name": ")" + data_.path().string() +
                        R"(", "num_epochs": 3, "use_crf": false, "strategy": null, "devices": [0, 1]})");
  const ScriptPlan plan = translate_flair_script({file});
  EXPECT_EQ(parse_recipe(plan.recipe, "").training.epochs, 3);
  EXPECT_EQ(plan.ranks, 2);
  write_file_atomic(file, R"({"num_epochs": {"a": 1}})");
  EXPECT_THROW(translate_flair_script({file}), ConfigError);
  write_file_atomic(file, "[]");
  EXPECT_THROW(translate_flair_script({file}), ConfigError);
}

TEST_F(FlairScript, TheContextOfNeighbouringSentencesIsTranslated) {
  const auto settings = [&](const std::vector<std::string>& flags) {
    return parse_recipe(translate(flags).recipe, "").task_settings.as<TokenClassificationConfig>();
  };
  EXPECT_EQ(settings({"--context_size", "64"}).context_size, 64);
  EXPECT_FALSE(settings({"--context_size", "64"}).respect_document_boundaries);
  EXPECT_TRUE(settings({"--context_size", "64", "--respect_document_boundaries", "True"})
                  .respect_document_boundaries);
  EXPECT_EQ(settings({"--respect_document_boundaries", "True"}).context_size, 0);
  EXPECT_THAT(translate({"--respect_document_boundaries", "True"}).notes,
              ::testing::Contains(HasSubstr("without --context_size")));
}

TEST_F(FlairScript, UnsupportedValuesAreNamed) {
  EXPECT_THAT(error({"--subtoken_pooling", "max"}),
              has_all("--subtoken_pooling max:", "first, last, first_last or mean"));
  EXPECT_THAT(error({"--use_crf", "perhaps"}), has_all("--use_crf:", "\"perhaps\"", "true or false"));
  EXPECT_THAT(error({"--hidden_size", "wide"}), has_all("--hidden_size wide:", "whole number from 1"));
  EXPECT_THAT(error({"--mini_batch_chunk_size", "0"}), has_all("--mini_batch_chunk_size 0:", "from 1"));
  EXPECT_THAT(error({"--embeddings_storage_mode", "disk"}),
              has_all("--embeddings_storage_mode disk:", "none, cpu or gpu"));
  EXPECT_THAT(error({"--respect_document_boundaries", "maybe"}),
              has_all("--respect_document_boundaries:", "\"maybe\"", "true or false"));
  EXPECT_THAT(error({"--learning_rate", "fast"}), has_all("--learning_rate fast: optimizer.lr:", "\"fast\""));
  EXPECT_THAT(error({"--layers", "first"}), has_all("--layers first: sequence_tagger.layers:", "\"first\""));
  EXPECT_THAT(error({"arguments.json"}), has_all("arguments.json:", "must be the only argument"));
  EXPECT_THAT(error({"--context_size", "-1"}), has_all("--context_size -1:", "whole number from 0"));
  EXPECT_THAT(error({"--context_size", "wide"}), has_all("--context_size wide:", "whole number from 0"));
  EXPECT_THAT(error({"--num_nodes", "2"}), HasSubstr("--hosts"));
  EXPECT_THAT(error({"--precision", "8"}), has_all("--precision 8:", "32, 16, bf16 or 64"));
  EXPECT_THAT(error({"--devices", "many"}), HasSubstr("--devices many"));
  EXPECT_THAT(error({"--num_epochs", "0"}), HasSubstr("--num_epochs 0"));
  EXPECT_THAT(error({"--accelerator", "tpu"}), HasSubstr("--accelerator tpu"));
  EXPECT_THAT(error({"--strategy", "ddpp"}), HasSubstr("--strategy ddpp: "));
  EXPECT_THAT(error({"--epochs", "1"}), HasSubstr("--epochs is not a known flag"));
  EXPECT_THAT(error({"--dataset_name", "NER_ENGLISH_PERSON"}),
              has_all("--dataset_name NER_ENGLISH_PERSON:", "not a folder", "downloads nothing"));
  write_file_atomic(data_.path() / "dev2.txt", "");
  EXPECT_THAT(error({}), has_all("--dataset_name", "2 files", "dev or testa or valid", "expected one file"));
}

}  // namespace
}  // namespace stretto::compat
