#include "stretto/corpus/squad.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto::corpus {
namespace {

using ::testing::HasSubstr;

constexpr const char* article = R"({"version": "v2.0", "data": [{"title": "T", "paragraphs": [
  {"context": "a b", "qas": [{"id": "1", "question": "what?", "answers": [{"text": "b", "answer_start": 2}]},
                             {"id": 2, "question": "who?", "answers": [], "is_impossible": true}]}]}]})";

std::string squad_failure(std::string_view content) {
  return message_of<DataError>([&] { parse_questions(content, "d.json"); });
}

TEST(Questions, SquadsLayout) {
  const QuestionSet set = parse_questions(article, "d.json");
  EXPECT_EQ(set.version, "v2.0");
  EXPECT_EQ(set.count_unanswerable(), 1);
  EXPECT_EQ(set.questions[1].entry, "data[0].paragraphs[0].qas[1]");
  ASSERT_EQ(set.questions.size(), 2u);
  EXPECT_EQ(set.contexts.at(set.questions[1].context), "a b");
  EXPECT_EQ(set.questions[0].answers.at(0).start, 2);
  EXPECT_EQ(set.questions[0].title, "T");
  EXPECT_EQ(set.questions[1].id, "2");
}

TEST(Questions, FlatRows) {
  const std::string row =
      R"({"id": "1", "context": "a b", "question": "q", "answers": {"text": ["b"], "answer_start": [2]}})";
  for (const std::string& content :
       {row + "\n" + row + "\n", "{\"data\": [" + row + ", " + row + "]}", row}) {
    const QuestionSet set = parse_questions(content, "d.jsonl");
    EXPECT_EQ(set.contexts.size(), 1u);
    EXPECT_EQ(set.questions.back().answers.at(0).text, "b");
    EXPECT_EQ(set.count_unanswerable(), 0);
  }
  EXPECT_EQ(parse_questions(row + "\n" + row, "d.jsonl").questions[1].line, 2);
}

// The questions decide the version, not fields that a conversion has left in the file.
TEST(Questions, GoldAnswersAndUnanswerableQuestions) {
  struct Case {
    const char *row, *version;
    bool gold, unanswerable;
  };
  for (const auto& [row, version, gold, unanswerable] :
       {Case{R"("answers": [{"text": "b", "answer_start": 2}])", "1.1", true, false},
        {R"("answers": [{"text": "b", "answer_start": 2}])", "v2.0", true, false},
        {R"("answers": [{"text": "b", "answer_start": 2}], "is_impossible": false)", "1.1", true, false},
        {R"("answers": [])", "1.1", true, true},
        {R"("answers": {"text": [], "answer_start": []})", "1.1", true, true},
        {R"("is_impossible": true)", "v2.0", true, true},
        {R"("answers": null)", "1.1", false, true},
        {R"("title": "t")", "1.1", false, true}}) {
    const std::string flat =
        fmt::format(R"({{"version": "{}", "data": [{{"id": "1", "context": "a b", "question": "q", {}}}]}})",
                    version, row);
    const QuestionSet set = parse_questions(flat, "d.json");
    EXPECT_EQ(set.has_gold, gold) << flat;
    EXPECT_EQ(set.count_unanswerable(), unanswerable ? 1 : 0) << flat;
  }
}

TEST(Questions, AnIdThatOccursTwiceIsNamedWithBothPlaces) {
  const auto failure = [](const std::string& content, const char* name) {
    return message_of<DataError>([&] { parse_questions(content, name).require_distinct_ids(); });
  };
  const std::string row = R"({"id": "7", "context": "a b", "question": "q"})",
                    other = R"({"id": "8", "context": "a b", "question": "q"})";
  EXPECT_THAT(failure(row + "\n" + other + "\n\n" + row + "\n", "d.jsonl"),
              has_all("d.jsonl:4: the id \"7\"", "second time, after line 1"));
  EXPECT_THAT(failure("{\"data\": [" + row + ", " + other + ", " + row + "]}", "d.json"),
              has_all("d.json: data[2]: the id \"7\"", "second time, after data[0];"));
  EXPECT_THAT(failure(R"({"data": [{"paragraphs": [{"context": "c", "qas": [{"id": 7, "question": "q"}]},
                          {"context": "d", "qas": [{"id": "7", "question": "p"}]}]}]})",
                      "d.json"),
              has_all("data[0].paragraphs[1].qas[0]: the id \"7\"",
                      "second time, after data[0].paragraphs[0].qas[0];"));
  EXPECT_EQ(failure(row + "\n" + other + "\n", "d.jsonl"), "no error");
}

TEST(Questions, Refusals) {
  EXPECT_THAT(squad_failure("{}"), HasSubstr("d.json: the file has no list \"data\""));
  EXPECT_THAT(squad_failure("{\"data\": []}"), HasSubstr("the file has no questions"));
  EXPECT_THAT(squad_failure(R"({"data": [{"paragraphs": [{"context": 1}]}]})"),
              HasSubstr("d.json: data[0].paragraphs[0] \"context\" is not a string"));
  EXPECT_THAT(squad_failure(R"({"data": [{"paragraphs": [{"context": "c", "qas": [{"question": "q"}]}]}]})"),
              HasSubstr("data[0].paragraphs[0].qas[0] has no \"id\""));
  EXPECT_THAT(
      squad_failure(
          R"({"id": "7", "context": "c", "question": "q", "answers": {"text": ["a"], "answer_start": []}})"),
      has_all("d.json:1: ", "question 7", "1 answer texts and 0 answer_start"));
  EXPECT_THAT(
      squad_failure(
          R"({"id": "7", "context": "c", "question": "q", "answers": [{"text": "a", "answer_start": -1}]})"),
      HasSubstr("an answer_start that is not a whole number from 0"));
}

}  // namespace
}  // namespace stretto::corpus
