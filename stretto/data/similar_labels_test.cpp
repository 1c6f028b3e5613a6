#include "stretto/data/similar_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/message_support.h"
#include "stretto/data/reader.h"

namespace stretto::data {
namespace {

using ::testing::HasSubstr;

std::string described(const std::string& content, const std::string& name,
                      ProblemType problem = ProblemType::single_label_classification) {
  return describe_similar_labels(name, label_uses(parse_rows(content, name, {.problem = problem})));
}

TEST(SimilarLabels, DifferInCaseOrBlanks) {
  EXPECT_THAT(described("text,label\na,Pos\nb,neg\nc,pos\nd,Pos\n", "a.csv"),
              has_all("a.csv:4: the label \"pos\" (1 time)", "\"Pos\" (2 times, line 2)", "case or blanks",
                      "different classes"));
  EXPECT_THAT(described("text,label\na,very good\nb,very  good\nc,bad\n", "a.csv"),
              has_all("a.csv:3: the label \"very  good\" (1 time)", "\"very good\" (1 time"));
  EXPECT_THAT(described("text,label\na,\u00c9t\u00e9\nb,\u00e9t\u00e9\nc,x\n", "a.csv"),
              HasSubstr("a.csv:3: the label \"\u00e9t\u00e9\" (1 time)"));
}

TEST(SimilarLabels, AreOneMessage) {
  const std::string text = described("text,label\na,A\nb,a\nc,B\nd,b\ne,b b\nf,Bb\ng,bB\n", "a.csv");
  EXPECT_THAT(text, has_all("\"a\" (1 time)", "\"A\" (1 time, line 2)", "so do 3 more; "));
}

TEST(SimilarLabels, AreFoundInListsAndTags) {
  const std::string list = "{\"text\": \"a\", \"label\": [\"Law\", \"law\"]}\n";
  EXPECT_THAT(described(list, "a.jsonl", ProblemType::multi_label_classification),
              has_all("a.jsonl:1: the label \"law\" (1 time)", "\"Law\" (1 time, line 1)"));
  const auto corpus = corpus::parse_tagged("a B-PER\nb I-PER\n\nc B-Per\nd O\ne O\n", "a.conll");
  EXPECT_THAT(describe_similar_labels("a.conll", label_uses(corpus)),
              has_all("a.conll:4: the label \"B-Per\" (1 time)", "\"B-PER\" (1 time, line"));
}

TEST(SimilarLabels, OthersAreNotNamed) {
  EXPECT_EQ(described("text,label\na,positive\nb,negative\nc,pos-itive\n", "a.csv"), "");
  EXPECT_EQ(described("text,label\na,1\nb,0\nc,1.0\n", "a.csv"), "");
  EXPECT_EQ(described("text,label\na,0.5\nb,2\n", "a.csv", ProblemType::regression), "");
  EXPECT_EQ(described("text\na\n", "a.csv"), "");
}

}  // namespace
}  // namespace stretto::data
