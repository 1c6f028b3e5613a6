#include <algorithm>
#include <cmath>

#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/strings.h"

// Tests the files that a run writes, and `stretto test` on them.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* weights_file = "/model/model.safetensors";

nlohmann::json read_object(const Workspace& workspace, const std::string& name) {
  return nlohmann::json::parse(workspace.read(name));
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(RunFolder, ContainsAllFilesOfARun) {
  const Workspace workspace;
  workspace.train("run", 2);
  EXPECT_THAT(
      names_in(workspace.path("run")),
      ::testing::ElementsAre(".lock", "config.yaml", "dev_results.json", "logger_logs", "metrics.jsonl",
                             "model", "progress.json", "summary.json", "tensorboard"));
  EXPECT_THAT(
      names_in(workspace.path("run/model")),
      ::testing::ElementsAre("config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"));
  EXPECT_EQ(workspace.read("run/model/vocab.txt"), workspace.read("model/vocab.txt"));

  const nlohmann::json summary = read_object(workspace, "run/summary.json");
  EXPECT_EQ(summary["steps"], 8);
  EXPECT_EQ(summary["samples"], 128);
  EXPECT_EQ(summary["ranks"], 2);
  EXPECT_EQ(summary["best"], read_object(workspace, "run/dev_results.json"));
  EXPECT_THAT(workspace.read("run/logger_logs/training_0.log"),
              AllOf(HasSubstr("compute fp64 | master fp64"), HasSubstr("step 8/8"), HasSubstr("best")));
  EXPECT_THAT(workspace.read("run/logger_logs/training_1.log"), Not(IsEmpty()));
}

TEST(RunFolder, EveryRunDescribesItsData) {
  const Workspace workspace;
  const ShellResult result = workspace.run("train", 2, "training.max_steps=1 evaluate.every=never");
  EXPECT_THAT(
      result.err,
      AllOf(HasSubstr("train.tsv: 64 texts; text = sentence, label = label (named columns); "
                      "2 classes: 0 32 (50.0 %), 1 32 (50.0 %)\n"),
            ContainsRegex("lengths +[0-9]+ tokens \\(median\\), [0-9]+ \\(95 %\\), [0-9]+ \\(longest\\)")));
}

TEST(RunFolder, EachTrackerThatCannotWriteIsReportedOnce) {
  const Workspace workspace;
  const ShellResult result =
      shell(with_file_fault("enospc@1+:path=tensorboard") +
            workspace.command("train", 2, "training.max_steps=4 output=" + workspace.path("run")));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string warning = "training continues, but this file will be incomplete";
  EXPECT_THAT(result.err, HasSubstr(warning));
  EXPECT_EQ(result.err.find(warning), result.err.rfind(warning)) << result.err;
  EXPECT_EQ(workspace.losses("run").size(), 4u);
}

TEST(RunFolder, MetricsNameEveryStepAndEvaluation) {
  const Workspace workspace;
  workspace.train("run", 2, "track.log_every=3 training.seed=3");
  const auto records = workspace.metrics("run");
  std::vector<int> steps, evaluated;
  for (const nlohmann::json& record : records)
    (record.contains("loss") ? steps : evaluated).push_back(record["step"]);
  EXPECT_THAT(steps, ::testing::ElementsAre(3, 6, 8));
  EXPECT_THAT(evaluated, ::testing::ElementsAre(4, 8));
  for (const nlohmann::json& record : records) {
    if (!record.contains("loss")) {
      EXPECT_TRUE(record.contains("eval_accuracy") && record.contains("eval_loss")) << record;
      continue;
    }
    for (const char* name :
         {"epoch", "grad_norm", "lr", "samples_per_second", "tokens_per_second", "communication"}) {
      EXPECT_TRUE(record.contains(name)) << name << " in " << record;
    }
  }
}

TEST(RunFolder, ItsConfigRepeatsTheRun) {
  const Workspace workspace;
  workspace.train("run", 2, "training.precision=fp32 optimizer.weight_decay=0.05");
  const std::string config = workspace.read("run/config.yaml");
  EXPECT_THAT(config, HasSubstr("weight_decay: 0.05"));
  workspace.write("recipe.yaml", config);
  workspace.train("again", 2);
  EXPECT_TRUE(workspace.read(std::string("run") + weights_file) ==
              workspace.read(std::string("again") + weights_file));
  EXPECT_EQ(workspace.losses("run"), workspace.losses("again"));
}

// The learning rate is too high for later epochs: epoch 1 is the warm-up and improves the model, the
// following epochs ruin it.
TEST(RunFolder, TheBestModelIsKeptWhenLaterEpochsAreWorse) {
  const Workspace workspace;
  workspace.write("train.tsv", make_rows(160, 1));
  const std::string settings =
      "data.test=" + workspace.path("dev.tsv") + " training.precision=fp32 evaluate.batch_size=5 ";
  workspace.train(
      "run", 2,
      settings +
          "training.epochs=4 optimizer.type=SGD optimizer.lr=4 checkpoint.monitor=loss scheduler.warmup_ratio=null scheduler.num_warmup_steps=40");
  double best = INFINITY, last = 0;
  for (const auto& record : workspace.metrics("run")) {
    if (!record.contains("eval_loss")) continue;
    last = record["eval_loss"];
    best = std::min(best, last);
  }
  ASSERT_LT(best, last) << "the recipe does not get worse, so nothing is tested";
  const nlohmann::json dev = read_object(workspace, "run/dev_results.json");
  EXPECT_EQ(dev["loss"], best);

  ASSERT_EQ(workspace.run("test", 2, settings).exit_code, 0);
  const nlohmann::json test = read_object(workspace, "run/test_results.json");
  EXPECT_EQ(test["accuracy"], dev["accuracy"]);
  EXPECT_NEAR(test["loss"], best, 1e-5 * best);
}

TEST(RunFolder, TestGivesEachRowOnceAtAnyNumberOfRanks) {
  const Workspace workspace;
  const std::string settings = "data.test=" + workspace.path("test.tsv");
  workspace.write("test.tsv", make_rows(31, 5));
  workspace.train("run", 1, settings + " training.epochs=1");
  std::string predictions;
  nlohmann::json results;
  for (const int ranks : {1, 2, 3}) {
    const ShellResult result = workspace.run("test", ranks, settings);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto records = read_json_lines(workspace.read("run/predictions.jsonl"));
    ASSERT_EQ(records.size(), 31u);
    for (size_t i = 0; i < records.size(); ++i) EXPECT_EQ(records[i]["line"], i + 2);  // line 1 is the header
    if (ranks == 1) {
      predictions = workspace.read("run/predictions.jsonl");
      results = read_object(workspace, "run/test_results.json");
    }
    for (const auto& [name, value] : results.items()) {
      const nlohmann::json found = read_object(workspace, "run/test_results.json")[name];
      if (value.is_structured()) {
        EXPECT_EQ(found, value) << name;
      } else {
        EXPECT_NEAR(found, value, 1e-12) << name;
      }
    }
    const auto first = read_json_lines(predictions);
    for (size_t i = 0; i < records.size(); ++i) {
      EXPECT_EQ(records[i]["label"], first[i]["label"]);
      EXPECT_NEAR(records[i]["score"], first[i]["score"], 1e-12);
    }
  }
}

TEST(RunFolder, ATestFileWithoutLabelsGivesPredictionsOnly) {
  const Workspace workspace;
  workspace.write("test.tsv", "sentence\nthe film is good\nthe end was bad\n");
  const std::string settings = "data.test=" + workspace.path("test.tsv");
  workspace.train("run", 1, settings + " training.epochs=1");
  const ShellResult result = workspace.run("test", 2, settings);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("has no labels: predictions only"));
  EXPECT_FALSE(workspace.has("run/test_results.json"));
  const auto records = read_json_lines(workspace.read("run/predictions.jsonl"));
  ASSERT_EQ(records.size(), 2u);
  EXPECT_FALSE(records[0].contains("gold"));
}

TEST(RunFolder, TestWithoutAModelAdvisesToTrain) {
  const Workspace workspace;
  const ShellResult result = workspace.run("test", 1, "data.test=" + workspace.path("dev.tsv"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("there is no trained model in " + workspace.path("run/model")),
                                HasSubstr("run `stretto train` with this recipe first")));
}

// ---- several runs in one folder

// The files of a run folder, except logs, to which every run appends, and the record of the last failure.
std::map<std::string, std::string> contents_of(const Workspace& workspace, const std::string& run) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(workspace.path(run))) {
    const std::string name = std::filesystem::relative(entry.path(), workspace.path());
    if (entry.is_regular_file() && name.find("logger_logs") == std::string::npos &&
        entry.path().filename() != "flight_record.json")
      contents[name] = workspace.read(name);
  }
  return contents;
}

// Returns every file of the folder, including logs and records.
std::map<std::string, std::string> all_of(const Workspace& workspace, const std::string& run) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(workspace.path(run))) {
    const std::string name = std::filesystem::relative(entry.path(), workspace.path());
    if (entry.is_regular_file()) contents[name] = workspace.read(name);
  }
  return contents;
}

TEST(RunFolder, ARefusalLeavesEveryByteOfAnEarlierRun) {
  const Workspace workspace;
  workspace.train("run", 1, "training.epochs=1");
  workspace.write("run/flight_record.json", "of an earlier failure");
  const auto before = all_of(workspace, "run");
  ASSERT_TRUE(before.contains("run/logger_logs/training_0.log"));
  workspace.write("broken.tsv", "sentence\tlabel\ngood\t1\nbad\n");
  const std::string alone = torchrun_variables(0, 1);
  for (const std::string& settings :
       std::vector<std::string>{"resume=true optimizer.lr=0.5",                // no checkpoint to resume from
                                "data.train=" + workspace.path("broken.tsv"),  // found by the ranks
                                "data.max_length=33",                          // by the task
                                "checkpoint.monitor=acuracy", "optimizer.type=AdamX"}) {
    EXPECT_NE(workspace.run("train", 2, settings).exit_code, 0) << settings;
    EXPECT_TRUE(all_of(workspace, "run") == before) << "2 ranks, " << settings;
    EXPECT_NE(shell(alone + workspace.command("train", 1, settings)).exit_code, 0) << settings;
    EXPECT_TRUE(all_of(workspace, "run") == before) << "without a launcher, " << settings;
  }
  // Neither does a failure that a restart may resolve: a full disk when the token cache is written.
  const std::string failing = with_file_fault("enospc@1:path=cache2");
  for (const std::string& start : {std::string(), alone}) {
    const ShellResult result =
        shell(failing + start + workspace.command("train", 2, "data.cache=" + workspace.path("cache2")));
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_TRUE(all_of(workspace, "run") == before) << start;
    EXPECT_THAT(result.err,
                AllOf(HasSubstr("cache2"), Not(HasSubstr("its log is")), Not(HasSubstr("stretto inspect"))));
  }
  // A run that takes steps writes its whole log, including the lines before them.
  workspace.train("run", 2, "training.epochs=1");
  const std::string log = workspace.read("run/logger_logs/training_0.log");
  EXPECT_TRUE(log.starts_with(before.at("run/logger_logs/training_0.log")));
  EXPECT_THAT(log.substr(before.at("run/logger_logs/training_0.log").size()),
              AllOf(HasSubstr("======== start of rank 0"), HasSubstr("compute fp64"), HasSubstr("step 4/4")));
  EXPECT_FALSE(workspace.has("run/flight_record.json"));
  EXPECT_EQ(workspace.read("run/previous-1/flight_record.json"), "of an earlier failure");
}

TEST(RunFolder, ARunThatIsRefusedChangesNothing) {
  const Workspace workspace;
  workspace.train("run", 2, "training.epochs=1");
  const auto before = contents_of(workspace, "run");
  ASSERT_FALSE(before.empty());
  workspace.write("broken.tsv", "sentence\tlabel\ngood\t1\nbad\n");
  for (const std::string& settings : std::vector<std::string>{
           "resume=true optimizer.lr=0.5",                                 // no checkpoint to resume from
           "optimizer.lr=0.5 data.train=" + workspace.path("broken.tsv"),  // found by the ranks
           "optimizer.lr=0.5 checkpoint.monitor=acuracy", "training.max_steps=0"}) {
    EXPECT_NE(workspace.run("train", 2, settings).exit_code, 0) << settings;
    EXPECT_TRUE(contents_of(workspace, "run") == before) << settings;
  }
}

TEST(RunFolder, NewRunsMoveEarlierOnesAside) {
  const Workspace workspace;
  workspace.train("run", 2, "training.epochs=1");
  auto before = contents_of(workspace, "run");
  const ShellResult second =
      workspace.run("train", 2, "training.epochs=1 evaluate.every=never optimizer.lr=0.5");
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("the earlier run in " + workspace.path("run") + " was moved to " +
                                    workspace.path("run/previous-1")));
  const auto expect_first_kept = [&] {
    for (const auto& [name, content] : before) {
      if (name == "run/.lock") continue;
      EXPECT_TRUE(workspace.read("run/previous-1" + name.substr(3)) == content) << name;
    }
  };
  expect_first_kept();
  EXPECT_FALSE(workspace.has("run/dev_results.json")) << "the new run evaluates nothing";
  EXPECT_THAT(workspace.read("run/config.yaml"), HasSubstr("lr: 0.5\n"));

  // A run that fails has no model, and is not kept.
  EXPECT_EQ(workspace.run("train", 2, "optimizer.lr=1e30 scheduler.warmup_ratio=0 training.precision=fp32")
                .exit_code,
            1);
  EXPECT_FALSE(workspace.has("run/model"));
  workspace.train("run", 2, "training.epochs=1 optimizer.lr=0.25");
  EXPECT_THAT(workspace.read("run/previous-2/config.yaml"), HasSubstr("lr: 0.5\n"));
  EXPECT_FALSE(workspace.has("run/previous-3"));
  expect_first_kept();
}

TEST(RunFolder, TestOfUnlabelledDataLeavesNoOldResults) {
  const Workspace workspace;
  workspace.write("labelled.tsv", make_rows(5, 5));
  workspace.write("unlabelled.tsv", "sentence\ngood film\nbad film\n");
  workspace.train("run", 1, "training.epochs=1");
  ASSERT_EQ(workspace.run("test", 1, "data.test=" + workspace.path("labelled.tsv")).exit_code, 0);
  ASSERT_TRUE(workspace.has("run/test_results.json"));
  const ShellResult result = workspace.run("test", 1, "data.test=" + workspace.path("unlabelled.tsv"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(workspace.has("run/test_results.json"));
  EXPECT_EQ(read_json_lines(workspace.read("run/predictions.jsonl")).size(), 2u);
}

TEST(RunFolder, TestOfAMissingFolderCreatesNone) {
  const Workspace workspace;
  const ShellResult result =
      workspace.run("test", 1, "data.test=" + workspace.path("dev.tsv") + " output=" + workspace.path("rnu"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("there is no trained model in " + workspace.path("rnu/model")),
                                HasSubstr("run `stretto train`")));
  EXPECT_FALSE(workspace.has("rnu"));
}

}  // namespace
}  // namespace stretto
