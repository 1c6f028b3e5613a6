#include "stretto/programs/arguments/resume_command.h"

#include <gtest/gtest.h>

#include "stretto/base/strings.h"

namespace stretto::arguments {
namespace {

// The resume command of a run started by `line` on two ranks.
std::string command_after(const std::string& line, const std::string& resume = "auto") {
  std::vector<std::string> words;
  for (const std::string_view word : split(line, ' ')) words.emplace_back(word);
  RecipeArguments arguments;
  CLI::App app;
  add_recipe_arguments(*app.add_subcommand("train"), arguments);
  app.parse(std::vector<std::string>(words.rbegin(), words.rend() - 1));
  Recipe recipe;
  recipe.resume = resume;
  return resume_command(words, arguments, recipe, 2);
}

TEST(ResumeCommand, RepeatsGivenOptions) {
  EXPECT_EQ(
      command_after(
          "stretto train r.yaml -N 4 --no-pin --max-restarts 3 --grace 7.5 --hang-timeout 60 --strat ddp --set optimizer.lr=1e-5"),
      "stretto train r.yaml -N 4 --no-pin --max-restarts 3 --grace 7.5 --hang-timeout 60 --strat ddp --set optimizer.lr=1e-5");
}

TEST(ResumeCommand, NamesTheProgram) {
  EXPECT_EQ(command_after("build/train train r.yaml -N 1"), "build/train train r.yaml -N 1");
}

TEST(ResumeCommand, AddsTheNumberOfRanks) {
  EXPECT_EQ(command_after("stretto train r.yaml"), "stretto train r.yaml -N 2");
  EXPECT_EQ(command_after("stretto train r.yaml --hosts a:2,b:4"), "stretto train r.yaml --hosts a:2,b:4");
}

TEST(ResumeCommand, ResumesFromTheRunsCheckpoints) {
  EXPECT_EQ(command_after("stretto train r.yaml -N 1 --set resume=false", "false"),
            "stretto train r.yaml -N 1 --set resume=false --set resume=auto");
}

TEST(ResumeCommand, IsSafeInAShell) {
  EXPECT_EQ(command_after("stretto train my$HOME.yaml -N2 --set checkpoint.accept_changes=[a,b]"),
            "stretto train 'my$HOME.yaml' -N2 --set 'checkpoint.accept_changes=[a,b]'");
}

}  // namespace
}  // namespace stretto::arguments
