#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/base/strings.h"
#include "stretto/programs/stretto/search_space.h"
#include "stretto/programs/stretto/search_trials.h"

namespace stretto::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<double> draws(const std::string& text, int64_t count) {
  const SearchParameter parameter = parse_search_parameter(text);
  std::vector<double> values;
  for (int64_t trial = 1; trial <= count; ++trial)
    values.push_back(parse_double(parameter.draw(42, trial)).value());
  return values;
}

TEST(SearchSpace, DrawsCoverTheirRangesEvenly) {
  int below = 0;
  for (const double value : draws("optimizer.lr=log:1e-6:1e-2", 1000)) {
    EXPECT_GE(value, 1e-6);
    EXPECT_LE(value, 1e-2);
    below += value < 1e-4 ? 1 : 0;  // the middle of the logarithms
  }
  EXPECT_NEAR(below, 500, 60);
  double sum = 0;
  for (const double value : draws("a=uniform:-1:3", 1000)) {
    EXPECT_GE(value, -1);
    EXPECT_LE(value, 3);
    sum += value;
  }
  EXPECT_NEAR(sum / 1000, 1, 0.15);
  const auto whole = draws("a=int:2:5", 400);
  EXPECT_EQ(std::set<double>(whole.begin(), whole.end()), (std::set<double>{2, 3, 4, 5}));
  std::set<std::string> chosen;
  const SearchParameter choice = parse_search_parameter("optimizer.type=choice:AdamW,SGD");
  for (int64_t trial = 1; trial <= 40; ++trial) chosen.insert(choice.draw(42, trial));
  EXPECT_EQ(chosen, (std::set<std::string>{"AdamW", "SGD"}));
}

TEST(SearchSpace, DrawsDependOnSeedTrialAndNameOnly) {
  const SearchParameter a = parse_search_parameter("a=uniform:0:1"),
                        b = parse_search_parameter("b=uniform:0:1");
  EXPECT_EQ(a.draw(42, 3), parse_search_parameter("a=uniform:0:1").draw(42, 3));
  EXPECT_NE(a.draw(42, 3), a.draw(42, 4));
  EXPECT_NE(a.draw(42, 3), a.draw(43, 3));
  EXPECT_NE(a.draw(42, 3), b.draw(42, 3));
}

TEST(SearchSpace, MistakesAreNamed) {
  const auto refuses = [](const std::string& text, const std::string& why) {
    EXPECT_THAT(message_of<ConfigError>([&] { parse_search_parameter(text); }),
                ::testing::AllOf(HasSubstr("--param " + text + ": "), HasSubstr(why)))
        << text;
  };
  refuses("optimizer.lr", "there is no NAME=");
  refuses("=log:1:2", "there is no NAME=");
  refuses("a=lgo:1:2", "\"lgo\" is not a distribution");
  refuses("a=1e-3", "\"1e-3\" is not a distribution");
  refuses("a=log:1", "1 limit after log");
  refuses("a=log", "0 limits after log");
  refuses("a=log:1:x", "a limit is not a number");
  refuses("a=uniform:2:1", "the first limit is not below the second");
  refuses("a=log:0:1", "log needs limits above 0");
  refuses("a=int:1:2.5", "int needs whole limits");
  refuses("a=choice:", "a value is empty");
  refuses("a=choice:b,,c", "a value is empty");
}

TEST(SearchTrials, TheBetterHalfContinues) {
  EXPECT_THAT(better_half({1, 2, 3, 4}, {0.5, 0.9, 0.7, 0.6}, true), ElementsAre(2, 3));
  EXPECT_THAT(better_half({1, 2, 3, 4}, {0.5, 0.9, 0.7, 0.6}, false), ElementsAre(1, 4));
  EXPECT_THAT(better_half({4, 6, 9}, {0.5, 0.5, 0.5}, true), ElementsAre(4, 6)) << "of equal ones the first";
  EXPECT_THAT(better_half({1, 2, 3}, {std::nullopt, 0.1, std::nullopt}, true), ElementsAre(1, 2));
}

}  // namespace
}  // namespace stretto::cli
