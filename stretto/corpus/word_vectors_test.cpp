#include "stretto/corpus/word_vectors.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"

namespace stretto::corpus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WordVectorFile : public ::testing::Test {
 protected:
  WordVectors read(const std::string& content) {
    write_file_atomic(folder_.path() / "vectors", content);
    return read_word_vectors(folder_.path() / "vectors");
  }
  std::string refusal(const std::string& content) {
    try {
      read(content);
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  }
  TempFolder folder_;
};

std::string binary(const std::string& word, const std::vector<float>& values, const char* behind) {
  std::string bytes = word + " ";
  bytes.resize(bytes.size() + values.size() * sizeof(float));
  std::memcpy(bytes.data() + word.size() + 1, values.data(), values.size() * sizeof(float));
  return bytes + behind;
}

TEST_F(WordVectorFile, TextWithAndWithoutHeader) {
  for (const char* header : {"", "3 2\n"}) {
    const WordVectors vectors = read(header + std::string("the 0.5 -1e-3\n. . . 2 3\nCafé 4 5 \r\n"));
    EXPECT_EQ(vectors.format, *header == 0 ? "GloVe" : "word2vec text");
    EXPECT_EQ(vectors.dimensions, 2);
    EXPECT_THAT(vectors.words, ElementsAre("the", ". . .", "Café"));
    EXPECT_THAT(vectors.values, ElementsAre(0.5F, -1e-3F, 2, 3, 4, 5));
  }
}

// gensim writes no newline after a vector, word2vec itself does.
TEST_F(WordVectorFile, Binary) {
  for (const char* behind : {"", "\n"}) {
    const WordVectors vectors =
        read("2 3\n" + binary("a", {1, 2, 3}, behind) + binary("b c", {4, 5, 6}, behind).replace(1, 1, "_"));
    EXPECT_EQ(vectors.format, "word2vec binary");
    EXPECT_THAT(vectors.words, ElementsAre("a", "b_c"));
    EXPECT_THAT(vectors.values, ElementsAre(1, 2, 3, 4, 5, 6));
  }
}

TEST_F(WordVectorFile, TheFirstOfEqualWordsIsUsed) {
  const WordVectors vectors = read("3 1\na 1\nb 2\na 3\n");
  EXPECT_THAT(vectors.words, ElementsAre("a", "b"));
  EXPECT_EQ(vectors.repeated, 1);
}

TEST_F(WordVectorFile, Refusals) {
  EXPECT_THAT(refusal(""), HasSubstr("empty"));
  EXPECT_THAT(refusal("\x1f\x8b\x08 gz"), HasSubstr("gunzip"));
  EXPECT_THAT(refusal("\x80\x04 pickle"), HasSubstr("save_word2vec_format"));
  EXPECT_THAT(refusal("a 1 2\nb 3\n"),
              HasSubstr("line 2: 1 numbers after the word; expected 2, like before"));
  EXPECT_THAT(refusal("a 1 2\nb 3 x\n"), HasSubstr("line 2: \"x\" is not a number"));
  EXPECT_THAT(refusal("a 1 2\nb 3 nan\n"), HasSubstr("line 2: the vector holds nan"));
  EXPECT_THAT(refusal("a 1\n\nb 2\n"), HasSubstr("line 2: 0 numbers"));
  EXPECT_THAT(refusal("word\n"), HasSubstr("line 1: 0 numbers; expected a word and up to"));
  EXPECT_THAT(refusal("3 1\na 1\nb 2\n"), HasSubstr("2 words, but the first line announces 3"));
  EXPECT_THAT(refusal("0 5\n"), HasSubstr("line 1: 0 words of 5 dimensions"));
  EXPECT_THAT(refusal("2 3\n" + binary("a", {1, 2, 3}, "\n")), HasSubstr("word 2 of 2: the file ends"));
  EXPECT_THAT(refusal("1 2\n" + binary("a", {1, 2}, "") + "more"), HasSubstr("bytes follow"));
}

}  // namespace
}  // namespace stretto::corpus
