#include "stretto/corpus/conll.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto::corpus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string conll_failure(std::string_view content) {
  return message_of<DataError>([&] { parse_conll(content, "a.conll"); });
}

TEST(Conll, SentencesColumnsAndDocuments) {
  const ConllFile file = parse_conll(
      "-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects  VBZ O\r\n\n\n-DOCSTART- -X- O\n\nPeter NNP B-PER",
      "a.conll");
  EXPECT_EQ(file.columns, 3u);
  ASSERT_EQ(file.sentences.size(), 2u);
  EXPECT_THAT(file.sentences[0].rows[1], ElementsAre("rejects", "VBZ", "O"));
  EXPECT_EQ(file.sentences[0].line, 3);
  EXPECT_EQ(file.sentences[0].document, 0);
  EXPECT_EQ(file.sentences[1].document, 1);
  EXPECT_EQ(file.sentences[1].line, 9);
}

TEST(Conll, CommentsInFilesWithTabs) {
  const ConllFile file = parse_conll("# a comment\nNew York\tB-LOC\n# id = 1\n#\tO\n", "a.conll");
  ASSERT_EQ(file.sentences.size(), 1u);
  EXPECT_THAT(file.sentences[0].rows[0], ElementsAre("New York", "B-LOC"));
  EXPECT_THAT(file.sentences[0].rows[1], ElementsAre("#", "O"));
}

TEST(Conll, MalformedLinesAreNamed) {
  EXPECT_THAT(conll_failure("a B-X\nb\n"),
              HasSubstr("a.conll:2: 1 column (\"b\"); line 1 has 2, separated by spaces"));
  EXPECT_THAT(conll_failure("a\tO\n\nb\t\n"), HasSubstr("a.conll:3: column 2 is empty"));
  EXPECT_THAT(conll_failure("\n\n"), HasSubstr("a.conll: the file has no token"));
}

}  // namespace
}  // namespace stretto::corpus
