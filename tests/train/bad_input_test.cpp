#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"

// Invalid input ends a run before its first step, with a message that states where, what was found and what to do, and
// without a model or results that could be mistaken for valid ones.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Matcher;
using ::testing::Not;

constexpr int usage = 2;         // exit codes: an invalid recipe,
constexpr int broken_input = 2;  // damaged input, which a restart would find the same,
constexpr int failure = 1;       // and a failure that a restart may get over

class BadInput : public ::testing::Test {
 protected:
  // Runs `verb` on two ranks and expects this error.
  void expect_refusal(int exit_code, const std::string& settings,
                      const Matcher<const std::string&>& message) {
    expect_refusal_of(workspace_.run("train", 2, settings), exit_code, message);
  }

  void expect_refusal_of(const ShellResult& result, int exit_code,
                         const Matcher<const std::string&>& message) {
    EXPECT_EQ(result.exit_code, exit_code);
    EXPECT_THAT(result.err, message);
    for (const char* name : {"run/model", "run/model.new", "run/summary.json", "run/dev_results.json"}) {
      EXPECT_FALSE(workspace_.has(name)) << name;
    }
  }

  std::string path(const std::string& name) const { return workspace_.path(name); }

  // A trained model folder to damage, at trained/model; settings that start from it.
  std::string train_model() {
    workspace_.train("trained", 1, "training.max_steps=1 evaluate.every=never training.precision=fp32");
    return "model.config=null model.path=" + path("trained/model");
  }

  // Replaces the trained weights by `change` of them.
  template <class Change>
  void change_weights(const Change& change) {
    const std::string name = "trained/model/model.safetensors";
    workspace_.write(name, change(workspace_.read(name)));
  }

  Workspace workspace_;
};

// ---- data

TEST_F(BadInput, MissingFile) {
  expect_refusal(usage, "data.train=" + path("absent.tsv"),
                 AllOf(HasSubstr("--set data.train"), HasSubstr(path("absent.tsv") + " does not exist")));
  EXPECT_FALSE(workspace_.has("run")) << "refused before anything is made";
}

TEST_F(BadInput, EmptyFile) {
  workspace_.write("empty.tsv", "");
  expect_refusal(broken_input, "data.train=" + path("empty.tsv"),
                 HasSubstr(path("empty.tsv") + ": the file is empty"));
  workspace_.write("empty.tsv", "sentence\tlabel\n");
  expect_refusal(broken_input, "data.validation=" + path("empty.tsv"),
                 HasSubstr(path("empty.tsv") + ": no rows follow the header"));
}

TEST_F(BadInput, OneClassOnly) {
  workspace_.write("one.tsv", "sentence\tlabel\ngood\t1\nfine\t1\n");
  expect_refusal(broken_input, "data.train=" + path("one.tsv"),
                 AllOf(HasSubstr(path("one.tsv")), HasSubstr("a classifier needs rows of two classes")));
}

TEST_F(BadInput, LabelsThatTheTrainingDataDoesNotHave) {
  workspace_.write("dev.tsv", "sentence\tlabel\ngood\t1\nbad\t2\n");
  expect_refusal(broken_input, "",
                 AllOf(HasSubstr(path("dev.tsv") + ":3:"), HasSubstr("label \"2\" is not one of 0, 1")));
  workspace_.write("train.tsv", "sentence\tlabel\ngood\tpositive\nbad\tnegative\n");
  workspace_.write("dev.tsv", "sentence\tlabel\ngood\tpostive\n");
  expect_refusal(broken_input, "",
                 AllOf(HasSubstr(path("dev.tsv") + ":2:"), HasSubstr("did you mean \"positive\"?")));
}

TEST_F(BadInput, MalformedRow) {
  workspace_.write("train.tsv", make_rows(9, 1) + "a row without its label\n" + make_rows(9, 2));
  expect_refusal(broken_input, "",
                 HasSubstr(path("train.tsv") + ":11: 1 column; the header has 2 (sentence, label)"));
  // It is reported once, and not tried again.
  const ShellResult again = shell(workspace_.command("train", 2) + " --max-restarts 2");
  expect_refusal_of(again, broken_input,
                    Not(AnyOf(HasSubstr("restart"), HasSubstr("has left"), HasSubstr("[rank 1]"))));
  EXPECT_EQ(again.err.find(":11: "), again.err.rfind(":11: ")) << again.err;
  workspace_.write("train.jsonl", "{\"text\": \"good\", \"label\": 1}\n{\"text\": \"bad\", \"label\"\n");
  expect_refusal(broken_input, "data.train=" + path("train.jsonl"), HasSubstr(path("train.jsonl") + ":2"));
}

// ---- recipe

TEST_F(BadInput, UnknownKey) {
  workspace_.write("recipe.yaml", workspace_.read("recipe.yaml") + "evaluation:\n  every: epoch\n");
  expect_refusal(usage, "",
                 HasSubstr("recipe.yaml:26:1: evaluation is not a setting; did you mean \"evaluate\"?"));
}

TEST_F(BadInput, WrongType) {
  std::string recipe = workspace_.read("recipe.yaml");
  recipe.replace(recipe.find("epochs: 2"), 9, "epochs: two");
  workspace_.write("recipe.yaml", recipe);
  expect_refusal(usage, "", HasSubstr("recipe.yaml:11:11: training.epochs: \"two\" is not a number"));
}

TEST_F(BadInput, BatchSizesThatContradict) {
  expect_refusal(
      usage, "training.batch_size=4 training.grad_accumulation_steps=3",
      AllOf(
          HasSubstr(
              "global_batch_size (16) = batch_size (4) x world_size (2) x grad_accumulation_steps (3) does not hold, the right-hand side is 24"),
          HasSubstr("recipe.yaml:12:22"), HasSubstr("or omit one of them")));
  EXPECT_FALSE(workspace_.has("run"));
}

TEST_F(BadInput, PrecisionThatIsNotThere) {
  expect_refusal(usage, "training.precision=fp16",
                 AllOf(HasSubstr("training.precision"), HasSubstr("fp16"), HasSubstr("bf16")));
}

TEST_F(BadInput, StrategyThatIsNotThere) {
  expect_refusal(
      usage, "training.strategy=fsdp2",
      AllOf(HasSubstr("training.strategy"),
            HasSubstr("\"fsdp2\" is known, but not available in this version"), HasSubstr("ddp-bf16")));
  expect_refusal(usage, "training.strategy=hsdp training.dp_shard=3",
                 HasSubstr("training.dp_shard: 2 ranks cannot be divided into copies of 3 ranks each"));
}

TEST_F(BadInput, SettingsOfOtherStrategies) {
  expect_refusal(usage, "training.strategy=zero2 training.reshard_after_forward=false",
                 HasSubstr("training.reshard_after_forward: it applies to strategies fsdp and hsdp; "));
  expect_refusal(usage, "training.wrap_min_parameters=1000",
                 HasSubstr("training.wrap_min_parameters: it applies to strategies zero2, fsdp and hsdp; "));
  expect_refusal(usage, "training.strategy=fsdp training.reshard_after_forward=2",
                 HasSubstr("training.reshard_after_forward"));
}

TEST_F(BadInput, FolderForOptimizerState) {
  expect_refusal(usage, "training.offload_optimizer=" + path("gone"),
                 HasSubstr("training.offload_optimizer: " + path("gone") + " does not exist"));
  expect_refusal(usage, "training.offload_optimizer=" + path("train.tsv"),
                 HasSubstr("train.tsv is a file; expected a folder"));
}

TEST_F(BadInput, MonitorThatIsNotMeasured) {
  expect_refusal(usage, "checkpoint.monitor=acuracy",
                 AllOf(HasSubstr("checkpoint.monitor"), HasSubstr("did you mean \"accuracy\"?")));
}

TEST_F(BadInput, OutputThatCannotBeWritten) {
  expect_refusal(failure, "output=" + path("recipe.yaml/run"), HasSubstr(path("recipe.yaml/run")));
}

// ---- recipe

TEST_F(BadInput, RecipeThatIsNotThere) {
  const auto run = [](const std::string& arguments) {
    return shell(std::string(STRETTO_PROGRAM) + " train " + arguments);
  };
  expect_refusal_of(run(path("none.yaml")), usage,
                    HasSubstr("stretto: error: " + path("none.yaml") +
                              ": there is no such file; expected the recipe to train"));
  expect_refusal_of(run(path("model")), usage,
                    HasSubstr(path("model") + ": it is a folder; expected a recipe, a YAML file"));
}

TEST_F(BadInput, OutputThatIsAFile) {
  expect_refusal(usage, "output=" + path("train.tsv"),
                 HasSubstr("output: " + path("train.tsv") + " is a file; expected a folder"));
}

TEST_F(BadInput, OutputThatIsAModelFolder) {
  for (const char* verb : {"train", "test"}) {
    const ShellResult result =
        workspace_.run(verb, 1, "data.test=" + path("dev.tsv") + " output=" + path("model"));
    EXPECT_EQ(result.exit_code, usage);
    EXPECT_THAT(result.err,
                HasSubstr("output: " + path("model") + " is a model folder, as it holds a config.json"));
  }
  EXPECT_FALSE(workspace_.has("model/.lock"));
}

TEST_F(BadInput, TestDataThatIsNotThere) {
  expect_refusal(usage, "data.test=" + path("absent.tsv"),
                 HasSubstr("data.test: " + path("absent.tsv") + " does not exist"));
}

TEST_F(BadInput, ModelNamesAreNotDownloaded) {
  expect_refusal(usage, "model.config=null model.path=bert-base-uncased",
                 AllOf(HasSubstr("model.path: bert-base-uncased does not exist"),
                       HasSubstr("fetch it with `stretto pull bert-base-uncased`")));
}

TEST_F(BadInput, PathsThatTheSystemRefuses) {
  std::filesystem::create_symlink("loop", path("loop"));
  expect_refusal(
      usage, "data.train=" + path("loop"),
      AllOf(HasSubstr("data.train: "), HasSubstr("cannot be accessed: Too many levels of symbolic links")));
  const ShellResult result = shell(fmt::format("{} train {}", STRETTO_PROGRAM, path("loop")));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("Too many levels of symbolic links"));
  EXPECT_NE(shell(fmt::format("{} train {}", STRETTO_PROGRAM, std::string(300, 'x'))).exit_code, 70);
}

TEST_F(BadInput, UnknownOptionsAndVerbs) {
  const auto refusal = [](const std::string& words) {
    const ShellResult result = shell(std::string(STRETTO_PROGRAM) + " " + words);
    EXPECT_EQ(result.exit_code, usage) << words;
    return result.err;
  };
  EXPECT_EQ(refusal("train r.yaml --stratgy ddp"),
            "stretto: error: stretto train: --stratgy is not an option; did you mean \"--strategy\"?; "
            "stretto train --help lists the options\n");
  EXPECT_THAT(refusal("trian"), HasSubstr("did you mean \"train\"?"));
  EXPECT_THAT(refusal("help optimiser"), HasSubstr("did you mean \"optimizer\"?"));
}

TEST_F(BadInput, OutputThatTheDiskDoesNotTake) {
  workspace_.train("run", 1, "training.max_steps=2 evaluate.every=never checkpoint.every=1");
  const std::string run = path("run");
  const std::vector<std::string> printing = {"--help",
                                             "help",
                                             "help optimizer",
                                             "schema",
                                             "train --help-all",
                                             "--version",
                                             "strats",
                                             "strats --json",
                                             "strats --ddp",
                                             "doctor -N 1",
                                             "new project",
                                             "checkpoints ls " + run,
                                             "checkpoints verify " + run,
                                             "checkpoints rm --keep-last 2 " + run,
                                             "tokenize --tokenizer " + path("model") + " " + path("dev.tsv")};
  for (const std::string& words : printing) {
    for (const auto& [where, reason] :
         {std::pair("> /dev/full", "No space left on device"), {">&-", "Bad file descriptor"}}) {
      const ShellResult result =
          shell(fmt::format("cd {} && rm -rf project && {} {} {}", path(""), STRETTO_PROGRAM, words, where));
      EXPECT_EQ(result.exit_code, 1) << words << where;
      EXPECT_THAT(result.err, AllOf(HasSubstr("stretto: error: "), HasSubstr(reason))) << words << where;
      EXPECT_EQ(result.err.find("error: "), result.err.rfind("error: ")) << "once: " << result.err;
    }
  }
}

TEST_F(BadInput, DataNamedByAVariableIsRefusedWhereItIsRead) {
  const std::string unset = "'data.{}=${{STRETTO_TEST_UNSET}}/data.tsv'";
  const auto run = [&](const std::string& verb, const std::string& setting) {
    return workspace_.run(verb, 1,
                          "training.max_steps=1 evaluate.every=never " +
                              fmt::format(fmt::runtime(unset), setting) +
                              (setting == "train" && verb == "test" ? " data.test=" + path("dev.tsv") : ""));
  };
  EXPECT_EQ(run("train", "test").exit_code, 0);
  EXPECT_EQ(run("test", "train").exit_code, 0);
  for (const auto& [verb, setting] : {std::pair("train", "train"), {"test", "test"}}) {
    const ShellResult result = run(verb, setting);
    EXPECT_EQ(result.exit_code, usage);
    EXPECT_THAT(result.err, HasSubstr(fmt::format(
                                "data.{}: the environment variable STRETTO_TEST_UNSET is not set", setting)));
  }
}

TEST_F(BadInput, ALearningRateOfZeroIsNoted) {
  const ShellResult result =
      workspace_.run("train", 1, "optimizer.lr=0 training.max_steps=1 evaluate.every=never");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err,
              HasSubstr("warning: the learning rate is 0: the run computes steps, but trains nothing"));
}

// ---- model and tokenizer

TEST_F(BadInput, LongerSamplesThanTheModelHasPositions) {
  expect_refusal(
      usage, "data.max_length=33",
      HasSubstr("data.max_length: 33 exceeds the 32 positions of the model; set it to 32 at most"));
}

TEST_F(BadInput, TokensBeyondTheModelsVocabulary) {
  workspace_.write("model/vocab.txt", workspace_.read("model/vocab.txt") + "one\nmore\n");
  expect_refusal(usage, "",
                 AllOf(HasSubstr("ids up to 34"), HasSubstr("vocab_size is 33"),
                       HasSubstr("set tokenizer.path to the tokenizer of model.path")));
}

TEST_F(BadInput, ModelFolderWithoutWeights) {
  expect_refusal(
      broken_input, "model.config=null model.path=" + path("model"),
      HasSubstr(path("model") + ": there is neither model.safetensors nor model.safetensors.index.json"));
}

TEST_F(BadInput, WeightsOfAnotherShape) {
  const std::string settings = train_model();
  auto config = nlohmann::json::parse(workspace_.read("trained/model/config.json"));
  config["intermediate_size"] = 40;
  workspace_.write("trained/model/config.json", config.dump());
  expect_refusal(broken_input, settings,
                 AllOf(HasSubstr("bert.encoder.layer.0.intermediate.dense."), HasSubstr("[48"),
                       HasSubstr("[40"), HasSubstr("config.json and the weights do not match")));
}

TEST_F(BadInput, TruncatedWeights) {
  const std::string settings = train_model();
  change_weights([](const std::string& bytes) { return bytes.substr(0, bytes.size() - 1000); });
  expect_refusal(
      broken_input, settings,
      AllOf(HasSubstr(path("trained/model/model.safetensors") + ": tensor "), HasSubstr("it is truncated")));
  workspace_.write("trained/model/model.safetensors", "abc");
  expect_refusal(broken_input, settings, HasSubstr("3 bytes is too short for a safetensors file"));
}

TEST_F(BadInput, ConfigThatIsNoJson) {
  workspace_.write("model/config.json", "{\"vocab_size\": 33,");
  expect_refusal(broken_input, "", HasSubstr(path("model/config.json")));
}

TEST_F(BadInput, MoreThanMemoryHolds) {
  std::string config = workspace_.read("model/config.json");
  const std::string layers = "\"num_hidden_layers\": 2";
  ASSERT_NE(config.find(layers), std::string::npos);
  config.replace(config.find(layers), layers.size(), "\"num_hidden_layers\": 2000000000");
  workspace_.write("model/config.json", config);
  expect_refusal(usage, "", AllOf(HasSubstr("2 ranks need at least "), HasSubstr("--oversubscribe")));
}

// ---- not refused

TEST_F(BadInput, ABatchLargerThanTheDataIsNoted) {
  const ShellResult result = workspace_.run("train", 2, "training.global_batch_size=100 training.epochs=1");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("warning: the global batch of 100 samples is larger than the 64 training samples"));
}

TEST_F(BadInput, SettingsNeedNoSet) {
  const ShellResult result =
      shell(workspace_.command("train", 1) + " training.max_steps=1 evaluate.every=never");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("step 1/1"), HasSubstr("16 samples per step = 16 per rank x 1 rank")));
}

TEST_F(BadInput, MoreRanksThanSamplesWorksWithAWarning) {
  workspace_.write("train.tsv", "sentence\tlabel\ngood\t1\nbad\t0\n");
  workspace_.write("dev.tsv", "sentence\tlabel\ngood\t1\n");
  const ShellResult result = workspace_.run("train", 3, "training.global_batch_size=2");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("warning: 2 samples for 3 ranks"));
  EXPECT_TRUE(workspace_.has("run/model/model.safetensors"));
}

}  // namespace
}  // namespace stretto
