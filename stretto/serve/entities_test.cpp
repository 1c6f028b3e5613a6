#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/serve/entity_finder.h"

namespace stretto::serve {
namespace {

using ::testing::ElementsAre;

const std::vector<std::string> tags = {"O", "B-PER", "I-PER", "B-LOC"};

TaggedToken token(const std::string& word, int64_t begin, bool continues, std::vector<double> scores) {
  const int64_t letters = static_cast<int64_t>(word.size()) - (word.starts_with("##") ? 2 : 0);
  return {word, begin + 1, begin, begin + letters, continues, std::move(scores)};
}

// "anna berg" by the tokens anna, be, ##rg; tests/tasks compares with transformers.
std::vector<TaggedToken> anna_berg() {
  return {token("anna", 0, false, {0.1, 0.8, 0.1, 0}), token("be", 5, false, {0.4, 0, 0.6, 0}),
          token("##rg", 7, true, {0.9, 0, 0, 0.1})};
}

std::vector<std::string> texts_of(const std::vector<Entity>& entities) {
  std::vector<std::string> texts;
  for (const Entity& entity : entities) texts.push_back(entity.type + ": " + entity.word);
  return texts;
}

TEST(Entities, AggregationStrategies) {
  const auto tokens = anna_berg();
  EXPECT_THAT(texts_of(find_entities(tokens, tags, "none")), ElementsAre("B-PER: anna", "I-PER: be"));
  EXPECT_THAT(texts_of(find_entities(tokens, tags, "simple")), ElementsAre("PER: anna be"));
  const auto first = find_entities(tokens, tags, "first");
  EXPECT_THAT(texts_of(first), ElementsAre("PER: anna berg"));
  EXPECT_EQ(first[0].end, 9);
  EXPECT_DOUBLE_EQ(first[0].score, 0.7);
  EXPECT_THAT(texts_of(find_entities(tokens, tags, "average")), ElementsAre("PER: anna"))
      << "O has 0.65 of berg";
  EXPECT_THAT(texts_of(find_entities(tokens, tags, "max")), ElementsAre("PER: anna"));
  EXPECT_THROW(find_entities(tokens, tags, "last"), ConfigError);
}

TEST(Entities, BeginTagsSeparate) {
  const std::vector<TaggedToken> tokens = {token("anna", 0, false, {0, 1, 0, 0}),
                                           token("paul", 5, false, {0, 1, 0, 0}),
                                           token("oslo", 10, false, {0, 0, 0, 1})};
  EXPECT_THAT(texts_of(find_entities(tokens, tags, "simple")),
              ElementsAre("PER: anna", "PER: paul", "LOC: oslo"));
  EXPECT_THAT(find_entities({}, tags, "simple"), ElementsAre());
}

TEST(Entities, SchemesWithEndsAndSingleWords) {
  const std::vector<std::string> iobes = {"O", "B-PER", "I-PER", "E-PER", "S-PER"};
  std::vector<TaggedToken> tokens;
  for (const size_t tag : {1U, 2U, 3U, 4U, 4U, 0U, 4U, 1U, 3U}) {
    std::vector<double> scores(5);
    scores[tag] = 1;
    tokens.push_back(token("w" + std::to_string(tokens.size()), 3 * std::ssize(tokens), false, scores));
  }
  EXPECT_THAT(texts_of(find_entities(tokens, iobes, "simple")),
              ElementsAre("PER: w0 w1 w2", "PER: w3", "PER: w4", "PER: w6", "PER: w7 w8"));
}

// The best sequence of tags may have another tag than the most probable one of a token.
TEST(Entities, TagsOfTheBestSequenceCount) {
  std::vector<TaggedToken> tokens = {token("anna", 0, false, {0.6, 0.4, 0, 0})};
  EXPECT_THAT(find_entities(tokens, tags, "first"), ElementsAre());
  tokens[0].best = 1;
  for (const char* strategy : {"none", "simple", "first", "average", "max"}) {
    const auto found = find_entities(tokens, tags, strategy);
    ASSERT_EQ(found.size(), 1) << strategy;
    EXPECT_DOUBLE_EQ(found[0].score, 0.4);
  }
}

}  // namespace
}  // namespace stretto::serve
