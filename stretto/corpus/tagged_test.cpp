#include "stretto/corpus/tagged.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto::corpus {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string tagged_failure(const std::string& name, std::string_view content,
                           const TaggedOptions& options = {}) {
  return message_of([&] { parse_tagged(content, name, options); });
}

TEST(Tagged, ConllColumns) {
  const TaggedCorpus corpus = parse_tagged("EU NNP B-ORG\nwas VBD O\n\nPeter NNP B-PER\n", "a.txt");
  EXPECT_EQ(corpus.columns, "token = 1, tag = 3 of 3 columns");
  EXPECT_THAT(corpus.sentences[0].tokens, ElementsAre("EU", "was"));
  EXPECT_THAT(corpus.tag_names(), ElementsAre("B-ORG", "B-PER", "O"));
  EXPECT_EQ(corpus.tokens(), 3);
  EXPECT_EQ(corpus.spans(), 2);
  EXPECT_THAT(parse_tagged("a X 1\n", "a.conll", {.token = "3", .tag = "2"}).sentences[0].tags,
              ElementsAre("X"));
  EXPECT_FALSE(parse_tagged("EU\nwas\n", "a.conll").has_tags);
}

TEST(Tagged, JsonLinesAsRunNerReadsThem) {
  const TaggedCorpus corpus = parse_tagged(
      "{\"id\": 0, \"tokens\": [\"EU\", \"was\"], \"ner_tags\": [\"B-ORG\", \"O\"]}\n\n{\"tokens\": [], \"ner_tags\": []}\n",
      "a.json");
  ASSERT_EQ(corpus.sentences.size(), 1u);
  EXPECT_THAT(corpus.sentences[0].tags, ElementsAre("B-ORG", "O"));
  const TaggedCorpus older =
      parse_tagged("{\"words\": [\"EU\"], \"ner\": [1]}", "a.jsonl", {.tag_names = {"O", "B-ORG"}});
  EXPECT_THAT(older.sentences[0].tags, ElementsAre("B-ORG"));
  EXPECT_EQ(older.columns, "token = words, tag = ner");
  const TaggedCorpus numbers =
      parse_tagged("{\"words\": [\"EU\"], \"ner\": [12]}", "a.jsonl", {.numbers_are_names = true});
  EXPECT_THAT(numbers.sentences[0].tags, ElementsAre("12"));
}

TEST(Tagged, ConvertsSchemes) {
  const std::string iob1 = "a I-X\nb B-X\nc I-X\nd O\ne I-Y\n";
  EXPECT_THAT(parse_tagged(iob1, "a.conll", {.scheme = TagScheme::iob2}).sentences[0].tags,
              ElementsAre("B-X", "B-X", "I-X", "O", "B-Y"));
  EXPECT_THAT(parse_tagged(iob1, "a.conll", {.scheme = TagScheme::iobes}).sentences[0].tags,
              ElementsAre("S-X", "B-X", "E-X", "O", "S-Y"));
  EXPECT_THAT(parse_tagged("a B-X\nb L-X\nc U-X\n", "a.conll", {.scheme = TagScheme::iob1}).sentences[0].tags,
              ElementsAre("I-X", "I-X", "B-X"));
}

TEST(Tagged, Refusals) {
  EXPECT_THAT(tagged_failure("a.conll", "a\tO\n", {.tag = "3"}), StartsWith("tag: a.conll has 2 columns"));
  EXPECT_THAT(tagged_failure("a.conll", "a\nb\n", {.require_tags = true}),
              HasSubstr("a.conll: the file has no tags"));
  EXPECT_THAT(tagged_failure("a.jsonl", "{\"text\": \"x\"}"), EndsWith("set token to its key"));
  EXPECT_THAT(tagged_failure("a.jsonl", "{\"tokens\": [\"x\"], \"tags\": [1]}"),
              has_all("a.jsonl:1: the tag 1 is a number", "tag_names: [O,"));
  EXPECT_THAT(tagged_failure("a.jsonl", "{\"tokens\": [\"x\"], \"tags\": [\"O\", \"O\"]}"),
              HasSubstr("a.jsonl:1: 1 token and 2 tags"));
  EXPECT_THAT(tagged_failure("a.jsonl", "{\"tokens\": [\"x\"], \"tags\": [3]}", {.tag_names = {"O"}}),
              HasSubstr("the tag 3 has no name"));
  EXPECT_THAT(tagged_failure("a.conll", "a\tO\n", {.tag = "3", .names = {{"tag", "--label"}}}),
              StartsWith("--label: a.conll has 2 columns"));
  EXPECT_THAT(tagged_failure("a.jsonl", "[]"), HasSubstr("a.jsonl:1: a JSON array"));
  EXPECT_THAT(tagged_failure("a.jsonl", "{\"tokens\": [1]}"), HasSubstr("a token is a JSON number"));
  EXPECT_THAT(tagged_failure("a.jsonl", "\n"), HasSubstr("a.jsonl: the file has no sentence"));
  EXPECT_THAT(tagged_failure("a.jsonl", "{\"tokens\": [\"x\"]}", {.tag = "pos"}),
              StartsWith("tag: a.jsonl:1 has no key \"pos\""));
}

TEST(Tagged, TablesOfTextsAreRefused) {
  EXPECT_THAT(message_of<DataError>(
                  [] { parse_tagged("sentence\tlabel\na good film\t1\nnot a good film\t0\n", "train.tsv"); }),
              AllOf(HasSubstr("train.tsv:2: \"a good film\" is several words"),
                    HasSubstr("expected one word per line")));
  EXPECT_NO_THROW(parse_tagged("New York\tB-LOC\nis\tO\nold\tO\n", "a.conll")) << "some words contain spaces";
  EXPECT_NO_THROW(parse_tagged("New York\tB-LOC\n\nLos Angeles\tB-LOC\n", "a.conll"));
}

}  // namespace
}  // namespace stretto::corpus
