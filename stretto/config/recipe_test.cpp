#include "stretto/config/recipe.h"

#include <set>

#include <gmock/gmock.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"
#include "stretto/config/model_json.h"
#include "stretto/config/tasks/token_classification.h"
#include "stretto/optim_config/optimizers.h"
#include "stretto/settings/describe.h"
#include "stretto/settings/scoped_variable_support.h"

namespace stretto {
namespace {

using settings::ScopedVariable;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

const std::filesystem::path sst2_recipe = STRETTO_SOURCE_DIR "/recipes/sst2.yaml";

Recipe parse(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return parse_recipe(yaml, "r.yaml", overrides);
}

// `place`: where the message begins, and the key; `named`: what else it must name, such as a suggestion. The
// whole sentences are in tests/golden/messages.txt.
void refuses(const std::string& yaml, const std::vector<std::string>& overrides, const std::string& place,
             const std::string& named = "") {
  EXPECT_THAT([&] { parse(yaml, overrides); },
              ThrowsMessage<ConfigError>(AllOf(StartsWith(place), HasSubstr(named))))
      << yaml;
}

TEST(Recipe, DefaultsAreResolved) {
  const Recipe recipe = parse("model:\n  path: m\n");
  EXPECT_EQ(recipe.tokenizer.path, "m");
  EXPECT_EQ(recipe.data.cache, "runs/latest/cache");
  EXPECT_EQ(recipe.checkpoint.monitor, "accuracy");
  EXPECT_EQ(recipe.training.epochs, 3);
  EXPECT_EQ(recipe.optimizer.as<optim::AdamwOptions>().lr, 5e-5);
  EXPECT_EQ(parse("output: o\ndata: {cache: c}\n").data.cache, "c");
}

TEST(Recipe, OverridesTakePrecedence) {
  const Recipe recipe = parse("optimizer:\n  lr: 1e-4\n", {"optimizer.lr=3e-5", "optimizer.betas=[0.8, 0.98]",
                                                           "output=runs/x", "training.max_steps=7"});
  EXPECT_EQ(recipe.optimizer.as<optim::AdamwOptions>().lr, 3e-5);
  EXPECT_EQ(recipe.optimizer.as<optim::AdamwOptions>().betas[1], 0.98);
  EXPECT_EQ(recipe.output, "runs/x");
  EXPECT_EQ(recipe.training.max_steps, 7);
  EXPECT_EQ(recipe.origins.label("optimizer.lr"), "--set optimizer.lr=3e-5: optimizer.lr");
  EXPECT_EQ(parse("training:\n  max_steps: 5\n", {"training.max_steps=null"}).training.max_steps,
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
  EXPECT_EQ(parse("optimizer: {type: SGD, momentum: 0.9}\n").optimizer.as<optim::SgdOptions>().momentum, 0.9);
  refuses("optimizer:\n  type: AdamX\n", {}, "r.yaml:2:9: optimizer.type: \"AdamX\"",
          "\"AdamW\", \"Adam\" or \"Adamax\"?");
}

TEST(Recipe, SectionsOfAnotherTaskAreRefused) {
  refuses("data: {}\ntoken_classification:\n  stride: 8\n", {}, "r.yaml:2:1: token_classification",
          "task: text-classification");
  refuses("task: token-classification\n", {"question_answering.doc_stride=8"},
          "--set question_answering.doc_stride=8: question_answering", "task: token-classification");
  const Recipe tagging = parse("task: token-classification\ntoken_classification: {stride: 8}\n");
  EXPECT_EQ(tagging.task_settings.as<TokenClassificationConfig>().stride, 8);
  EXPECT_EQ(tagging.checkpoint.monitor, "f1");
  EXPECT_TRUE(computing_settings(tagging).contains("token_classification.stride"));
  EXPECT_THAT(dump_recipe(tagging),
              AllOf(HasSubstr("token_classification:"), Not(HasSubstr("question_answering"))));
  EXPECT_EQ(parse(dump_recipe(tagging)), tagging);
  EXPECT_THAT(dump_recipe(parse("output: o\n")), Not(HasSubstr("token_classification")));
  EXPECT_FALSE(computing_settings(parse("output: o\n")).contains("token_classification.stride"));
  const Recipe answering = parse("task: question-answering\n");
  EXPECT_EQ(answering.data.max_length, 384);
  EXPECT_EQ(parse("task: question-answering\ndata: {max_length: 128}\n").data.max_length, 128);
  EXPECT_TRUE(may_change_on_resume("question_answering.n_best_size"));
}

// Such a value would change when it is written to config.yaml and passed to ranks.
TEST(Recipe, ValuesThatAreNotUtf8AreRefused) {
  refuses("output: runs/\xff\n", {}, "r.yaml:1:9: output: the value is not UTF-8 text");
  refuses("output: runs\n", {"output=\xc3\x28"},
          "--set output=\xc3\x28: output: the value is not UTF-8 text");
  const ScopedVariable variable("STRETTO_TEST_FOLDER", "\xfe");
  refuses("output: ${STRETTO_TEST_FOLDER}\n", {}, "r.yaml:1:9: output: the value is not UTF-8 text");
  EXPECT_EQ(parse("output: caf\u00e9\n").output, "caf\u00e9");
}

TEST(Recipe, StrategyMayCarryThePrecision) {
  const Recipe recipe = parse("training:\n  strategy: ddp-bf16\n");
  EXPECT_EQ(recipe.training.precision, "bf16");
  EXPECT_EQ(recipe.training.strategy, "ddp");
  EXPECT_EQ(parse("training: {strategy: ddp-bf16, precision: bf16}\n").training.precision, "bf16");
  refuses("training:\n  precision: fp32\n  strategy: ddp-bf16\n", {},
          "r.yaml:3:13: training.strategy:", "training.precision (r.yaml:2:14)");
  EXPECT_EQ(parse("training: {strategy: hsdp, dp_shard: 2}\n").training.dp_shard, 2);
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
  EXPECT_EQ(parse("training: {strategy: zero3, wrap_min_parameters: 9}\n").training.wrap_min_parameters, 9);
  EXPECT_TRUE(parse("training: {reshard_after_forward: true}\n").training.reshard_after_forward);
  const auto schema = recipe_schema();
  EXPECT_EQ(
      schema["properties"]["training"]["properties"]["strategy"]["description"],
      "what each rank holds, optionally with the precision (zero2-bf16): ddp all; zero1 its part of the optimizer's state; zero2 also of the gradients; fsdp (zero3) also of the parameters; hsdp the same within each group of dp_shard ranks");
}

TEST(Recipe, PrecisionsHaveLightningsNames) {
  EXPECT_EQ(parse("training: {precision: bf16-mixed}\n").training.precision, "bf16");
  EXPECT_EQ(parse("training: {precision: 32}\n").training.precision, "fp32");
  EXPECT_EQ(parse("training: {precision: 64-true}\n").training.precision, "fp64");
  EXPECT_EQ(parse("training: {precision: 16-mixed}\n").training.precision, "fp16");
  refuses("training:\n  precision: 16-true\n", {}, "r.yaml:2:14: training.precision: \"16-true\"");
  refuses("training:\n  precision: bf16-true\n", {}, "r.yaml:2:14: training.precision: \"bf16-true\"");
  refuses("training:\n  precision: bf61\n", {}, "r.yaml:2:14: training.precision: \"bf61\"", "\"bf16\"?");
}

TEST(Recipe, ANameOfAStrategyMayPutTheOptimizersStateIntoFiles) {
  Recipe recipe = parse("training: {strategy: zero2-fp16-nvme}\noutput: runs/a\n");
  EXPECT_EQ(recipe.training.strategy, "zero2");
  EXPECT_EQ(recipe.training.precision, "fp16");
  EXPECT_EQ(offload_folder(recipe), "runs/a");
  EXPECT_EQ(decode_recipe(encode_recipe(recipe)), recipe);
  const Recipe elsewhere = parse("training: {strategy: zero2-nvme, offload_optimizer: disk}\n");
  EXPECT_EQ(offload_folder(elsewhere), "disk");
  EXPECT_EQ(offload_folder(parse("training: {strategy: zero2}\n")), std::nullopt);
  Recipe all = parse("training: {strategy: deepspeed-3-bf16-nvme-nvme}\noutput: runs/a\n");
  EXPECT_EQ(offload_folder(all), "runs/a");
  EXPECT_EQ(parameter_folder(all), "runs/a");
  EXPECT_EQ(parse_recipe(dump_recipe(all), "config.yaml"), all);
  refuses("training: {strategy: zero2, offload_parameters: disk}\n", {},
          "r.yaml:1:49: training.offload_parameters: it applies to strategies fsdp and hsdp");
}

TEST(Recipe, DumpReadsBackAsTheSame) {
  const Recipe recipe = parse(
      "model: {path: ~/models/bert, dropout: 0}\ntokenizer: {lowercase: no}\n"
      "data: {train: \"a b.tsv\", text: 'q: 1', label: \"1\"}\n"
      "training: {max_steps: 7, global_batch_size: 100, strategy: ddp-fp64, seed: 9007199254740993}\n"
      "optimizer: {type: SGD, lr: 0.3, momentum: 0.9, nesterov: on}\nscheduler: {type: Constant}\n"
      "checkpoint: {monitor: loss, mode: min}\nevaluate: {every: never, batch_size: 3}\ntrack: {progress: off}\n"
      "output: runs/$${x}\n");
  const std::string yaml = dump_recipe(recipe);
  EXPECT_EQ(parse(yaml), recipe) << yaml;
  EXPECT_EQ(dump_recipe(parse(yaml)), yaml);
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
  EXPECT_EQ(parse(dump_recipe(recipe)), recipe);
}

TEST(Recipe, TheMainJobNamesMissingVariables) {
  const ScopedVariable data("STRETTO_DATA", nullptr);
  EXPECT_THAT([] { load_recipe(sst2_recipe); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("sst2.yaml:"), HasSubstr(": data.train: "),
                                               HasSubstr("STRETTO_DATA is not set"))));
}

TEST(Recipe, AMissingFileIsNamed) {
  EXPECT_THAT([] { load_recipe("no/such/recipe.yaml"); },
              ThrowsMessage<IoError>(HasSubstr("no/such/recipe.yaml: No such file")));
}

TEST(Recipe, HelpAndSchemaContainEverySetting) {
  const std::string help = recipe_help();
  for (const char* key : {"model.path", "data.max_length", "training.global_batch_size", "optimizer.lr",
                          "scheduler.warmup_ratio", "checkpoint.monitor", "checkpoint.every",
                          "evaluate.every", "early_stopping.patience", "track.log_every"}) {
    EXPECT_THAT(help, HasSubstr(std::string("  ") + key + "\n"));
  }
  EXPECT_THAT(help, HasSubstr("peak learning rate (number, at least 0; default 5e-05)"));
  const auto schema = recipe_schema();
  EXPECT_EQ(schema["title"], "stretto recipe");
  EXPECT_EQ(schema["properties"].size(), 21u);
  EXPECT_EQ(schema["properties"]["optimizer"]["properties"]["lr"]["default"], 5e-5);
}

TEST(Recipe, ComputingSettingsAffectTheResult) {
  const auto settings = computing_settings(parse("optimizer: {lr: 0.5}\n", {}));
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

TEST(Recipe, IsPassedToAnotherProcessUnchanged) {
  const ScopedVariable rate("RATE", "0.25");
  const Recipe recipe = parse("optimizer: {type: SGD, lr: \"${RATE}\"}\ndata: {train: \"$${x}/~\"}\n",
                              {"training.strategy=ddp-bf16", "checkpoint.accept_changes=[optimizer.lr]"});
  const ScopedVariable other("RATE", "0.5");
  const Recipe decoded = decode_recipe(encode_recipe(recipe));
  EXPECT_EQ(decoded, recipe);
  EXPECT_EQ(decoded.optimizer.as<optim::SgdOptions>().lr, 0.25);
  EXPECT_EQ(decoded.origins.label("optimizer.lr"), "r.yaml:1:28: optimizer.lr");
}

TEST(Recipe, SharedSettingsAreAllButThePathsOfInputs) {
  const auto settings = shared_settings(parse("output: o\n"));
  for (const char* name : {"output", "track.log_every", "optimizer.lr", "data.max_length", "resume"}) {
    EXPECT_TRUE(settings.contains(name)) << name;
  }
  for (const char* name : {"model.path", "data.train", "data.cache", "tokenizer.path"}) {
    EXPECT_FALSE(settings.contains(name)) << name;
  }
}

// ---- settings that a program declares

struct NetworkSettings {
  int64_t hidden = 32;
  std::filesystem::path shapes = "shapes.txt";

  void fields(settings::Fields& field) {
    field("hidden", hidden, "width of the hidden layers", settings::at_least(1));
    field("shapes", shapes, "a file of shapes");
  }
};

struct ProgramSettings {
  NetworkSettings model;
  double noise = 0.5;

  void fields(settings::Fields& field) {
    field("model", model, "the network");
    field("noise", noise, "of the inputs");
  }
};

TEST(ProgramFields, AreReadWrittenAndComparedLikeBundledOnes) {
  ProgramSettings settings;
  const auto fields = settings::fields_of(settings);
  const std::vector<std::string> overrides = {"noise=0.25"};
  const Recipe recipe =
      parse_recipe("model: {hidden: 8}\noptimizer: {lr: 0.1}\n", "r.yaml", overrides, fields);
  EXPECT_EQ(settings.model.hidden, 8);
  EXPECT_EQ(settings.noise, 0.25);
  EXPECT_EQ(recipe.optimizer.as<optim::AdamwOptions>().lr, 0.1);
  EXPECT_THAT(dump_recipe(recipe),
              AllOf(StartsWith("task: text-classification\nmodel:\n  hidden: 8\n  shapes: shapes.txt\n"),
                    HasSubstr("noise: 0.25\n")));
  EXPECT_EQ(computing_settings(recipe).at("model.hidden"), 8);
  EXPECT_FALSE(shared_settings(recipe).contains("model.shapes"));
  EXPECT_THAT(recipe_help(fields),
              HasSubstr("width of the hidden layers (whole number, at least 1; default 8)"));

  ProgramSettings decoded;
  decode_recipe(encode_recipe(recipe), settings::fields_of(decoded));
  EXPECT_EQ(decoded.model.hidden, 8);
  EXPECT_EQ(decoded.noise, 0.25);
}

TEST(ProgramFields, ReplaceABundledSection) {
  ProgramSettings settings;
  EXPECT_THAT([&] { parse_recipe("model: {path: x}\n", "r.yaml", {}, settings::fields_of(settings)); },
              ThrowsMessage<ConfigError>(StartsWith("r.yaml:1:9: model.path is not a setting")));
  EXPECT_THAT([&] { parse_recipe("model: {hidden: 0}\n", "r.yaml", {}, settings::fields_of(settings)); },
              ThrowsMessage<ConfigError>(HasSubstr("model.hidden: 0 is out of range")));
}

TEST(ProgramFields, CannotTakeTheNameOfABundledSetting) {
  struct Taken {
    int64_t training = 1;
    void fields(settings::Fields& field) { field("training", training, "help"); }
  } settings;
  EXPECT_THAT([&] { parse_recipe("output: o\n", "r.yaml", {}, settings::fields_of(settings)); },
              ThrowsMessage<ConfigError>(
                  HasSubstr("declares the setting \"training\", which is reserved by stretto")));
}

// ---- help

TEST(RecipeHelp, IsGivenForOneSectionOrSetting) {
  EXPECT_THAT(recipe_help_on("optimizer"), AllOf(StartsWith("\noptimizer: "), HasSubstr("  optimizer.lr\n"),
                                                 ::testing::Not(HasSubstr("training."))));
  EXPECT_THAT(recipe_help_on("optimizer.lr"), StartsWith("  optimizer.lr\n      peak learning rate"));
  EXPECT_THAT([] { recipe_help_on("optimiser"); },
              ThrowsMessage<ConfigError>(HasSubstr("did you mean \"optimizer\"?")));
  EXPECT_THAT([] { recipe_help_on("warmup_ratio"); },
              ThrowsMessage<ConfigError>(HasSubstr("did you mean \"scheduler.warmup_ratio\"?")));
}

// ---- schema

TEST(RecipeSchema, RefusesSettingsOfAnotherType) {
  const auto rules = recipe_schema().at("properties").at("optimizer").at("allOf");
  // The conditional rule under which `schema` applies to the setting.
  const auto rule_for = [](const auto& of, const char* name, const nlohmann::ordered_json& schema) {
    for (const auto& rule : of) {
      const auto& properties = rule.at("then").at("properties");
      if (properties.contains(name) && properties.at(name) == schema) return rule.at("if");
    }
    return nlohmann::ordered_json();
  };
  EXPECT_EQ(rule_for(rules, "betas", false), nlohmann::ordered_json::parse(R"({"properties": {"type": {"enum":
      ["SGD", "Adadelta", "Adagrad", "Adafactor", "Muon", "ASGD", "RMSprop", "Rprop", "LBFGS"]}}, "required": ["type"]})"));
  EXPECT_EQ(rule_for(rules, "momentum", false),
            nlohmann::ordered_json::parse(R"({"properties": {"type": {"enum":
      ["AdamW", "Adam", "Adadelta", "Adagrad", "Adamax", "Adafactor", "Lamb", "ASGD", "NAdam", "RAdam", "Rprop", "SparseAdam", "LBFGS"]}}})"))
      << "without a type it is AdamW";
  const auto scheduler = recipe_schema().at("properties").at("scheduler").at("allOf");
  const auto without_warmup = rule_for(scheduler, "num_warmup_steps", {{"type", "null"}});
  EXPECT_EQ(without_warmup.at("properties").at("type").at("enum")[0], "Constant");
}

TEST(RecipeSchema, HasTheDefaultsOfEachType) {
  const auto rules = recipe_schema().at("properties").at("optimizer").at("allOf");
  std::map<std::string, double> lr;
  for (const auto& rule : rules) {
    const auto& properties = rule.at("then").at("properties");
    if (!properties.contains("lr")) continue;
    lr[rule.at("if").at("properties").at("type").at("enum")[0]] = properties.at("lr").at("default");
  }
  EXPECT_EQ(lr.size(), 16u);
  EXPECT_EQ(lr.at("AdamW"), 5e-5);
  EXPECT_EQ(lr.at("Adadelta"), 1);
}

// Writes a recipe whose files all exist, with `overrides` applied.
class CheckRecipe : public ::testing::Test {
 protected:
  void check(std::vector<std::string> overrides, Verb verb = Verb::train) {
    for (const char* file : {"train.tsv", "dev.tsv", "test.tsv"})
      write_file_atomic(folder_.path() / file, "");
    const std::string path = folder_.path();
    make_folders(folder_.path() / "run/model");
    write_file_atomic(folder_.path() / "run/model/config.json", "");
    const std::vector<std::string> files = {"output=" + path + "/run", "model.path=" + path,
                                            "data.train=" + path + "/train.tsv",
                                            "data.validation=" + path + "/dev.tsv"};
    overrides.insert(overrides.begin(), files.begin(), files.end());
    check_recipe(parse("task: text-classification\n", overrides), verb);
  }
  void refuses(const std::vector<std::string>& overrides, const std::string& message,
               Verb verb = Verb::train) {
    EXPECT_THAT([&] { check(overrides, verb); }, ThrowsMessage<ConfigError>(HasSubstr(message)));
  }

  TempFolder folder_;
};

TEST_F(CheckRecipe, AGoodRecipePasses) {
  EXPECT_NO_THROW(check({}));
  EXPECT_NO_THROW(check({"data.test=" + (folder_.path() / "test.tsv").string()}, Verb::test));
  EXPECT_NO_THROW(check({"data.validation=null", "evaluate.every=never"}));
}

TEST_F(CheckRecipe, AVerbNeedsItsOwnSettingsOnly) {
  refuses({"data.train=null"},
          "data.train is required by stretto train; add it to the recipe, or pass --set data.train=");
  refuses({}, "data.test is required by stretto test", Verb::test);
  EXPECT_NO_THROW(
      check({"data.train=null", "data.test=" + (folder_.path() / "test.tsv").string()}, Verb::test));
  refuses(
      {"data.validation=null"},
      "evaluate.every: there are no samples to evaluate; set data.validation or data.validation_split, or "
      "evaluate.every: never");
}

TEST_F(CheckRecipe, AUsersProgramLoadsModelAndDataItself) {
  EXPECT_NO_THROW(check({"model.path=null", "data.train=null", "data.validation=/no/such.tsv"}, Verb::fit));
  refuses({"model.path=null", "checkpoint.every=sometimes"}, "checkpoint.every", Verb::fit);
}

TEST_F(CheckRecipe, AModelThatTheRunReplacesIsRefused) {
  const std::string run = folder_.path().string() + "/run";
  refuses({"model.path=" + run + "/../run/model"},
          "run/model is in the output folder, " + run + ", whose models");
  refuses({"tokenizer.path=" + run + "/model"}, "tokenizer.path: " + run + "/model is in the output folder");
  EXPECT_NO_THROW(check({"output=" + run + "/model-of"}));
  EXPECT_NO_THROW(check({"output=" + folder_.path().string() + "/other", "model.path=" + run + "/model"}));
}

TEST_F(CheckRecipe, AnOptimizerThatNeedsWholeGradientsIsCheckedBeforeDataAreRead) {
  refuses({"optimizer.type=LBFGS"},
          "training.max_grad_norm: LBFGS compares gradients with changes of the loss");
  refuses({"optimizer.type=LBFGS", "training.max_grad_norm=0", "training.max_grad_value=1"},
          "training.max_grad_value: LBFGS compares");
  refuses({"optimizer.type=LBFGS", "training.max_grad_norm=0", "training.precision=fp16"},
          "training.precision: LBFGS evaluates a batch several times");
  EXPECT_NO_THROW(check({"optimizer.type=LBFGS", "training.max_grad_norm=0"}));
  EXPECT_NO_THROW(check({"optimizer.type=LBFGS"}, Verb::fit)) << "its Module may make another optimizer";
}

TEST_F(CheckRecipe, FilesMustExist) {
  refuses({"data.train=/no/such.tsv"},
          "--set data.train=/no/such.tsv: data.train: /no/such.tsv does not exist");
  refuses({"model.path=bert-base-uncased"}, "model.path: bert-base-uncased does not exist");
  refuses({"model.path=google/bert_uncased"},
          "if it is a model of Hugging Face's hub, fetch it with `stretto pull google/bert_uncased`");
  refuses({"data.test=/no/such.tsv"}, "data.test: /no/such.tsv does not exist");
  refuses({"data.train=" + folder_.path().string()}, "is a folder; expected a file");
  refuses({"data.validation=/dev/zero"}, "data.validation: /dev/zero is a pipe or a device");
  refuses({"model.path=null", "model.config=" + folder_.path().string()}, "is a folder; expected a file");
  refuses({"output=" + (folder_.path() / "train.tsv").string()}, "train.tsv is a file; expected a folder");
  refuses({"output=/no/such/run", "data.test=" + (folder_.path() / "test.tsv").string()},
          "output: there is no trained model in /no/such/run/model", Verb::test);
}

TEST_F(CheckRecipe, OneModelIsNeeded) {
  const std::string config = "model.config=" + (folder_.path() / "train.tsv").string();
  refuses({"model.path=null"}, "model.path is required (or model.config, for random weights)");
  refuses({config}, "remove this or model.path");
  refuses(
      {"model.path=null", config},
      "tokenizer.path is required if model.path is not set and model.config is not of model_type sequence-tagger");
  EXPECT_NO_THROW(check({"model.path=null", config, "tokenizer.path=" + folder_.path().string()}));
}

// A recipe of a language model whose model.config is a section.
Recipe small_model(const std::string& model, const std::string& task = "causal-lm") {
  return parse("task: " + task + "\nmodel:\n" + model);
}

TEST(ModelSection, IsAConfigJson) {
  const Recipe recipe = small_model(
      "  type: llama\n  config:\n    hidden_size: 64\n    rope_theta: 1e4\n    hidden_act: gelu\n");
  const ModelJson model = read_model_json(recipe.model);
  EXPECT_EQ(model.json,
            nlohmann::json::parse(
                R"({"model_type": "llama", "hidden_size": 64, "rope_theta": 10000, "hidden_act": "gelu"})"));
  EXPECT_EQ(model.name, "model.config");
  EXPECT_NO_THROW(check_model_section(recipe));
  EXPECT_EQ(parse(dump_recipe(recipe)), recipe);
  EXPECT_EQ(decode_recipe(encode_recipe(recipe)), recipe);
  EXPECT_EQ(decode_recipe(encode_recipe(recipe)).origins.label("model.config.hidden_size"),
            "r.yaml:5:18: model.config.hidden_size");
  // Ranks and parts of a run must agree on it.
  EXPECT_EQ(shared_settings(recipe).at("model.config").at("hidden_size"), 64);
  EXPECT_EQ(computing_settings(recipe).at("model.config").at("hidden_size"), 64);
  EXPECT_NO_THROW(check_model_section(small_model("  config: {model_type: gpt2, n_embd: 24, n_head: 2}\n")));
  EXPECT_NO_THROW(check_model_section(small_model("  config: {model_type: added-family, any_key: 24}\n")));
}

TEST(ModelSection, MistakesHaveThePositionOfTheirKey) {
  const auto refuses = [](const std::string& model, const std::string& message) {
    EXPECT_THAT([&] { check_model_section(small_model(model)); }, ThrowsMessage<ConfigError>(message))
        << model;
  };
  const std::string llama = "  type: llama\n  config:\n";
  refuses(
      llama + "    hidden_siez: 64\n",
      "r.yaml:5:18: model.config.hidden_siez: a model of type llama has no such key, and it may change what the "
      "model computes; remove it if it does not; did you mean \"hidden_size\"?");
  refuses(llama + "    hidden_size: small\n",
          "r.yaml:5:18: model.config.hidden_size: found \"small\"; expected an integer from 1 to 16777216");
  refuses(
      llama + "    hidden_size: 64\n    num_attention_heads: 3\n",
      "r.yaml:5:18: model.config.hidden_size (64) must be a multiple of num_attention_heads (3) without head_dim");
  refuses(llama + "    num_hidden_layers: 100000\n",
          "r.yaml:5:24: model.config.num_hidden_layers: found 100000; expected an integer from 0 to 10000");
  refuses(llama + "    hidden_size:\n    num_hidden_layers: 2\n",
          "r.yaml:5:5: model.config.hidden_size: the value is empty; give one or remove the line");
  refuses(llama + "    hidden_size: null\n",
          "r.yaml:5:18: model.config.hidden_size: the value is null; give one, or remove the key for "
          "transformers' default");
  EXPECT_NO_THROW(check_model_section(small_model(llama + "    head_dim: null\n")));
  refuses(llama + "    rope_scaling: {rope_type: linear}\n",
          "r.yaml:5:19: model.config.rope_scaling: factor is missing");
  refuses(
      llama + "    num_attention_heads: 3\n",
      "r.yaml:5:5: model.config: hidden_size (4096) must be a multiple of num_attention_heads (3) without head_dim");
  refuses(
      "  type: llama\n  config: {model_type: gpt2}\n",
      "r.yaml:4:24: model.config.model_type: found \"gpt2\", but model.type is llama; remove one of them");
  refuses(
      "  config: {hidden_size: 8}\n",
      "r.yaml:3:11: model.config: model_type is missing; set model.type to one of: gpt2, llama, mistral, qwen2, qwen3");
  refuses(
      "  config: {model_type: bert}\n",
      "r.yaml:3:24: model.config.model_type: a bert cannot be described by a section, but gpt2, llama, mistral, qwen2, "
      "qwen3 can; set model.config to the path of its config.json");
  EXPECT_THAT(
      [&] { check_model_section(small_model(llama + "    hidden_size: 64\n", "text-classification")); },
      ThrowsMessage<ConfigError>(
          "r.yaml:3:9: model.type: a llama is not for the task text-classification, but for causal-lm"));
}

TEST_F(CheckRecipe, ATypeOfModelNeedsItsSizes) {
  const std::string config = (folder_.path() / "config.json").string();
  write_file_atomic(config, R"({"model_type": "gpt2"})");
  const std::vector<std::string> causal = {"task=causal-lm", "model.path=null",
                                           "tokenizer.path=" + folder_.path().string()};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), causal.begin(), causal.end());
    return more;
  };
  EXPECT_NO_THROW(check(with({"model.type=llama", "model.config.hidden_size=64"})));
  EXPECT_NO_THROW(check(with({"model.type=gpt2", "model.config=" + config})));
  refuses(with({"model.type=llama", "model.config=" + config}),
          "config.json: model_type: found \"gpt2\", but model.type is llama");
  refuses(with({"model.type=llama"}),
          "--set model.type=llama: model.type: the sizes of the model are missing");
  refuses(with({"model.type=lama"}), "did you mean \"llama\"?");
  refuses(with({"model.type=mamba"}),
          "--set model.type=mamba: model.type: \"mamba\" is not one of gpt2, llama, mistral, qwen2, qwen3");
  refuses({"task=token-classification", "model.type=tagger"}, "\"tagger\" is not one of sequence-tagger");
  refuses({"model.type=tagger"}, "\"tagger\" is not one of sequence-tagger, gpt2, llama, mistral");
  refuses(with({"model.type=llama", "model.config.hiden_size=64"}),
          "--set model.config.hiden_size=64: model.config.hiden_size: a model of type llama has no such key");
  refuses({"task=causal-lm", "model.type=llama", "model.config.hidden_size=64"}, "remove this or model.path");
  refuses({"task=causal-lm", "model.type=llama"},
          "model.path: llama is a new model with random weights; remove this");
}

TEST_F(CheckRecipe, ContradictionsAreRefused) {
  refuses(
      {"scheduler.num_warmup_steps=5", "scheduler.warmup_ratio=0.1"},
      "--set scheduler.warmup_ratio=0.1: scheduler.warmup_ratio: the warm-up is set twice; remove this or scheduler.num_warmup_steps (--set scheduler.num_warmup_steps=5)");
  refuses({"scheduler.num_warmup_steps=5", "training.max_steps=4"}, "a warm-up of 5 steps is longer than");
  refuses({"optimizer.type=SGD", "optimizer.nesterov=true"}, "needs a momentum above 0 and dampening 0");
  refuses({"evaluate.every=never", "checkpoint.monitor=loss"},
          "checkpoint.monitor: it has no meaning without evaluations, and evaluate.every (--set");
}

}  // namespace
}  // namespace stretto
