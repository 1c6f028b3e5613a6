#include "stretto/metrics/squad.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/metrics/correlation.h"
#include "stretto/metrics/glue.h"

namespace stretto::metrics {
namespace {

using ::testing::HasSubstr;

TEST(NormalizeAnswer, LowerCasePunctuationArticlesAndSpaces) {
  EXPECT_EQ(normalize_answer("The  Cat's, a_b an  END."), "cats ab end");
  EXPECT_EQ(normalize_answer("theme another"), "theme another");
  EXPECT_EQ(normalize_answer("the\xC2\xA0the\xE2\x80\x94"
                             "a"),
            "\xE2\x80\x94")
      << "a no-break space and a dash that is not ASCII";
  EXPECT_EQ(normalize_answer("ΟΔΟΣ Σ"), "οδος σ");
  EXPECT_EQ(normalize_answer("a"), "");
}

corpus::QuestionSet two_questions() {
  corpus::QuestionSet set;
  set.name = "d.json";
  set.questions.resize(2);
  set.questions[0] = {.id = "1", .answers = {{"the big cat", 0}, {"cat", 8}}};
  set.questions[1] = {.id = "2"};
  return set;
}

TEST(Squad, ScoresAndBestThresholds) {
  const auto set = two_questions();
  const NullOdds odds = {{"1", 0.1}, {"2", 0.9}};
  const auto json = squad_v2(set, {{"1", "big cat"}, {"2", "dog"}}, &odds);
  EXPECT_EQ(json.at("exact"), 50.0);
  EXPECT_EQ(json.at("HasAns_f1"), 100.0);
  EXPECT_EQ(json.at("NoAns_total"), 1);
  EXPECT_EQ(json.at("best_exact"), 100.0);
  EXPECT_EQ(json.at("best_exact_thresh"), 0.1);
  EXPECT_EQ(squad_v2(set, {{"1", "big cat"}, {"2", "dog"}}, &odds, 0.5).at("NoAns_exact"), 100.0);
}

TEST(Squad, Refusals) {
  const auto message = [](const corpus::QuestionSet& set, const Predictions& predictions,
                          const NullOdds* odds) {
    return message_of<DataError>([&] { squad_v2(set, predictions, odds); });
  };
  auto set = two_questions();
  EXPECT_THAT(message(set, {{"2", ""}}, nullptr),
              HasSubstr("d.json: 1 of 2 questions have no prediction (1)"));
  const NullOdds odds = {{"1", 0.1}};
  EXPECT_THAT(message(set, {{"1", ""}, {"2", ""}}, &odds), HasSubstr("1 of 2 questions have no na_prob (2)"));
  EXPECT_THROW(squad_v1(set, {}), DataError);
  set.questions[0].entry = "data[0]", set.questions[1].entry = "data[1]";
  set.questions[1].id = "1";
  EXPECT_THAT(message(set, {}, nullptr),
              has_all("d.json: data[1]: the id \"1\"", "second time, after data[0]"));
  set.questions[1].answers = set.questions[0].answers;
  EXPECT_THROW(squad_v1(set, {{"1", "cat"}}), DataError);
}

TEST(Correlation, EqualValuesShareTheirRank) {
  const std::vector<double> x = {1, 2, 2, 4}, y = {1, 3, 2, 5};
  EXPECT_DOUBLE_EQ(spearman(x, y), 4.5 / std::sqrt(4.5 * 5));  // ranks 1, 2.5, 2.5, 4 and 1, 3, 2, 4
  EXPECT_TRUE(std::isnan(pearson(std::vector<double>{1, 1}, std::vector<double>{1, 2})));
}

TEST(Glue, NamesAndIdsOfLabelsAreTheSame) {
  const std::vector<std::string> gold = {"entailment", "neutral", "2"},
                                 predicted = {"0", "neutral", "contradiction"};
  EXPECT_EQ(glue_scores(glue_task("mnli"), gold, predicted).at("accuracy"), 1.0);
  EXPECT_THROW(glue_task("mnil"), ConfigError);
  EXPECT_THROW(glue_scores(glue_task("rte"), gold, predicted), DataError);
}

}  // namespace
}  // namespace stretto::metrics
