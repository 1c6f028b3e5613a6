#include "stretto/programs/arguments/memory_need.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"

namespace stretto::arguments {
namespace {

using ::testing::HasSubstr;

class MemoryNeed : public ::testing::Test {
 protected:
  MemoryNeed() {
    // 12 layers of BERT base: 85 million, and 24 million in the embeddings.
    write_file_atomic(folder_.path() / "config.json",
                      R"({"vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12,
                          "intermediate_size": 3072, "max_position_embeddings": 512})");
    recipe_.model.config = folder_.path() / "config.json";
  }
  TempFolder folder_;
  Recipe recipe_;
};

TEST_F(MemoryNeed, IsThatOfModelOptimizerAndData) {
  const double alone = memory_per_rank(recipe_, Verb::train, 1);
  EXPECT_GT(alone, 1.7e9);
  EXPECT_LT(alone, 2.0e9);
  EXPECT_LT(memory_per_rank(recipe_, Verb::test, 1), 0.6e9);
  write_file_atomic(folder_.path() / "train.tsv", std::string(1'000'000, 'x'));
  recipe_.data.train = folder_.path() / "train.tsv";
  EXPECT_EQ(memory_per_rank(recipe_, Verb::train, 1), alone + 2e6);
}

TEST_F(MemoryNeed, OfRanksWithoutARecipeIsBoundedToo) {
  EXPECT_NO_THROW(require_memory(10, 1e9, 10e9));
  EXPECT_THAT([] { require_memory(11, 1e9, 10e9); },
              ::testing::ThrowsMessage<ConfigError>(::testing::AllOf(
                  HasSubstr("11 ranks need at least 10.2 GiB"), HasSubstr("start at most 10"))));
}

TEST_F(MemoryNeed, MoreRanksThanFitAreRefusedWithTheNumberThatDoes) {
  EXPECT_NO_THROW(require_memory(recipe_, Verb::train, 8, 16e9));
  try {
    require_memory(recipe_, Verb::train, 999, 16e9);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("999 ranks need at least "));
    EXPECT_THAT(error.what(), HasSubstr("start at most 8 (-N 8), or pass --oversubscribe"));
  }
}

TEST_F(MemoryNeed, AModelThatNobodyCanReadIsOthersToReport) {
  recipe_.model.config = folder_.path() / "none.json";
  EXPECT_LT(memory_per_rank(recipe_, Verb::train, 1), 0.2e9);
}

}  // namespace
}  // namespace stretto::arguments
