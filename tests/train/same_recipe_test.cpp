#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

// All ranks must train with the same recipe on the same data; otherwise the run is refused.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int config_error = 2;

// ---- under stretto's launcher, which resolves the recipe once

TEST(SameRecipe, RanksReadNothingThatChangesAfterTheLaunch) {
  const Workspace workspace;
  const std::string recipe = workspace.read("recipe.yaml");
  BackgroundShell run(workspace.command("train", 2, "training.max_steps=4 evaluate.every=never"));
  ASSERT_TRUE(eventually([&] { return !children_of(run.pid(), "RANK=1").empty(); }));
  workspace.write("recipe.yaml", "this is no recipe any more");  // ranks still map their libraries
  const ShellResult result = run.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  workspace.write("recipe.yaml", recipe);
  workspace.train("undisturbed", 2, "training.max_steps=4 evaluate.every=never");
  EXPECT_EQ(workspace.losses("run"), workspace.losses("undisturbed"));
}

TEST(SameRecipe, VariablesAreExpandedOnce) {
  const Workspace workspace;
  workspace.train("run", 2, "training.max_steps=2 evaluate.every=never 'optimizer.lr=${RANK:-5}e-3'");
  EXPECT_THAT(workspace.read("run/config.yaml"), HasSubstr("lr: 0.005\n"));
}

TEST(SameRecipe, LaterErrorsStillNameTheLineOfTheRecipe) {
  const Workspace workspace;
  workspace.write("recipe.yaml", workspace.read("recipe.yaml") + "checkpoint: {monitor: acuracy}\n");
  const ShellResult result = workspace.run("train", 2);
  EXPECT_EQ(result.exit_code, config_error);
  EXPECT_THAT(result.err, HasSubstr("recipe.yaml:26:23: checkpoint.monitor"));
}

// ---- under another launcher, where each rank reads the recipe

// Starts both ranks of a run that is refused, each with its own settings.
std::vector<ShellResult> run_two(const Workspace& workspace, const std::string& first,
                                 const std::string& second) {
  const int port = free_port();
  const std::string settings = "training.max_steps=2 evaluate.every=never ";
  BackgroundShell zero(torchrun_variables(0, 2, port) + workspace.command("train", 1, settings + first));
  BackgroundShell one(torchrun_variables(1, 2, port) + workspace.command("train", 1, settings + second));
  return {zero.wait(), one.wait()};
}

TEST(SameRecipe, AnotherSettingIsNamedWithItsKeyAndRank) {
  const Workspace workspace;
  const std::string setting = "'optimizer.lr=${RANK}e-3'";
  for (const ShellResult& result : run_two(workspace, setting, setting)) {
    EXPECT_EQ(result.exit_code, config_error);
    EXPECT_THAT(result.err, AllOf(HasSubstr("the inputs of the ranks differ"),
                                  HasSubstr("optimizer.lr: 0.0 on rank 0 (--set optimizer.lr=${RANK}e-3), "
                                            "0.001 on rank 1")));
  }
  EXPECT_FALSE(workspace.has("run/config.yaml"));
}

TEST(SameRecipe, OtherDataIsNamedWithItsFileAndRank) {
  const Workspace workspace;
  std::string rows = workspace.read("train.tsv");
  rows[rows.size() - 2] ^= 1;  // the last row's label
  workspace.write("other.tsv", rows);
  for (const ShellResult& result : run_two(workspace, "data.train=" + workspace.path("train.tsv"),
                                           "data.train=" + workspace.path("other.tsv"))) {
    EXPECT_EQ(result.exit_code, config_error);
    EXPECT_THAT(result.err, AllOf(HasSubstr("data.train: contents "),
                                  HasSubstr("on rank 0 (" + workspace.path("train.tsv")),
                                  HasSubstr("on rank 1 (" + workspace.path("other.tsv"))));
  }
}

TEST(SameRecipe, AnotherModelAndVocabularyAreNamed) {
  const Workspace workspace;
  auto config = nlohmann::json::parse(workspace.read("model/config.json"));
  config["layer_norm_eps"] = 1e-6;
  std::filesystem::create_directory(workspace.path("other"));
  workspace.write("other/config.json", config.dump());
  workspace.write("other/vocab.txt", workspace.read("model/vocab.txt") + "word\n");
  for (const ShellResult& result : run_two(workspace, "tokenizer.path=" + workspace.path("model"),
                                           "tokenizer.path=" + workspace.path("other") +
                                               " model.config=" + workspace.path("other/config.json"))) {
    EXPECT_EQ(result.exit_code, config_error);
    EXPECT_THAT(result.err, AllOf(HasSubstr("model config.layer_norm_eps: 1e-12 on rank 0, 1e-06 on rank 1"),
                                  HasSubstr("tokenizer: contents ")));
  }
}

}  // namespace
}  // namespace stretto
