#include <cmath>
#include <map>
#include <set>

#include "tests/support/shell.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/strings.h"
#include "stretto/base/temp_folder.h"

namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class ModuleProgram : public ::testing::Test {
 protected:
  ShellResult train(const std::string& run, int ranks, const std::string& settings = "") const {
    return shell(fmt::format(
        "{} launch -N {} --no-pin {} {} output={} training.precision=fp64 training.epochs=2 {}",
        STRETTO_PROGRAM, ranks, MODULE_WAVES, WAVES_RECIPE, (folder_.path() / run).string(), settings));
  }
  // The example with two optimizers.
  ShellResult train_gan(const std::string& run, int ranks, const std::string& settings = "") const {
    return shell(fmt::format(
        "{} launch -N {} --no-pin {} {} output={} training.precision=fp64 training.epochs=4 {}",
        STRETTO_PROGRAM, ranks, MODULE_GAN, GAN_RECIPE, (folder_.path() / run).string(), settings));
  }
  std::vector<nlohmann::json> records(const std::string& run) const {
    std::vector<nlohmann::json> records;
    const std::string text = read_file(folder_.path() / run / "metrics.jsonl");
    for (const auto line : split(text, '\n')) {
      if (!line.empty()) records.push_back(nlohmann::json::parse(line));
    }
    return records;
  }
  TempFolder folder_;
};

// The example whose layers are divided among ranks.
TEST_F(ModuleProgram, DividedLayersTakeTheStepsOfWholeOnes) {
  const auto train_divided = [&](const std::string& run, int ranks, const std::string& settings) {
    const ShellResult result = shell(
        fmt::format("{} launch -N {} --no-pin {} {} output={} training.precision=fp64 {}", STRETTO_PROGRAM,
                    ranks, MODULE_DIVIDED, DIVIDED_RECIPE, (folder_.path() / run).string(), settings));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return records(run);
  };
  const auto whole = train_divided("whole", 1, "");
  EXPECT_GT(whole.back().at("eval_accuracy").get<double>(), 0.9);
  for (const auto& [ranks, settings] : {std::pair(2, "training.mesh.tp=2"),
                                        {4, "training.mesh.tp=2"},
                                        {4, "training.mesh.tp=4 training.mesh.sequence_parallel=true"}}) {
    const auto divided = train_divided("divided", ranks, fmt::format("resume=false {}", settings));
    ASSERT_EQ(divided.size(), whole.size());
    for (size_t i = 0; i < whole.size(); ++i) {
      for (const char* name : {"loss", "grad_norm", "active", "eval_accuracy"}) {
        if (!whole[i].contains(name)) continue;
        EXPECT_NEAR(divided[i].at(name).get<double>(), whole[i][name].get<double>(), 1e-9)
            << name << " " << i;
      }
    }
  }
  const ShellResult refused = train("refused", 2, "training.mesh.tp=2");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, has_all("training.mesh.tp: ", "no parameter of the module is divided"));
}

TEST_F(ModuleProgram, OneAndTwoRanksTakeTheSameStepsAndResumeBitForBit) {
  for (const int ranks : {1, 2}) {
    const ShellResult result = train(std::to_string(ranks), ranks);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("f1_macro 0."));
  }
  const auto one = records("1"), two = records("2");
  ASSERT_EQ(one.size(), 8u) << "60 steps, a record every 10, and two evaluations";
  ASSERT_EQ(two.size(), one.size());
  for (size_t i = 0; i < one.size(); ++i) {
    for (const char* name :
         {"step", "loss", "accuracy", "grad_norm", "lr", "eval_accuracy", "eval_f1_macro"}) {
      ASSERT_EQ(one[i].contains(name), two[i].contains(name)) << name;
      if (one[i].contains(name)) {
        EXPECT_NEAR(one[i][name].get<double>(), two[i][name].get<double>(), 1e-9) << name;
      }
    }
  }
  EXPECT_GT(one.back()["eval_accuracy"], 0.4) << "guessing gives 0.25";

  const auto checkpoint = folder_.path() / "2/checkpoints/step-00000030";
  const ShellResult resumed = train("resumed", 2, "resume=" + checkpoint.string());
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_TRUE(read_file(folder_.path() / "resumed/model/model.safetensors") ==
              read_file(folder_.path() / "2/model/model.safetensors"));
}

TEST_F(ModuleProgram, AGanTrainsTestsAndPredictsOnOneAndTwoRanks) {
  for (const int ranks : {1, 2}) {
    const ShellResult result = train_gan(std::to_string(ranks), ranks);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, AllOf(HasSubstr("optimizers generator: AdamW of generator.*"),
                                  ContainsRegex("test +distance [0-9.]+; the first point is")));
  }
  const auto one = records("1"), two = records("2");
  ASSERT_EQ(two.size(), one.size());
  size_t of_epochs = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    of_epochs += one[i].contains("generator_loss");
    for (const char* name : {"loss", "generator_loss", "eval_distance", "eval_discriminator_accuracy"}) {
      ASSERT_EQ(one[i].contains(name), two[i].contains(name)) << name;
      if (one[i].contains(name)) {
        EXPECT_NEAR(one[i][name].get<double>(), two[i][name].get<double>(), 1e-9) << name;
      }
    }
  }
  EXPECT_EQ(of_epochs, 4U);
  const auto results = [&](const char* run) {
    return nlohmann::json::parse(read_file(folder_.path() / run / "test_results.json"))
        .get<std::map<std::string, double>>();
  };
  const auto by_one = results("1"), by_two = results("2");
  ASSERT_EQ(by_one.size(), by_two.size());
  for (const auto& [name, value] : by_one) EXPECT_NEAR(value, by_two.at(name), 1e-9) << name;
}

// accmt's alaunch: a further process of the launched program evaluates.
TEST_F(ModuleProgram, ALaunchedProgramIsEvaluatedWhileItTrains) {
  ASSERT_EQ(train("ranks", 2).exit_code, 0);
  const ShellResult result = train("async", 2, "evaluate.async=true");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto evaluations = [&](const char* run) {
    std::map<int64_t, double> found;
    for (const auto& record : records(run))
      if (record.contains("eval_accuracy")) found[record["step"]] = record["eval_accuracy"];
    return found;
  };
  const auto by_ranks = evaluations("ranks"), beside = evaluations("async");
  ASSERT_EQ(by_ranks.size(), 2U);
  ASSERT_EQ(beside.size(), by_ranks.size());
  for (const auto& [step, accuracy] : by_ranks) EXPECT_NEAR(beside.at(step), accuracy, 1e-9) << step;
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "async/logger_logs/evaluation.log"));
}

// Patience stops the run after evaluations 2 to 4, none of which is better than the first.
TEST_F(ModuleProgram, EarlyStoppingAppliesWhenTheRunIsRestarted) {
  const std::string settings = "optimizer.lr=0 training.epochs=6";
  for (int start = 1; start <= 2; ++start) {
    const ShellResult result = train("run", 1, settings);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("for 3 evaluations"));
    EXPECT_EQ(records("run").back().at("step"), 4 * 30) << "start " << start;
  }
}

TEST_F(ModuleProgram, TheLauncherSetsTheStrategy) {
  const auto launch = [&](const std::string& strategy, const std::string& settings) {
    return shell(fmt::format("{} launch -N 2 --no-pin --strat={} {} {} output={} training.max_steps=2 {}",
                             STRETTO_PROGRAM, strategy, MODULE_WAVES, WAVES_RECIPE,
                             (folder_.path() / strategy).string(), settings));
  };
  const ShellResult zero2 = launch("deepspeed-2-fp64", "");
  ASSERT_EQ(zero2.exit_code, 0) << zero2.err;
  EXPECT_THAT(read_file(folder_.path() / "deepspeed-2-fp64/config.yaml"),
              AllOf(HasSubstr("strategy: zero2"), HasSubstr("precision: fp64")));
  EXPECT_THAT(zero2.err, HasSubstr("hold one copy of the parameters"));
  EXPECT_EQ(launch("fsdp", "training.strategy=zero3").exit_code, 0);

  const ShellResult contradiction = launch("zero1", "training.strategy=ddp");
  EXPECT_EQ(contradiction.exit_code, 2);
  EXPECT_THAT(contradiction.err, AllOf(HasSubstr("training.strategy"),
                                       HasSubstr("\"ddp\" contradicts the launcher's --strategy zero1")));
  EXPECT_THAT(launch("zero2-fp8", "").err, HasSubstr("fp8 requires GPUs"));
}

TEST_F(ModuleProgram, SettingsAreCheckedLikeARecipes) {
  const ShellResult result = train("run", 1, "optimizer.lrr=1");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("did you mean \"lr\""));
}

TEST_F(ModuleProgram, OwnSettingsAreReadCheckedAndWrittenLikeBundledOnes) {
  ASSERT_EQ(train("run", 2, "model.channels=8 --set patience=5 training.epochs=1").exit_code, 0);
  EXPECT_THAT(read_file(folder_.path() / "run/config.yaml"),
              AllOf(HasSubstr("model:\n  channels: 8\n  kernel_size: 7\n"), HasSubstr("patience: 5\n")));

  EXPECT_THAT(train("run", 2, "model.channels=16 --set patience=5 training.epochs=1").err,
              HasSubstr("model.channels: 8 in the checkpoint, now 16"))
      << "the checkpoint is of another network";
  for (const auto& [setting, message] :
       {std::pair("model.channels=0", "model.channels: 0 is out of range"),
        {"model.chanels=8", "model.chanels is not a setting; did you mean \"channels\"?"},
        {"model.path=x", "model.path is not a setting"}}) {
    const ShellResult result = train("other", 1, setting);
    EXPECT_EQ(result.exit_code, 2) << setting;
    EXPECT_THAT(result.err, HasSubstr(message));
  }
  const ShellResult help = shell(fmt::format("{} --help-all", MODULE_WAVES));
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out,
              AllOf(HasSubstr("  model.channels\n"), ContainsRegex("from 1 to 4096;[ \n]+default 16"),
                    HasSubstr("  optimizer.lr\n"), Not(HasSubstr("  model.path\n"))));
}

// module_probe writes lines "step mask".
TEST_F(ModuleProgram, TorchsDropoutDiffersByRankAndResumesExactly) {
  const auto run = [&](const std::string& name, const std::string& resume) {
    const ShellResult result = shell(
        fmt::format("{} launch -N 2 --no-pin -- {} dropout {} {} {}", STRETTO_PROGRAM, MODULE_PROBE,
                    (folder_.path() / name).string(), (folder_.path() / (name + ".masks")).string(), resume));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("torch::nn::Dropout uses a separate generator per rank"));
  };
  const auto masks = [&](const std::string& name, int rank) {
    return read_file(folder_.path() / fmt::format("{}.masks.{}", name, rank));
  };
  run("whole", "");
  run("resumed", (folder_.path() / "whole/checkpoints/step-00000004").string());
  std::set<std::string> different;
  for (const int rank : {0, 1}) {
    const std::string text = masks("whole", rank);
    for (const auto line : split(trim(text), '\n')) different.emplace(line.substr(line.find(' ')));
    EXPECT_EQ(text.substr(text.find("5 ")), masks("resumed", rank)) << "rank " << rank;
  }
  EXPECT_EQ(different.size(), 2 * 8u) << "masks of two ranks and eight steps";
}

TEST_F(ModuleProgram, RanksOfALayerDrawTheSameNumbersFromTorch) {
  const ShellResult result = shell(fmt::format("{} launch -N 4 --no-pin {} numbers {}", STRETTO_PROGRAM,
                                               MODULE_PROBE, (folder_.path() / "run").string()));
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(ModuleProgram, ACallbackThatThrowsOnOneRankEndsAll) {
  const ShellResult result = shell(fmt::format("{} launch -N 2 --no-pin {} callback {}", STRETTO_PROGRAM,
                                               MODULE_PROBE, (folder_.path() / "run").string()));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              AllOf(has_all("callback faulty", "at step_end, after step 3: ", "the disk is on fire"),
                    HasSubstr("error: rank 1 "), Not(HasSubstr("killed by the test"))));
}

}  // namespace
}  // namespace stretto
