#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/data/features/questions.h"
#include "stretto/data/features/words.h"

namespace stretto::data {
namespace {

using ::testing::ElementsAre;

// Returns the encoding [CLS] a ##b c [SEP] of the words "ab" and "c".
text::Encoding two_words() {
  return {.ids = {2, 5, 6, 7, 3},
          .type_ids = {0, 0, 0, 0, 0},
          .offsets = {{0, 0}, {0, 1}, {1, 2}, {0, 1}, {0, 0}},
          .word_ids = {-1, 0, 0, 1, -1},
          .sequence_ids = {-1, 0, 0, 0, -1},
          .special_tokens_mask = {1, 0, 0, 0, 1}};
}

TEST(WordFeatures, CharactersBelongToTokensOrToWholeWords) {
  const std::vector<text::Encoding> windows = {two_words()};
  const std::vector<std::string> words = {"ab", "c"};
  const auto of_tokens = word_features(windows, words, 0, {text::Characters("abc")}).at(0);
  EXPECT_THAT(of_tokens.words, ElementsAre(-1, 0, 0, 1, -1));
  EXPECT_THAT(of_tokens.characters, ElementsAre(1, 2, 3));
  EXPECT_THAT(of_tokens.character_counts, ElementsAre(0, 1, 1, 1, 0));
  const auto whole = word_features(windows, words, 0, {text::Characters("abc"), /*whole_words=*/true}).at(0);
  EXPECT_EQ(whole.words, of_tokens.words);
  EXPECT_EQ(whole.characters, of_tokens.characters);
  EXPECT_THAT(whole.character_counts, ElementsAre(0, 2, 0, 1, 0));
}

// The words of each window of one text of `words` words, without those that another window predicts.
std::vector<std::vector<int32_t>> predicted(const std::vector<std::vector<int32_t>>& word_ids, size_t words,
                                            size_t stride) {
  std::vector<text::Encoding> windows;
  for (const auto& ids : word_ids) windows.emplace_back().word_ids = ids;
  std::vector<std::vector<int32_t>> result;
  for (const auto& features : word_features(windows, std::vector<std::string>(words, "w"), stride, {}))
    result.push_back(features.words);
  return result;
}

TEST(WordFeatures, AWordIsPredictedWhereItHasMostContext) {
  // Two of four tokens are shared; the third word is nearer to the ends of the second window.
  EXPECT_THAT(predicted({{-1, 0, 1, 2, 3, -1}, {-1, 2, 3, 4, 5, -1}}, 6, 2),
              ElementsAre(ElementsAre(-1, 0, 1, 2, -1, -1), ElementsAre(-1, -1, 3, 4, 5, -1)));
  // The shared token is at an end of both windows.
  EXPECT_THAT(predicted({{-1, 0, 1, 2, -1}, {-1, 2, 3, 4, -1}}, 5, 1),
              ElementsAre(ElementsAre(-1, 0, 1, 2, -1), ElementsAre(-1, -1, 3, 4, -1)));
  // The second window lacks the first token of word 1.
  EXPECT_THAT(predicted({{-1, 0, 1, -1}, {-1, 1, 1, 2, -1}}, 3, 0),
              ElementsAre(ElementsAre(-1, 0, 1, -1), ElementsAre(-1, -1, -1, 2, -1)));
}

TEST(WordFeatures, WordsAreNumberedInTheBatch) {
  const text::Encoding encoding = two_words();
  const std::vector<int32_t> one_word = {-1, -1, -1, 1, -1};  // the first word is predicted in another window
  const std::vector<WordSample> samples = {{.ids = encoding.ids, .words = encoding.word_ids, .sample = 4},
                                           {.ids = encoding.ids, .words = one_word, .sample = 5}};
  const Batch batch = pack_words(samples, {.whole_words = true}, /*multiple_of=*/4);
  EXPECT_TRUE(
      at::equal(batch.at("words"), at::tensor({-1, 0, -1, 1, -1, -1, -1, -1, 0, -1, -1, -1}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.at("token_words"),
                        at::tensor({-1, 0, 0, 1, -1, -1, -1, -1, 2, -1, -1, -1}, at::kLong)));
  EXPECT_FALSE(batch.has("characters"));
}

// GPT-2's vocabulary has tokens for white space.
TEST(QuestionFeatures, LeadingWhiteSpaceOfAQuestionIsIgnored) {
  const auto tokenizer =
      text::Tokenizer::load(std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/tokenizer/gpt2");
  const auto windows = question_windows(tokenizer, " \n\tq ", "a b", {.max_length = 64, .stride = 8});
  const auto wanted = question_windows(tokenizer, "q ", "a b", {.max_length = 64, .stride = 8});
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows[0].ids, wanted[0].ids);
  EXPECT_NE(windows[0].ids, question_windows(tokenizer, "q", "a b", {.max_length = 64})[0].ids);
}

TEST(QuestionFeatures, TheTokensOfTheContext) {
  text::Encoding window;
  window.sequence_ids = {-1, 0, 0, -1, 1, 1, 1, -1};
  EXPECT_EQ(context_tokens(window), std::pair(size_t{4}, size_t{7}));
  window.sequence_ids = {-1, 0, -1, -1};
  EXPECT_EQ(context_tokens(window), std::pair(size_t{0}, size_t{0}));
}

}  // namespace
}  // namespace stretto::data
