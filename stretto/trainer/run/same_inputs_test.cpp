#include "stretto/trainer/run/same_inputs.h"

#include <gmock/gmock.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/comm/rank_threads.h"

namespace stretto::trainer {
namespace {

using Inputs = std::vector<Input>;

// Returns the message thrown on each rank; "" if none.
std::vector<std::string> compare(const std::vector<Inputs>& of_rank) {
  std::vector<std::string> thrown(of_rank.size());
  comm::run_rank_threads(static_cast<int>(of_rank.size()), [&](Group& group) {
    const auto rank = static_cast<size_t>(group.rank());
    try {
      require_same_inputs(group, of_rank[rank]);
    } catch (const ConfigError& error) {
      thrown[rank] = error.what();
    }
  });
  return thrown;
}

TEST(SameInputs, EqualInputsPassWhereverTheyWereRead) {
  EXPECT_EQ(
      compare({{{"data.train", "contents ab", "/a/x.tsv"}}, {{"data.train", "contents ab", "/b/x.tsv"}}}),
      (std::vector<std::string>{"", ""}));
}

TEST(SameInputs, EachDifferenceIsNamedWithValuesRanksAndPlaces) {
  const Inputs first = {{"epochs", "3"}, {"optimizer.lr", "0.001", "a.yaml:3:7"}};
  const Inputs second = {
      {"epochs", "3"}, {"optimizer.lr", "0.002", "b.yaml:3:7"}, {"seed", "1", "b.yaml:9:1"}};
  const auto messages = compare({first, first, second, first});
  EXPECT_EQ(messages, std::vector<std::string>(4, messages[0]));
  EXPECT_THAT(
      messages[0],
      has_all("the inputs of the ranks differ:",
              "\n  optimizer.lr: 0.001 on ranks 0, 1 and 3 (a.yaml:3:7), 0.002 on rank 2 (b.yaml:3:7)\n",
              "\n  seed: not given on ranks 0, 1 and 3, 1 on rank 2 (b.yaml:9:1)\n", "same recipe",
              "same files", "${VARIABLE}"));
  EXPECT_THAT(messages[0], ::testing::Not(::testing::HasSubstr("epochs")));
}

TEST(SameInputs, ManyDifferencesAreCounted) {
  Inputs first, second;
  for (int i = 0; i < 11; ++i) {
    first.push_back({"key" + std::to_string(i), "1"});
    second.push_back({"key" + std::to_string(i), "2"});
  }
  EXPECT_THAT(compare({first, second})[1], ::testing::HasSubstr("\n  and 3 more\n"));
}

TEST(SameInputs, TheSettingsOfARecipeExcludePathsOfFiles) {
  Recipe here = parse_recipe("model: {path: /a}\ndata: {train: /a/t.tsv}\n", "a.yaml"), there = here;
  there.model.path = there.tokenizer.path = there.data.train = "/b";
  const auto names = [](const Recipe& recipe) {
    std::vector<std::string> names;
    for (const Input& input : inputs_of(recipe)) names.push_back(input.name + "=" + input.value);
    return names;
  };
  EXPECT_EQ(names(here), names(there));
  there.track.log_every = 3;
  EXPECT_NE(names(here), names(there));
}

}  // namespace
}  // namespace stretto::trainer
