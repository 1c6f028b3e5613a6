#include "stretto/config/interval.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/config/recipe.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;
using Unit = Interval::Unit;

TEST(Interval, StepsEpochsTimesEvaluations) {
  const auto expect = [](const char* text, Unit unit, double count) {
    EXPECT_EQ(Interval(text).unit(), unit) << text;
    EXPECT_EQ(Interval(text).count(), count) << text;
  };
  for (const char* text : {"500", "500st", "500sts", "500steps"}) expect(text, Unit::steps, 500);
  expect("step", Unit::steps, 1);
  for (const char* text : {"1ep", "epoch", "1epoch", "ep"}) expect(text, Unit::epochs, 1);
  expect("2ep", Unit::epochs, 2);
  expect("0.25ep", Unit::epochs, 0.25);
  expect(".5eps", Unit::epochs, 0.5);
  expect("30s", Unit::seconds, 30);
  expect("10m", Unit::seconds, 600);
  expect("2h", Unit::seconds, 7200);
  expect("1.5d", Unit::seconds, 129600);
  expect("eval", Unit::evaluations, 1);
  expect("3evals", Unit::evaluations, 3);
  expect("never", Unit::never, 0);
  EXPECT_EQ(Interval(), Interval("never"));
}

TEST(Interval, EqualByMeaning) {
  EXPECT_EQ(Interval("epoch"), Interval("1ep"));
  EXPECT_EQ(Interval(60), Interval("60"));
  EXPECT_EQ(Interval("60s"), Interval("1m"));
  EXPECT_NE(Interval(60), Interval("60s"));
}

TEST(Interval, AnythingElseIsRefused) {
  for (const char* text :
       {"",    "0",     "-5", "0ep", "0.0ep",   "-1m", "nans", "1e99m",       "5 steps", "often",
        "1.5", "0.5st", "s",  "m",   "1.2.3ep", "00",  "0s",   "12345678901", "2epo",    "1nevers"}) {
    EXPECT_THROW(Interval{text}, ConfigError) << text;
  }
  EXPECT_THROW(Interval{0}, ConfigError);
  EXPECT_THAT(message_of<ConfigError>([] { Interval("often"); }),
              HasSubstr("\"often\" is not an interval: steps (500), epochs"));
}

TEST(Interval, IsReadFromRecipesWithItsPlace) {
  const Recipe recipe = parse_recipe(
      "evaluate: {every: 0.5ep}\ncheckpoint: {every: 20}\ntrack: {log_every: 10m}\ntraining: {max_time: 1.5h}\n",
      "r.yaml");
  EXPECT_EQ(recipe.evaluate.every, Interval("0.5ep"));
  EXPECT_EQ(recipe.checkpoint.every, Interval(20));
  EXPECT_EQ(recipe.track.log_every, Interval("600s"));
  EXPECT_EQ(parse_duration(*recipe.training.max_time), 5400);
  EXPECT_EQ(parse_recipe(dump_recipe(recipe), "dumped"), recipe);
  for (const char* setting : {"evaluate: {every: sometimes}", "checkpoint: {every: 1.5}",
                              "track: {log_every: 0}", "training: {max_time: 90}"}) {
    EXPECT_THAT(message_of<ConfigError>([&] { parse_recipe(setting, "r.yaml"); }),
                testing::MatchesRegex("r.yaml:1:[0-9]+: .* is not an? .*"))
        << setting;
  }
}

// The config.yaml of a run without evaluations is a recipe as well.
TEST(Interval, ADumpedRecipeWithoutEvaluationsIsAccepted) {
  const Recipe recipe = parse_recipe("evaluate: {every: never}", "r.yaml");
  check_recipe(parse_recipe(dump_recipe(recipe), "config.yaml"), Verb::fit);
}

TEST(Interval, TheSchemaAcceptsNumbersToo) {
  const auto schema = recipe_schema();
  const auto& every = schema["properties"]["evaluate"]["properties"]["every"];
  ASSERT_TRUE(every.contains("anyOf")) << every;
  bool has_integer = false;
  for (const auto& alternative : every["anyOf"]) has_integer |= alternative.value("type", "") == "integer";
  EXPECT_TRUE(has_integer) << every;
  EXPECT_EQ(every["default"], "epoch");
}

}  // namespace
}  // namespace stretto
