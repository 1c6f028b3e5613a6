#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/message_support.h"

namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Trials of 8 steps, which are evaluated after every second one.
class Search : public ::testing::Test {
 protected:
  ShellResult search(const std::string& arguments) const {
    return shell(fmt::format(
        "cd {} && {} --output search {}", workspace_.path(),
        workspace_.command("search", 1, "training.max_steps=8 evaluate.every=2 optimizer.type=SGD"),
        arguments));
  }
  // The steps of a trial's records of training.
  std::vector<int64_t> steps_of(const std::string& trial) const {
    std::vector<int64_t> steps;
    for (const auto& record : workspace_.metrics("search/" + trial))
      if (record.contains("loss")) steps.push_back(record.at("step"));
    return steps;
  }
  nlohmann::json results() const { return read_json(workspace_.path("search/search.json")).at("trials"); }

  Workspace workspace_;
};

TEST_F(Search, HalvesTheTrialsAndContinuesWhenItIsRepeated) {
  const std::string arguments = "--trials 4 --param optimizer.lr=log:1e-4:10 --halve-after 2";
  const ShellResult first = search(arguments);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, AllOf(HasSubstr("optimizer.lr"), HasSubstr("best model: search/trial-0")));
  std::multiset<std::string> states;
  for (const auto& trial : results()) states.insert(trial.at("state"));
  EXPECT_EQ(states, (std::multiset<std::string>{"finished", "stopped after 2 steps", "stopped after 2 steps",
                                                "stopped after 4 steps"}));
  const nlohmann::json best = results().at(0);
  EXPECT_TRUE(workspace_.has("search/" + best.at("trial").get<std::string>() + "/model/model.safetensors"));
  const std::string page = workspace_.read("search/report.html");
  EXPECT_THAT(page, AllOf(HasSubstr("<h2>Search</h2>"), HasSubstr("accuracy over optimizer.lr"),
                          HasSubstr("log10 of optimizer.lr"), HasSubstr("trial-04")));

  // Repeated, it trains nothing. After a crash, only what is missing.
  const ShellResult again = search(arguments);
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_EQ(again.out, first.out);
  EXPECT_THAT(again.err, Not(HasSubstr("search     trial-")));
  const auto steps = steps_of("trial-03");
  std::filesystem::remove_all(workspace_.path("search/trial-03"));
  const ShellResult continued = search(arguments);
  EXPECT_THAT(continued.err,
              AllOf(HasSubstr("search     trial-03 of 4"), Not(HasSubstr("search     trial-01"))));
  EXPECT_EQ(continued.out, first.out);
  EXPECT_EQ(steps_of("trial-03"), steps);

  EXPECT_THAT(search("--trials 5 --param optimizer.lr=log:1e-4:10 --halve-after 2").err,
              has_all("search with other arguments", "--trials was 4, now 5;", "repeat"));
  EXPECT_THAT(search("--trials 4 --param optimizer.lr=log:1e-4:10").err,
              HasSubstr("--halve-after was 2, now none; repeat"));
  EXPECT_THAT(search("--trials 4 --param optimizer.lr=log:1e-4:1 --halve-after 2").err,
              HasSubstr("--param was optimizer.lr=log:1e-4:10, now optimizer.lr=log:1e-4:1; repeat"));
}

TEST_F(Search, ATrialThatFailsIsLeftOut) {
  const ShellResult result =
      search("--trials 2 --param optimizer.momentum=choice:0,0.5 optimizer.lr=1e30 training.max_grad_norm=0");
  EXPECT_THAT(result.err, HasSubstr("trial-01 has failed with exit code"));
  EXPECT_THAT(result.err, HasSubstr("all trials have failed"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(results().at(0).at("state"), "failed");
}

TEST_F(Search, MistakesAreNamedBeforeATrialBegins) {
  const auto refuses = [&](const std::string& arguments, const auto&... named) {
    const ShellResult result = search(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_THAT(result.err, has_all(named...)) << arguments;
    EXPECT_FALSE(workspace_.has("search")) << arguments;
  };
  refuses("--param optimizer.lr=log:1e-4:10", "--trials is required");
  refuses("--trials 2", "--param is required");
  refuses("--trials 2 --param optimizer.lr=1e-4", "\"1e-4\" is not a distribution");
  refuses("--trials 2 --param optimizer.lrr=log:1e-4:10", "did you mean \"lr\"?");
  refuses("--trials 2 --param optimizer.lr=log:1:2 evaluate.every=never", "a search compares trials by");
  refuses("--trials 2 --param optimizer.lr=log:1:2 --nnodes 2", "trials run on one host");
  const std::string rate = "--trials 2 --param optimizer.lr=log:1:2 ";
  refuses(rate + "--param optimizer.lr=log:1:2", "--param optimizer.lr=log:1:2: optimizer.lr is given twice");
  refuses(rate + "--set optimizer.lr=1e-3", "optimizer.lr ", "for all trials", "--set optimizer.lr=1e-3");
  refuses(rate + "--search-seed -1", "--search-seed: ");
  refuses(rate + "--halve-after 1", "--halve-after 1: ", "first evaluation follows step 2", "evaluate.every");
  refuses(rate + "--halve-after 1 evaluate.every=1ep",
          "--halve-after 1: evaluate.first_by: ", "first evaluation follows step ");
  refuses(rate + "--halve-after 1 evaluate.every=10m", "--halve-after", "compared after equal steps");
  refuses(rate + "--set training.fast_dev_run=1", "training.fast_dev_run: a search compares whole runs");
  refuses("--trials 2 --param output=choice:a,b", "a search sets output itself");
  refuses(rate + "--set output=here", "--set output=here: ", "a search sets output itself");
  refuses(rate + "--set checkpoint.monitor=f2", "checkpoint.monitor: \"f2\" is not a metric");
  refuses("--trials 0 --param optimizer.lr=log:1:2", "\"0\" is not a whole number from 1 to 10000");
  refuses("--trials 2 --param checkpoint.monitor=choice:loss,accuracy", "trials are compared by one metric");
  refuses("--trials 9 --param optimizer.momentum=choice:0,x",
          "--param optimizer.momentum=choice:0,x: in trial-0");
  refuses("--trials 9 --param training.global_batch_size=choice:8,0",
          "--param training.global_batch_size=choice:8,0: in trial-0");
}

TEST_F(Search, AFolderOfSomethingElseIsNotUsed) {
  workspace_.train("run", 1, "training.max_steps=1");
  for (const auto& [folder, what] : {std::pair("run", "it holds a run"),
                                     {"run/model", "it is a model folder"},
                                     {"recipe.yaml", "it is a file"}}) {
    const ShellResult result =
        shell(fmt::format("cd {} && {} --trials 1 --param optimizer.lr=log:1:2 --output {}",
                          workspace_.path(), workspace_.command("search", 1, ""), folder));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr(fmt::format("--output {}: {}", folder, what)));
  }
  EXPECT_FALSE(workspace_.has("run/search.json"));
}

}  // namespace
}  // namespace stretto
