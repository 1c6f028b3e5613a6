#include "stretto/data/reader.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"

namespace stretto::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Table read(const std::string& file, std::string_view content, const ReadOptions& options = {}) {
  return parse_rows(content, file, options);
}

std::string failure(const std::string& file, std::string_view content, const ReadOptions& options = {}) {
  return message_of([&] { parse_rows(content, file, options); });
}

TEST(Reader, GlueTsvHasAHeaderAndPlainQuotes) {
  const Table table = read("train.tsv", "sentence\tlabel\n\"a \" film\t1\nit 's dull \t0\n");
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].text, "\"a \" film");
  EXPECT_EQ(table.rows[0].label, 1);
  EXPECT_EQ(table.rows[0].line, 2);
  EXPECT_EQ(table.rows[1].text, "it 's dull ");
  EXPECT_EQ(table.rows[1].label, 0);
  EXPECT_TRUE(table.has_labels);
  EXPECT_FALSE(table.has_pairs);
  EXPECT_THAT(table.labels.names(), ElementsAre("0", "1"));
}

TEST(Reader, GlueTestFileHasNoLabels) {
  const Table table = read("test.tsv", "index\tsentence\n0\tfirst\n1\tsecond\n");
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[1].text, "second");
  EXPECT_EQ(table.rows[1].label, -1);
  EXPECT_FALSE(table.has_labels);
}

TEST(Reader, PairsOfGlue) {
  const Table rte =
      read("rte.tsv", "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\n1\tc\td\tnot_entailment\n");
  EXPECT_TRUE(rte.has_pairs);
  EXPECT_EQ(rte.rows[1].text, "c");
  EXPECT_EQ(rte.rows[1].text_pair, "d");
  EXPECT_EQ(rte.rows[1].label, 1);
  const Table mrpc =
      read("mrpc.tsv", "\xEF\xBB\xBFQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n1\t7\t8\tx\ty\r\n");
  EXPECT_EQ(mrpc.rows[0].text, "x");
  EXPECT_EQ(mrpc.rows[0].text_pair, "y");
  EXPECT_THAT(mrpc.labels.names(), ElementsAre("1"));
}

TEST(Reader, HeaderlessTsvIsReadByTheNumberOfColumns) {
  EXPECT_EQ(read("a.txt", "good\nbad\n").rows[1].text, "bad");
  const Table two = read("b.tsv", "good film\t1\nbad film\t0");
  ASSERT_EQ(two.rows.size(), 2u);
  EXPECT_EQ(two.rows[0].line, 1);
  EXPECT_EQ(two.rows[1].label, 0);
  const Table three = read("c.tsv", "a\tb\tyes\nc\td\tno\ne\tf\tyes\n");
  EXPECT_EQ(three.rows[0].text_pair, "b");
  EXPECT_EQ(three.rows[0].label, 1);
  EXPECT_EQ(read("sentiment-train", "good film\t1\nbad film\t0").rows[1].text, "bad film") << "no extension";
}

TEST(Reader, HeaderlessColumnsAreNamedByNumber) {
  const Table cola = read("cola.tsv", "gj04\t1\t\tOur friends.\ngj04\t0\t*\tMore one.\n",
                          {.columns = {.text = "4", .label = "2"}, .require_labels = true});
  EXPECT_EQ(cola.rows[1].text, "More one.");
  EXPECT_EQ(cola.rows[1].label, 0);
  EXPECT_THAT(failure("cola.tsv", "gj04\t1\t\tOur friends.\n"),
              HasSubstr("cola.tsv: no header line and 4 columns; set columns.text"));
}

TEST(Reader, ByteOrderMarkCarriageReturnsAndBlankLines) {
  const Table table = read("a.tsv", "\xEF\xBB\xBFsentence\tlabel\r\n\r\ngood\t1\r\n\nbad\t0\r\n");
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].text, "good");
  EXPECT_EQ(table.rows[0].line, 3);
  EXPECT_EQ(table.rows[1].line, 5);
  EXPECT_THAT(failure("wide.tsv", std::string("\xFF\xFEg\0o\0", 6)), HasSubstr("UTF-16; save it as UTF-8"));
}

TEST(Reader, CsvQuotesMayHoldCommasLineEndsAndQuotes) {
  const Table table = read(
      "a.csv", "text,label\r\n\"one, two\nthree \"\"four\"\"\",pos\r\nplain \"word\",neg\r\n\"\",pos\r\n");
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0].text, "one, two\nthree \"four\"");
  EXPECT_EQ(table.rows[0].line, 2);
  EXPECT_EQ(table.rows[0].label, 1);
  EXPECT_EQ(table.rows[1].text, "plain \"word\"");
  EXPECT_EQ(table.rows[1].line, 4);  // physical lines are counted
  EXPECT_EQ(table.rows[2].text, "");
}

TEST(Reader, CsvErrors) {
  EXPECT_THAT(failure("a.csv", "text,label\nfine,1\n\"open,0\nnext,1\n"), HasSubstr("a.csv:3: the quote"));
  EXPECT_THAT(failure("a.csv", "text,label\n\"x\"y,0\n"), HasSubstr("a.csv:2: text after a closing quote"));
  EXPECT_THAT(failure("a.csv", "text,label\na,b,0\n"),
              has_all("a.csv:2: 3 columns", "header has 2 (text, label)"));
}

TEST(Reader, JsonLinesWithHubNames) {
  const Table table =
      read("a.jsonl",
           "{\"premise\": \"a\\u00e9\", \"hypothesis\": \"b\", \"label\": 2, \"tags\": [1]}\n\n"
           "{\"label\": 0, \"hypothesis\": \"d\", \"premise\": \"c\", \"extra\": null}\n");
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].text, "a\xC3\xA9");
  EXPECT_EQ(table.rows[1].text_pair, "d");
  EXPECT_EQ(table.rows[1].line, 3);
  EXPECT_EQ(table.rows[0].label, 1);
  EXPECT_THAT(table.labels.names(), ElementsAre("0", "2"));
  EXPECT_THAT(
      read("b.json", "{\"text\":\"a\",\"label\":true}\n{\"text\":\"b\",\"label\":false}").labels.names(),
      ElementsAre("false", "true"));
}

TEST(Reader, JsonLinesErrors) {
  EXPECT_THAT(failure("a.jsonl", "{\"text\": \"a\"}\n{\"text\": }\n"),
              HasSubstr("a.jsonl:2:10: not valid JSON"));
  EXPECT_THAT(failure("a.jsonl", "[{\"text\": \"a\"}]"),
              has_all("a.jsonl:1: a JSON array", "one object per line"));
  EXPECT_EQ(failure("a.jsonl", "{\"text\": \"a\"}\n3\n"),
            "a.jsonl:2: found a JSON number; expected an object");
  EXPECT_THAT(failure("a.jsonl", "{\"text\": \"a\"}\n{\"txt\": \"b\"}\n"),
              HasSubstr("a.jsonl:2: \"text\" is missing"));
  EXPECT_THAT(failure("a.jsonl", "{\"text\": [\"a\"]}\n"), HasSubstr("a.jsonl:1: \"text\" is a list"));
  EXPECT_THAT(failure("a.jsonl", "{\"text\": \"a\", \"label\": [0, 2]}\n"),
              HasSubstr("a.jsonl:1: \"label\" is a list"));
  EXPECT_THAT(failure("a.jsonl", "{\"text\": {\"en\": \"a\"}, \"label\": 1}\n"),
              HasSubstr("\"text\" is an object ("));
}

TEST(Reader, MissingAndEmptyFiles) {
  const TempFolder folder;
  EXPECT_THROW(read_rows(folder.path() / "none.tsv"), IoError);
  write_file_atomic(folder.path() / "a.tsv", "sentence\tlabel\ngood\t1\n");
  EXPECT_EQ(read_rows(folder.path() / "a.tsv").rows.size(), 1u);
  write_file_atomic(folder.path() / "empty.tsv", "");
  EXPECT_THROW(read_rows(folder.path() / "empty.tsv"), DataError);
  EXPECT_EQ(failure("a.tsv", ""), "a.tsv: the file is empty");
  EXPECT_EQ(failure("a.csv", "\n\r\n"), "a.csv: the file is empty");
  EXPECT_EQ(failure("a.tsv", "sentence\tlabel\n"), "a.tsv: no rows follow the header");
  EXPECT_EQ(failure("a.jsonl", "\n"), "a.jsonl: the file is empty");
  EXPECT_THAT(failure("a.xlsx", "x"),
              has_all("a.xlsx: ", "\".xlsx\"", "not supported", ".tsv, .txt, .csv, .jsonl and .json"));
}

TEST(Reader, MalformedRowIsNamed) {
  EXPECT_THAT(failure("a.tsv", "sentence\tlabel\ngood\t1\nbad\n"),
              has_all("a.tsv:3: 1 column;", "header has 2 (sentence, label)"));
  EXPECT_THAT(failure("a.tsv", "good\t1\nbad\tx\t0\n"),
              has_all("a.tsv:2: 3 columns", "first row has 2 (1, 2)"));
}

TEST(Reader, UnknownColumns) {
  EXPECT_THAT(failure("a.tsv", "sentence\tlabel\ngood\t1\n", {.columns = {.text = "sentense"}}),
              AllOf(HasSubstr("a.tsv: columns.text: "), HasSubstr("\"sentense\""),
                    HasSubstr("did you mean \"sentence\"?")));
  EXPECT_THAT(failure("a.tsv", "good\t1\n", {.columns = {.text = "sentence"}}),
              HasSubstr("(line 1 is not a header)"));
  EXPECT_THAT(failure("a.csv", "phrase,label\nx,1\n"),
              HasSubstr("the columns are phrase, label; set columns.text"));
  EXPECT_THAT(failure("a.csv", "text,text,label\nx,y,1\n"), HasSubstr("\"text\" occurs twice in the header"));
  EXPECT_THAT(failure("a.csv", "text,label\nx,1\n", {.columns = {.text_pair = "b"}}), HasSubstr("set both"));
  EXPECT_THAT(failure("a.csv", "text,other\nx,1\n", {.require_labels = true}),
              HasSubstr("a.csv: no label column among text, other"));
}

TEST(Reader, NamedColumns) {
  const Table table = read("a.csv", "id,phrase,verdict\n1,good,yes\n2,bad,no\n",
                           {.columns = {.text = "phrase", .label = "verdict"}});
  EXPECT_EQ(table.rows[0].text, "good");
  EXPECT_EQ(table.rows[0].label, 1);
}

TEST(Reader, TestFileMayLackTheLabelColumnUnlessItIsMisspelt) {
  const ReadOptions options{.columns = {.text = "sentence", .label = "label"}};
  EXPECT_FALSE(read("test.tsv", "index\tsentence\n0\tx\n", options).has_labels);
  EXPECT_THAT(failure("test.tsv", "labels\tsentence\n0\tx\n", options),
              HasSubstr("did you mean \"labels\"?"));
}

TEST(Reader, LabelsFollowTheGivenSet) {
  const LabelSet model({"NEGATIVE", "POSITIVE"});
  const Table words = read("a.tsv", "sentence\tlabel\nx\tPOSITIVE\ny\tPOSITIVE\n", {.labels = &model});
  EXPECT_EQ(words.rows[0].label, 1);
  EXPECT_EQ(read("a.tsv", "sentence\tlabel\nx\t1\n", {.labels = &model}).rows[0].label, 1);
  EXPECT_THAT(failure("a.tsv", "sentence\tlabel\nx\t0\ny\t2\n", {.labels = &model}),
              HasSubstr("a.tsv:3: label 2 is out of range"));
  EXPECT_THAT(failure("a.tsv", "sentence\tlabel\nx\tpostive\n", {.labels = &model}),
              AllOf(HasSubstr("a.tsv:2: label \"postive\""), HasSubstr("did you mean \"POSITIVE\"?")));
  const LabelSet stars({"1", "2"});
  EXPECT_EQ(read("a.tsv", "sentence\tlabel\nx\t1\n", {.labels = &stars}).rows[0].label, 0);
  EXPECT_THAT(failure("a.tsv", "sentence\tlabel\nx\t0\n", {.labels = &stars}),
              HasSubstr("is not one of 1, 2"));
}

TEST(Reader, NumbersAreOrderedByValue) {
  const Table table = read("a.tsv", "a\t10\nb\t9\nc\t1.0\n");
  EXPECT_THAT(table.labels.names(), ElementsAre("1", "9", "10"));
  EXPECT_EQ(table.rows[0].label, 2);
}

TEST(Reader, LabelErrors) {
  EXPECT_THAT(failure("a.tsv", "a\t0\nb\t-3\n"), HasSubstr("a.tsv:2: label -3 is out of range"));
  EXPECT_THAT(failure("a.tsv", "a\t0\nb\t0.5\n"), HasSubstr("a.tsv:2: label 0.5 is not a class"));
  EXPECT_THAT(failure("a.tsv", "a\t0\nb\t\n"), has_all("a.tsv:2: the row has no label", "line 1 has \"0\""));
  EXPECT_THAT(failure("a.tsv", "phrase\tverdict\na\t0\nb\t1\n"),
              has_all("a.tsv:2: label \"0\"", "line 1, label \"verdict\"", "all numbers or all words"));
  EXPECT_THAT(failure("a.tsv", "phrase\tverdict\na\tno\nb\tyes\nc\tno\nd\tyes\n"),
              has_all("a.tsv:1: no other row has the label \"verdict\"", "is a header"));
}

// Typical header lines. None of them is a sample, and none of their words a class.
TEST(Reader, HeadersAreRecognisedInAnyCase) {
  for (const auto& [header, columns] : std::vector<std::pair<std::string, std::string>>{
           {"Text,Label", "text = Text, label = Label"},
           {"message,category", "text = message, label = category"},
           {"utterance,intent", "text = utterance, label = intent"},
           {"Comment,Sentiment", "text = Comment, label = Sentiment"},
           {"TWEET,EMOTION", "text = TWEET, label = EMOTION"},
           {"Review , Rating", "text = Review, label = Rating"}}) {
    const Table table = read("a.csv", header + "\ngood one,x\nbad one,y\n", {.require_labels = true});
    EXPECT_EQ(table.rows.size(), 2u) << header;
    EXPECT_EQ(table.columns, columns + " (named columns)");
    EXPECT_THAT(table.labels.names(), ElementsAre("x", "y"));
  }
  const Table pairs = read("a.tsv", "Premise\tHypothesis\tLabel\na\tb\tx\n");
  EXPECT_TRUE(pairs.has_pairs);
  EXPECT_EQ(read("a.csv", "Text,text,Label\nx,y,1\n", {.columns = {.text = "text"}}).rows[0].text, "y");
  EXPECT_EQ(read("a.csv", "ID,Phrase\n1,y\n", {.columns = {.text = "phrase"}}).rows[0].text, "y");
  EXPECT_EQ(read("a.tsv", "good\t1\nbad\t0\n").columns, "text = 1, label = 2 (by number: no header line)");
}

// The first line is a header with unknown names.
TEST(Reader, AFirstLineUnlikeTheOthersIsRefused) {
  EXPECT_THAT(failure("a.csv", "phrase,verdict\na,no\nb,yes\nc,no\nd,maybe\n"),
              has_all("a.csv:1: no other row has the label \"verdict\"", "is a header", "name its columns"));
  EXPECT_THAT(failure("a.csv", "phrase,verdict\na,no\nb,yes\n"),
              HasSubstr("a.csv:1: no other row has the label"));
  const LabelSet model({"no", "yes"});
  EXPECT_THAT(failure("a.csv", "phrase,verdict\na,no\n", {.labels = &model}),
              has_all("not one of no, yes", "is a header", "name its columns"));
}

TEST(Reader, OtherSeparatorsAreNamed) {
  EXPECT_THAT(failure("a.csv", "Text;Label\ngood;1\n"),
              has_all("a.csv:1: one column (Text;Label)", "semicolons divide into 2"));
  EXPECT_THAT(failure("a.csv", "good film;1\n", {.require_labels = true}),
              HasSubstr("which semicolons divide"));
  EXPECT_THAT(failure("a.tsv", "sentence,label\ngood,1\n"),
              HasSubstr("which commas divide into 2; tabs separate"));
  EXPECT_EQ(read("a.txt", "well, yes; no\n").rows[0].text, "well, yes; no");
}

TEST(Reader, BytesThatAreNotTextAreNamed) {
  const std::string latin1 = "text,label\nfine,1\ncaf\xE9,0\n";
  EXPECT_THAT(failure("a.csv", latin1),
              AllOf(HasSubstr("a.csv:3: byte 0xe9"), HasSubstr("set encoding: latin-1")));
  EXPECT_EQ(read("a.csv", latin1, {.encoding = corpus::Encoding::latin1}).rows[1].text, "caf\xC3\xA9");
  EXPECT_EQ(read("a.csv", latin1, {.encoding = corpus::Encoding::utf8_replace}).rows[1].text,
            "caf\xEF\xBF\xBD");
  EXPECT_THAT(failure("a.tsv", std::string("good\t1\nb\0d\t0\n", 13)),
              HasSubstr("a.tsv:2: a NUL byte: the file is not text"));
  EXPECT_EQ(corpus::parse_encoding("latin-1"), corpus::Encoding::latin1);
  EXPECT_THROW(corpus::parse_encoding("latin1"), ConfigError);
}

TEST(Reader, EndlessLinesAreRefused) {
  const std::string long_text((16 << 20) + 1, 'x');
  for (const char* name : {"a.tsv", "a.csv"})
    EXPECT_THAT(failure(name, "text\n" + long_text),
                HasSubstr(std::string(name) + ":2: 16 MiB without a line end"));
  EXPECT_THAT(failure("a.csv", "text\n\"" + long_text + "\""), HasSubstr("a.csv:2: 16 MiB without"));
  EXPECT_THAT(failure("a.jsonl", "{\"text\": \"" + long_text + "\"}"),
              HasSubstr("a.jsonl:1: 16 MiB without"));
}

TEST(Reader, MinusOneThroughoutMeansNoLabels) {
  EXPECT_FALSE(read("a.jsonl", "{\"text\":\"a\",\"label\":-1}\n{\"text\":\"b\",\"label\":-1}\n").has_labels);
  EXPECT_THAT(failure("a.jsonl", "{\"text\":\"a\",\"label\":-1}\n", {.require_labels = true}),
              has_all("a.jsonl:1: no row has a label", "\"label\"", "empty or -1 throughout"));
}

TEST(Reader, TrainingNeedsTwoClasses) {
  check_training_labels(read("a.tsv", "a\t0\nb\t1\n"));
  const auto message = [](const Table& table) {
    try {
      check_training_labels(table);
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message(read("a.tsv", "a\t1\nb\t1\n")),
              has_all("a.tsv: all 2 rows have the label \"1\"", "two classes"));
  EXPECT_THAT(message(read("a.txt", "a\nb\n")), HasSubstr("the rows have no labels"));
}

TEST(Reader, LabelNamesAreDistinct) { EXPECT_THROW(LabelSet({"a", "b", "a"}), DataError); }

TEST(ReaderRealData, Sst2) {
  const char* root = std::getenv("STRETTO_DATA");
  if (root == nullptr) GTEST_SKIP() << "STRETTO_DATA names no folder with sst2/";
  const std::filesystem::path sst2 = std::filesystem::path(root) / "sst2";
  const Table train = read_rows(sst2 / "train.tsv", {.require_labels = true});
  EXPECT_EQ(train.rows.size(), 67349u);
  check_training_labels(train);
  const Table dev = read_rows(sst2 / "dev.tsv", {.labels = &train.labels, .require_labels = true});
  EXPECT_EQ(dev.rows.size(), 872u);
  EXPECT_EQ(read_rows(sst2 / "test.tsv").rows.size(), 1821u);
}

}  // namespace
}  // namespace stretto::data
