#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/serve/entity_finder.h"

namespace stretto {
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

}  // namespace
}  // namespace stretto
