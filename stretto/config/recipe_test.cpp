#include "stretto/config/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/config/recipe_fixture.h"
#include "stretto/config/tasks/token_classification.h"
#include "stretto/optim_config/optimizers.h"
#include "stretto/settings/scoped_variable_support.h"

namespace stretto {
namespace {

using settings::ScopedVariable;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::filesystem::path sst2_recipe = STRETTO_SOURCE_DIR "/recipes/sst2.yaml";

// `place`: where the message begins, and the key; `named`: what else it must name, such as a suggestion. The
// whole sentences are in tests/golden/messages.txt.
void refuses(const std::string& yaml, const std::vector<std::string>& overrides, const std::string& place,
             const std::string& named = "") {
  EXPECT_THAT(message_of<ConfigError>([&] { recipe_of(yaml, overrides); }),
              AllOf(StartsWith(place), HasSubstr(named)))
      << yaml;
}

TEST(Recipe, DefaultsAreResolved) {
  const Recipe recipe = recipe_of("model:\n  path: m\n");
  EXPECT_EQ(recipe.tokenizer.path, "m");
  EXPECT_EQ(recipe.data.cache, "runs/latest/cache");
  EXPECT_EQ(recipe.checkpoint.monitor, "accuracy");
  EXPECT_EQ(recipe.training.epochs, 3);
  EXPECT_EQ(recipe.optimizer.as<optim::AdamwOptions>().lr, 5e-5);
  EXPECT_EQ(recipe_of("output: o\ndata: {cache: c}\n").data.cache, "c");
}

TEST(Recipe, OverridesTakePrecedence) {
  const Recipe recipe = recipe_of(
      "optimizer:\n  lr: 1e-4\n",
      {"optimizer.lr=3e-5", "optimizer.betas=[0.8, 0.98]", "output=runs/x", "training.max_steps=7"});
  EXPECT_EQ(recipe.optimizer.as<optim::AdamwOptions>().lr, 3e-5);
  EXPECT_EQ(recipe.optimizer.as<optim::AdamwOptions>().betas[1], 0.98);
  EXPECT_EQ(recipe.output, "runs/x");
  EXPECT_EQ(recipe.training.max_steps, 7);
  EXPECT_EQ(recipe.origins.label("optimizer.lr"), "--set optimizer.lr=3e-5: optimizer.lr");
  EXPECT_EQ(recipe_of("training:\n  max_steps: 5\n", {"training.max_steps=null"}).training.max_steps,
            std::nullopt);
}

TEST(Recipe, OverridesAreCheckedLikeTheFile) {
  const std::string yaml = "task: text-classification\n";
  refuses(yaml, {"optimizer.lr=abc"}, "--set optimizer.lr=abc: optimizer.lr: \"abc\"");
  refuses(yaml, {"training.epochs=0"}, "--set training.epochs=0: training.epochs: 0");
  refuses(yaml, {"training.mesh.pp=2"}, "--set training.mesh.pp=2: training.mesh.pp: 2 is out of range",
          "it must be 1 (the only value so far)");
  refuses(yaml, {"optimiser.lr=1"}, "--set optimiser.lr=1: optimiser", "\"optimizer\"?");
  refuses(yaml, {"optimizer.lrr=null"}, "--set optimizer.lrr=null: optimizer.lrr", "\"lr\"?");
  refuses(yaml, {"optimizer=AdamW"}, "--set optimizer=AdamW: optimizer");
  refuses(yaml, {"lr=1e-3"}, "--set lr=1e-3: lr", "\"optimizer.lr\"?");
}

TEST(Recipe, KeysOfAnotherOptimizerAreRefused) {
  refuses("optimizer:\n  momentum: 0.9\n", {}, "r.yaml:2:13: optimizer.momentum", "SGD");
  refuses("optimizer:\n  type: SGD\n  eps: 1e-6\n", {}, "r.yaml:3:8: optimizer.eps does not apply");
  EXPECT_EQ(recipe_of("optimizer: {type: SGD, momentum: 0.9}\n").optimizer.as<optim::SgdOptions>().momentum,
            0.9);
  refuses("optimizer:\n  type: AdamX\n", {}, "r.yaml:2:9: optimizer.type: \"AdamX\"",
          "\"AdamW\", \"Adam\" or \"Adamax\"?");
}

TEST(Recipe, SectionsOfAnotherTaskAreRefused) {
  refuses("data: {}\ntoken_classification:\n  stride: 8\n", {}, "r.yaml:2:1: token_classification",
          "task: text-classification");
  refuses("task: token-classification\n", {"question_answering.doc_stride=8"},
          "--set question_answering.doc_stride=8: question_answering", "task: token-classification");
  const Recipe tagging = recipe_of("task: token-classification\ntoken_classification: {stride: 8}\n");
  EXPECT_EQ(tagging.task_settings.as<TokenClassificationConfig>().stride, 8);
  EXPECT_EQ(tagging.checkpoint.monitor, "f1");
  EXPECT_TRUE(computing_settings(tagging).contains("token_classification.stride"));
  EXPECT_THAT(dump_recipe(tagging),
              AllOf(HasSubstr("token_classification:"), Not(HasSubstr("question_answering"))));
  EXPECT_EQ(recipe_of(dump_recipe(tagging)), tagging);
  EXPECT_THAT(dump_recipe(recipe_of("output: o\n")), Not(HasSubstr("token_classification")));
  EXPECT_FALSE(computing_settings(recipe_of("output: o\n")).contains("token_classification.stride"));
  const Recipe answering = recipe_of("task: question-answering\n");
  EXPECT_EQ(answering.data.max_length, 384);
  EXPECT_EQ(recipe_of("task: question-answering\ndata: {max_length: 128}\n").data.max_length, 128);
  EXPECT_TRUE(may_change_on_resume("question_answering.n_best_size"));
}

// Such a value would change when it is written to config.yaml and passed to ranks.
TEST(Recipe, ValuesThatAreNotUtf8AreRefused) {
  refuses("output: runs/\xff\n", {}, "r.yaml:1:9: output: the value is not UTF-8 text");
  refuses("output: runs\n", {"output=\xc3\x28"},
          "--set output=\xc3\x28: output: the value is not UTF-8 text");
  const ScopedVariable variable("STRETTO_TEST_FOLDER", "\xfe");
  refuses("output: ${STRETTO_TEST_FOLDER}\n", {}, "r.yaml:1:9: output: the value is not UTF-8 text");
  EXPECT_EQ(recipe_of("output: caf\u00e9\n").output, "caf\u00e9");
}

TEST(Recipe, AFastDevRunIsANumberOfStepsOrTrue) {
  const auto recipe_with = [](const std::string& value) {
    return recipe_of("output: o\ntraining: {fast_dev_run: " + value + "}\n");
  };
  for (const char* value : {"true", "True", "1"}) {
    EXPECT_EQ(recipe_with(value).training.max_steps, 1) << value;
    EXPECT_EQ(recipe_with(value).output, "o/fast_dev_run") << value;
  }
  for (const char* value : {"false", "False", "0"})
    EXPECT_EQ(recipe_with(value), recipe_of("output: o\n")) << value;
  refuses("output: o\n", {"training.fast_dev_run=maybe"},
          "--set training.fast_dev_run=maybe: training.fast_dev_run: \"maybe\"",
          "neither a whole number (of at most 64 bits) nor false nor true");
  refuses("output: o\n", {"training.fast_dev_run=-1"},
          "--set training.fast_dev_run=-1: training.fast_dev_run: -1 is out of range; it must be ",
          ", or false or true");
  refuses("output: o\n", {"training.fast_dev_run=[1]"},
          "--set training.fast_dev_run=[1]: training.fast_dev_run: ",
          "(whole number, or false or true), found a list");
  EXPECT_THAT(recipe_schema()["properties"]["training"]["properties"]["fast_dev_run"].dump(),
              HasSubstr(R"({"type":"boolean"})"));
}

TEST(Recipe, StrategyMayCarryThePrecision) {
  const Recipe recipe = recipe_of("training:\n  strategy: ddp-bf16\n");
  EXPECT_EQ(recipe.training.precision, "bf16");
  EXPECT_EQ(recipe.training.strategy, "ddp");
  EXPECT_EQ(recipe_of("training: {strategy: ddp-bf16, precision: bf16}\n").training.precision, "bf16");
  refuses("training:\n  precision: fp32\n  strategy: ddp-bf16\n", {},
          "r.yaml:3:13: training.strategy:", "training.precision (r.yaml:2:14)");
  EXPECT_EQ(recipe_of("training: {strategy: hsdp, dp_shard: 2}\n").training.dp_shard, 2);
  refuses("training:\n  strategy: fsdp\n  dp_shard: 2\n", {},
          "r.yaml:3:13: training.dp_shard:", "training.strategy (r.yaml:2:13)");
  refuses("training:\n  strategy: fsdp2\n", {}, "r.yaml:2:13: training.strategy: \"fsdp2\"");
}

TEST(Recipe, TheTableOfStrategiesDecidesWhichSettingsApply) {
  refuses("training: {dp_shard: 2}\n", {}, "r.yaml:1:", "training.dp_shard: it applies to strategy hsdp; ");
  refuses("training: {strategy: zero2, reshard_after_forward: false}\n", {},
          "r.yaml:1:", "training.reshard_after_forward: it applies to strategies fsdp and hsdp; ");
  refuses("training: {strategy: zero1, wrap_min_parameters: 9}\n", {},
          "r.yaml:1:", "training.wrap_min_parameters: it applies to strategies zero2, fsdp and hsdp; ");
  EXPECT_EQ(recipe_of("training: {strategy: zero3, wrap_min_parameters: 9}\n").training.wrap_min_parameters,
            9);
  EXPECT_TRUE(recipe_of("training: {reshard_after_forward: true}\n").training.reshard_after_forward);
  const auto schema = recipe_schema();
  EXPECT_EQ(
      schema["properties"]["training"]["properties"]["strategy"]["description"],
      "what each rank holds, optionally with the precision (zero2-bf16): ddp all; zero1 its part of the optimizer's state; zero2 also of the gradients; fsdp (zero3) also of the parameters; hsdp the same within each group of dp_shard ranks");
}

TEST(Recipe, PrecisionsHaveLightningsNames) {
  EXPECT_EQ(recipe_of("training: {precision: bf16-mixed}\n").training.precision, "bf16");
  EXPECT_EQ(recipe_of("training: {precision: 32}\n").training.precision, "fp32");
  EXPECT_EQ(recipe_of("training: {precision: 64-true}\n").training.precision, "fp64");
  EXPECT_EQ(recipe_of("training: {precision: 16-mixed}\n").training.precision, "fp16");
  refuses("training:\n  precision: 16-true\n", {}, "r.yaml:2:14: training.precision: \"16-true\"");
  refuses("training:\n  precision: bf16-true\n", {}, "r.yaml:2:14: training.precision: \"bf16-true\"");
  refuses("training:\n  precision: bf61\n", {}, "r.yaml:2:14: training.precision: \"bf61\"", "\"bf16\"?");
}

TEST(Recipe, ANameOfAStrategyMayPutTheOptimizersStateIntoFiles) {
  Recipe recipe = recipe_of("training: {strategy: zero2-fp16-nvme}\noutput: runs/a\n");
  EXPECT_EQ(recipe.training.strategy, "zero2");
  EXPECT_EQ(recipe.training.precision, "fp16");
  EXPECT_EQ(offload_folder(recipe), "runs/a");
  EXPECT_EQ(decode_recipe(encode_recipe(recipe)), recipe);
  const Recipe elsewhere = recipe_of("training: {strategy: zero2-nvme, offload_optimizer: disk}\n");
  EXPECT_EQ(offload_folder(elsewhere), "disk");
  EXPECT_EQ(offload_folder(recipe_of("training: {strategy: zero2}\n")), std::nullopt);
  Recipe all = recipe_of("training: {strategy: deepspeed-3-bf16-nvme-nvme}\noutput: runs/a\n");
  EXPECT_EQ(offload_folder(all), "runs/a");
  EXPECT_EQ(parameter_folder(all), "runs/a");
  EXPECT_EQ(parse_recipe(dump_recipe(all), "config.yaml"), all);
  refuses("training: {strategy: zero2, offload_parameters: disk}\n", {},
          "r.yaml:1:49: training.offload_parameters: it applies to strategies fsdp and hsdp");
}

TEST(Recipe, DumpReadsBackAsTheSame) {
  const Recipe recipe = recipe_of(
      "model: {path: ~/models/bert, dropout: 0}\ntokenizer: {lowercase: no}\n"
      "data: {train: \"a b.tsv\", text: 'q: 1', label: \"1\"}\n"
      "training: {max_steps: 7, global_batch_size: 100, strategy: ddp-fp64, seed: 9007199254740993}\n"
      "optimizer: {type: SGD, lr: 0.3, momentum: 0.9, nesterov: on}\nscheduler: {type: Constant}\n"
      "checkpoint: {monitor: loss, mode: min}\nevaluate: {every: never, batch_size: 3}\ntrack: {progress: off}\n"
      "output: runs/$${x}\n");
  const std::string yaml = dump_recipe(recipe);
  EXPECT_EQ(recipe_of(yaml), recipe) << yaml;
  EXPECT_EQ(dump_recipe(recipe_of(yaml)), yaml);
  EXPECT_EQ(recipe.training.seed, 9007199254740993);
}

TEST(Recipe, TheMainJobParses) {
  const ScopedVariable data("STRETTO_DATA", "/data");
  const ScopedVariable encoder("STRETTO_ENCODER", "/encoder");
  const Recipe recipe = load_recipe(sst2_recipe);
  EXPECT_EQ(recipe.model.path, "/encoder");
  EXPECT_EQ(recipe.tokenizer.path, "/encoder");
  EXPECT_EQ(recipe.data.train, "/data/sst2/train.tsv");
  EXPECT_EQ(recipe.training.precision, "bf16");
  EXPECT_EQ(recipe.training.strategy, "ddp");
  EXPECT_EQ(recipe.training.epochs, 1);
  EXPECT_EQ(recipe.training.batch_size, 32);
  EXPECT_EQ(recipe.optimizer.as<optim::AdamwOptions>().lr, 5e-5);
  EXPECT_EQ(recipe.scheduler.value("warmup_ratio"), 0.06);
  EXPECT_EQ(recipe_of(dump_recipe(recipe)), recipe);
}

TEST(Recipe, TheMainJobNamesMissingVariables) {
  const ScopedVariable data("STRETTO_DATA", nullptr);
  EXPECT_THAT(
      message_of<ConfigError>([] { load_recipe(sst2_recipe); }),
      AllOf(HasSubstr("sst2.yaml:"), HasSubstr(": data.train: "), HasSubstr("STRETTO_DATA is not set")));
}

TEST(Recipe, AMissingFileIsNamed) {
  EXPECT_THAT(message_of<IoError>([] { load_recipe("no/such/recipe.yaml"); }),
              HasSubstr("no/such/recipe.yaml: No such file"));
}

TEST(Recipe, IsPassedToAnotherProcessUnchanged) {
  const ScopedVariable rate("RATE", "0.25");
  const Recipe recipe = recipe_of("optimizer: {type: SGD, lr: \"${RATE}\"}\ndata: {train: \"$${x}/~\"}\n",
                                  {"training.strategy=ddp-bf16", "checkpoint.accept_changes=[optimizer.lr]"});
  const ScopedVariable other("RATE", "0.5");
  const Recipe decoded = decode_recipe(encode_recipe(recipe));
  EXPECT_EQ(decoded, recipe);
  EXPECT_EQ(decoded.optimizer.as<optim::SgdOptions>().lr, 0.25);
  EXPECT_EQ(decoded.origins.label("optimizer.lr"), "r.yaml:1:28: optimizer.lr");
}

}  // namespace
}  // namespace stretto
