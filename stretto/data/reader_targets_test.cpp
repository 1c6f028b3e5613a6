#include "stretto/data/reader_targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/data/reader.h"
#include "stretto/data/summary.h"

namespace stretto::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ReadOptions numbers = {.problem = ProblemType::regression},
                  classes = {.problem = ProblemType::multi_label_classification};

std::string targets_error(const std::string& file, std::string_view content, const ReadOptions& options) {
  return message_of([&] { check_training_labels(parse_rows(content, file, options)); });
}

TEST(ReaderTargets, NumbersOfARegression) {
  const Table table =
      parse_rows("sentence1\tsentence2\tscore\na\tb\t-1\nc\td\t3.25\n", "sts.tsv",
                 {.columns = {.text = "sentence1", .text_pair = "sentence2", .label = "score"},
                  .problem = ProblemType::regression});
  EXPECT_TRUE(table.has_labels);
  EXPECT_THAT(table.rows[0].targets, ElementsAre(-1));
  EXPECT_THAT(table.rows[1].targets, ElementsAre(3.25));
  EXPECT_EQ(table.labels.size(), 0);
  EXPECT_THAT(describe_table(table), HasSubstr("numbers from -1 to 3.25, mean 1.125"));
  EXPECT_FALSE(parse_rows("text,label\na,\nb,\n", "a.csv", numbers).has_labels);
}

TEST(ReaderTargets, NumbersThatAreRefused) {
  EXPECT_THAT(targets_error("a.csv", "text,label\na,1\nb,good\n", numbers),
              HasSubstr("a.csv:3: label \"good\""));
  EXPECT_THAT(targets_error("a.csv", "text,label\na,1e99\n", numbers), HasSubstr("is not a finite number"));
  EXPECT_THAT(targets_error("a.csv", "text,label\na,nan\n", numbers), HasSubstr("is not a finite number"));
  EXPECT_THAT(targets_error("a.csv", "text,label\na,1\nb,\n", numbers),
              has_all("a.csv:3: the row has no label", "line 2 has one"));
  EXPECT_THAT(targets_error("a.csv", "text,label\na,2\nb,2\n", numbers),
              HasSubstr("all 2 rows have the label 2"));
  EXPECT_THAT(targets_error("a.jsonl", "{\"text\":\"a\",\"label\":[1]}\n", numbers),
              HasSubstr("\"label\" is a list ([1]); expected one number per row"));
}

TEST(ReaderTargets, ListsAndSeparatedColumns) {
  const std::string jsonl =
      "{\"text\":\"a\",\"label\":[\"toxic\",\"threat\"]}\n{\"text\":\"b\",\"label\":[]}\n{\"text\":\"c\",\"label\":\"insult, toxic\"}\n";
  const Table table = parse_rows(jsonl, "a.jsonl", classes);
  EXPECT_THAT(table.labels.names(), ElementsAre("insult", "threat", "toxic"));
  EXPECT_THAT(table.rows[0].targets, ElementsAre(0, 1, 1));
  EXPECT_THAT(table.rows[1].targets, ElementsAre(0, 0, 0));
  EXPECT_THAT(table.rows[2].targets, ElementsAre(1, 0, 1));
  EXPECT_THAT(describe_table(table), HasSubstr("3 classes, 1.33 per text: insult 1 (33.3 %)"));
  const Table tsv = parse_rows("text\tlabel\na\t10; 2 ;10\nb\t\n", "a.tsv",
                               {.problem = ProblemType::multi_label_classification, .label_separator = ";"});
  EXPECT_THAT(tsv.labels.names(), ElementsAre("2", "10"));
  EXPECT_THAT(tsv.rows[0].targets, ElementsAre(1, 1));
  EXPECT_FALSE(parse_rows("text,label\na,\n", "a.csv", classes).has_labels);
}

TEST(ReaderTargets, ClassesThatAreRefused) {
  const LabelSet expected({"insult", "toxic"});
  EXPECT_THAT(targets_error("a.csv", "text,label\na,\"toxic,insul\"\n",
                            {.problem = ProblemType::multi_label_classification, .labels = &expected}),
              AllOf(HasSubstr("a.csv:2: label \"insul\""), HasSubstr("did you mean \"insult\"?")));
  EXPECT_THAT(targets_error("a.jsonl", "{\"text\":\"a\",\"label\":[[\"toxic\"]]}\n", classes),
              HasSubstr("expected a list of labels per row"));
  EXPECT_THAT(targets_error("a.jsonl", "{\"text\":\"a\",\"label\":{\"toxic\":1}}\n", classes),
              HasSubstr("is an object"));
  EXPECT_THAT(targets_error("a.jsonl", "{\"text\":\"a\",\"label\":[\"\"]}\n", classes),
              HasSubstr("among the labels is not a class"));
  EXPECT_THAT(targets_error("a.csv", "text,label\na,x\nb,x\n", classes),
              HasSubstr("all 2 rows have the same classes"));
  // The error of a list for LabelKind::one_class.
  EXPECT_THAT(targets_error("a.jsonl", "{\"text\":\"a\",\"label\":[\"toxic\"]}\n", {}),
              HasSubstr("expected the label of one class per row"));
}

}  // namespace
}  // namespace stretto::data
