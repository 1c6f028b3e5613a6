#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/message_support.h"

// Invalid input ends a run before its first step, with a message that states where, what was found and what
// to do, and without a model or results that could be mistaken for valid ones.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Matcher;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr int usage = 2;         // exit codes: an invalid recipe,
constexpr int broken_input = 2;  // and invalid input, which a restart would not change

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

  // Writes a trained model folder to damage, at trained/model; returns the settings that start from it.
  std::string train_model() {
    workspace_.train("trained", 1, "training.max_steps=1 evaluate.every=never training.precision=fp32");
    return "model.config=null model.path=" + path("trained/model");
  }

  // Applies `change` to the trained weights.
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
                 has_all("--set data.train", path("absent.tsv") + " does not exist"));
  EXPECT_FALSE(workspace_.has("run")) << "refused before anything is made";
}

TEST_F(BadInput, EmptyFile) {
  workspace_.write("empty.tsv", "");
  expect_refusal(broken_input, "data.train=" + path("empty.tsv"),
                 has_all("data.train: " + path("empty.tsv") + ": ", "is empty"));
  workspace_.write("empty.tsv", "sentence\tlabel\n");
  expect_refusal(broken_input, "data.validation=" + path("empty.tsv"),
                 has_all("data.validation: " + path("empty.tsv") + ": ", "no rows"));
}

TEST_F(BadInput, OneClassOnly) {
  workspace_.write("one.tsv", "sentence\tlabel\ngood\t1\nfine\t1\n");
  expect_refusal(broken_input, "data.train=" + path("one.tsv"), has_all(path("one.tsv"), "two classes"));
}

TEST_F(BadInput, LabelsThatTheTrainingDataDoesNotHave) {
  workspace_.write("dev.tsv", "sentence\tlabel\ngood\t1\nbad\t2\n");
  expect_refusal(broken_input, "", has_all(path("dev.tsv") + ":3:", "\"2\"", "one of 0, 1"));
  workspace_.write("train.tsv", "sentence\tlabel\ngood\tpositive\nbad\tnegative\n");
  workspace_.write("dev.tsv", "sentence\tlabel\ngood\tpostive\n");
  expect_refusal(broken_input, "",
                 has_all(path("dev.tsv") + ":2:", "\"postive\"", "did you mean \"positive\"?"));
}

TEST_F(BadInput, MalformedRow) {
  workspace_.write("train.tsv", make_rows(9, 1) + "a row without its label\n" + make_rows(9, 2));
  expect_refusal(broken_input, "", has_all(path("train.tsv") + ":11: 1 column", "2 (sentence, label)"));
  // The error is reported once, and the run is not restarted.
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
  expect_refusal(usage, "", has_all("recipe.yaml:26:1: evaluation ", "did you mean \"evaluate\"?"));
}

TEST_F(BadInput, WrongType) {
  std::string recipe = workspace_.read("recipe.yaml");
  recipe.replace(recipe.find("epochs: 2"), 9, "epochs: two");
  workspace_.write("recipe.yaml", recipe);
  expect_refusal(usage, "", has_all("recipe.yaml:11:11: training.epochs:", "\"two\""));
}

TEST_F(BadInput, BatchSizesThatContradict) {
  expect_refusal(
      usage, "training.batch_size=4 training.grad_accumulation_steps=3",
      has_all("global_batch_size (16) = batch_size (4) x world_size (2) x grad_accumulation_steps (3)",
              "error: " + path("recipe.yaml") + ":12:22: training.global_batch_size:",
              "recipe.yaml:12:22) to 24,", "(--set training.batch_size=4) to 3,", "omit one"));
  EXPECT_FALSE(workspace_.has("run"));
}

TEST_F(BadInput, UnknownPrecision) {
  expect_refusal(usage, "training.precision=16-true",
                 has_all("training.precision: \"16-true\"", "choose fp16"));
}

TEST_F(BadInput, UnknownStrategy) {
  expect_refusal(usage, "training.strategy=fsdp2",
                 has_all("training.strategy: \"fsdp2\"", "not available", "ddp-bf16"));
  expect_refusal(usage, "training.strategy=hsdp training.dp_shard=3",
                 has_all("training.dp_shard:", "2 ranks", "3 ranks"));
}

TEST_F(BadInput, SettingsOfOtherStrategies) {
  expect_refusal(usage, "training.strategy=zero2 training.reshard_after_forward=false",
                 has_all("training.reshard_after_forward:", "fsdp and hsdp; ", "training.strategy=zero2)"));
  expect_refusal(usage, "training.wrap_min_parameters=1000",
                 has_all("training.wrap_min_parameters:", "zero2, fsdp and hsdp; "));
  expect_refusal(usage, "training.strategy=fsdp training.reshard_after_forward=2",
                 HasSubstr("training.reshard_after_forward"));
}

TEST_F(BadInput, FolderForOptimizerState) {
  expect_refusal(usage, "training.offload_optimizer=" + path("gone"),
                 HasSubstr("training.offload_optimizer: " + path("gone") + " does not exist"));
  expect_refusal(usage, "training.offload_optimizer=" + path("train.tsv"),
                 has_all("training.offload_optimizer: ", "train.tsv is a file"));
  expect_refusal(
      usage, "training.strategy=fsdp training.offload_parameters=" + path("gone"),
      has_all("training.offload_parameters: " + path("gone") + " does not exist", "room for the parameters"));
}

TEST_F(BadInput, MonitorThatIsNotMeasured) {
  expect_refusal(usage, "checkpoint.monitor=acuracy",
                 has_all("checkpoint.monitor: ", "\"acuracy\"", "did you mean \"accuracy\"?"));
}

TEST_F(BadInput, MonitorThatIsNotDefined) {
  workspace_.write("dev.tsv", "sentence\tlabel\ngood\t1\nfine\t1\n");
  expect_refusal(usage, "checkpoint.monitor=auroc",
                 has_all("checkpoint.monitor: auroc is not defined on " + path("dev.tsv") +
                         ": 0 of its 2 texts have the label 0"));
}

TEST_F(BadInput, OutputThatCannotBeCreated) {
  expect_refusal(
      usage, "output=/proc/run",
      has_all("cannot create the folder /proc/run: No such file or directory", "choose another output"));
}

// ---- files and folders

TEST_F(BadInput, MissingRecipe) {
  const auto run = [](const std::string& arguments) {
    return shell(std::string(STRETTO_PROGRAM) + " train " + arguments);
  };
  expect_refusal_of(run(path("none.yaml")), usage,
                    has_all("stretto: error: " + path("none.yaml") + ":", "no such file", "the recipe"));
  expect_refusal_of(run(path("model")), usage, has_all(path("model") + ":", "folder", "recipe"));
}

TEST_F(BadInput, OutputThatIsAFile) {
  expect_refusal(usage, "output=" + path("train.tsv"),
                 has_all("output: " + path("train.tsv") + " is a file", "folder"));
}

TEST_F(BadInput, OutputThatIsAModelFolder) {
  for (const char* verb : {"train", "test"}) {
    const ShellResult result =
        workspace_.run(verb, 1, "data.test=" + path("dev.tsv") + " output=" + path("model"));
    EXPECT_EQ(result.exit_code, usage);
    EXPECT_THAT(result.err, has_all("output: " + path("model") + " is a model folder", "config.json"));
  }
  EXPECT_FALSE(workspace_.has("model/.lock"));
}

TEST_F(BadInput, MissingTestData) {
  expect_refusal(usage, "data.test=" + path("absent.tsv"),
                 HasSubstr("data.test: " + path("absent.tsv") + " does not exist"));
}

TEST_F(BadInput, ModelNamesAreNotDownloaded) {
  expect_refusal(usage, "model.config=null model.path=bert-base-uncased",
                 has_all("model.path: bert-base-uncased", "`stretto pull bert-base-uncased`"));
}

TEST_F(BadInput, PathsThatTheSystemRefuses) {
  std::filesystem::create_symlink("loop", path("loop"));
  expect_refusal(usage, "data.train=" + path("loop"),
                 has_all("data.train: " + path("loop"), "Too many levels of symbolic links"));
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
  EXPECT_THAT(
      refusal("train r.yaml --stratgy ddp"),
      MatchesRegex("stretto: error: stretto train: --stratgy [^\n]*did you mean \"--strategy\"[^\n]*; "
                   "stretto train --help [^\n]*\n"));
  EXPECT_THAT(refusal("trian"), HasSubstr("did you mean \"train\"?"));
  EXPECT_THAT(refusal("help optimiser"), HasSubstr("did you mean \"optimizer\"?"));
}

TEST_F(BadInput, OutputOnAFullDisk) {
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
    EXPECT_THAT(result.err, has_all(fmt::format("data.{}:", setting), "STRETTO_TEST_UNSET is not set"));
  }
}

TEST_F(BadInput, ALearningRateOfZeroIsNoted) {
  const ShellResult result =
      workspace_.run("train", 1, "optimizer.lr=0 training.max_steps=1 evaluate.every=never");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("warning: the learning rate is 0"));
}

// ---- model and tokenizer

TEST_F(BadInput, LongerSamplesThanTheModelHasPositions) {
  expect_refusal(usage, "data.max_length=33", has_all("data.max_length: 33 ", "32 positions", "32 at most"));
}

TEST_F(BadInput, TokensBeyondTheModelsVocabulary) {
  workspace_.write("model/vocab.txt", workspace_.read("model/vocab.txt") + "one\nmore\n");
  expect_refusal(usage, "", has_all("ids up to 34", "vocab_size is 33", "tokenizer.path"));
}

TEST_F(BadInput, ModelFolderWithoutWeights) {
  expect_refusal(broken_input, "model.config=null model.path=" + path("model"),
                 has_all(path("model") + ":", "model.safetensors ", "model.safetensors.index.json"));
}

TEST_F(BadInput, WeightsOfAnotherShape) {
  const std::string settings = train_model();
  auto config = nlohmann::json::parse(workspace_.read("trained/model/config.json"));
  config["intermediate_size"] = 40;
  workspace_.write("trained/model/config.json", config.dump());
  expect_refusal(broken_input, settings,
                 has_all("bert.encoder.layer.0.intermediate.dense.", "[48", "[40", "config.json"));
}

TEST_F(BadInput, TruncatedWeights) {
  const std::string settings = train_model();
  change_weights([](const std::string& bytes) { return bytes.substr(0, bytes.size() - 1000); });
  expect_refusal(broken_input, settings,
                 has_all(path("trained/model/model.safetensors") + ": tensor ", "truncated"));
  workspace_.write("trained/model/model.safetensors", "abc");
  expect_refusal(broken_input, settings, has_all(path("trained/model/model.safetensors") + ":", "3 bytes"));
}

TEST_F(BadInput, ConfigThatIsNotJson) {
  workspace_.write("model/config.json", "{\"vocab_size\": 33,");
  expect_refusal(broken_input, "", HasSubstr(path("model/config.json")));
}

TEST_F(BadInput, MoreThanFitsInMemory) {
  auto config = nlohmann::json::parse(workspace_.read("model/config.json"));
  config["num_hidden_layers"] = 1000;
  config["intermediate_size"] = 1000000;
  workspace_.write("model/config.json", config.dump());
  expect_refusal(usage, "", has_all("2 ranks", "--oversubscribe"));
}

// ---- accepted with a warning

TEST_F(BadInput, ABatchLargerThanTheDataIsNoted) {
  const ShellResult result = workspace_.run("train", 2, "training.global_batch_size=100 training.epochs=1");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, has_all("warning: the global batch of 100 samples", "64 training samples"));
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
