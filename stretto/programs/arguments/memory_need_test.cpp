#include "stretto/programs/arguments/memory_need.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/optim_config/optimizers.h"
#include "stretto/programs/arguments/recipe_outline.h"

namespace stretto::arguments {
namespace {

using ::testing::HasSubstr;

class MemoryNeed : public ::testing::Test {
 protected:
  MemoryNeed() {
    // 12 layers of BERT base: 85 million, and 24 million in the embeddings.
    write_file_atomic(
        folder_.path() / "config.json",
        R"({"model_type": "bert", "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12,
                          "intermediate_size": 3072, "max_position_embeddings": 512})");
    recipe_.model.config = folder_.path() / "config.json";
  }
  TempFolder folder_;
  Recipe recipe_;
};

TEST_F(MemoryNeed, SumsModelOptimizerAndData) {
  const double alone = memory_per_rank(recipe_, Verb::train, {});
  EXPECT_GT(alone, 1.7e9);
  EXPECT_LT(alone, 2.0e9);
  EXPECT_LT(memory_per_rank(recipe_, Verb::test, {}), 0.6e9);
  write_file_atomic(folder_.path() / "train.tsv", std::string(1'000'000, 'x'));
  recipe_.data.train = folder_.path() / "train.tsv";
  EXPECT_EQ(memory_per_rank(recipe_, Verb::train, {}), alone + 2e6);
}

TEST_F(MemoryNeed, IsBoundedWithoutARecipe) {
  EXPECT_NO_THROW(require_memory(10, 1e9, 10e9));
  EXPECT_THAT(message_of<ConfigError>([] { require_memory(11, 1e9, 10e9); }),
              ::testing::AllOf(HasSubstr("11 ranks need at least 10.2 GiB"), HasSubstr("start at most 10")));
}

TEST_F(MemoryNeed, MoreRanksThanFitAreRefusedWithTheNumberThatDoes) {
  EXPECT_NO_THROW(require_memory(recipe_, Verb::train, {.ranks = 8, .ranks_per_host = 8}, 16e9));
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { require_memory(recipe_, Verb::train, {.ranks = 999, .ranks_per_host = 999}, 16e9); }),
              has_all("999 ranks need at least ", "start at most 8 (-N 8), or pass --oversubscribe"));
}

// The row of a strategy in the table, not its name, determines what is sharded.
TEST_F(MemoryNeed, FollowsTheStrategysRow) {
  const JobShape host = {.ranks = 4, .ranks_per_host = 4};
  const auto per_rank = [&](const std::string& strategy) {
    recipe_.training.strategy = strategy;
    return memory_per_rank(recipe_, Verb::train, host);
  };
  const double ddp = per_rank("ddp");
  EXPECT_EQ(ddp, memory_per_rank(recipe_, Verb::train, {}));
  EXPECT_LT(per_rank("zero1"), 0.65 * ddp);
  EXPECT_LT(per_rank("zero2"), 0.4 * ddp);
  recipe_.training.dp_shard = 2;
  const double halves = per_rank("hsdp");
  recipe_.training.dp_shard.reset();
  EXPECT_GT(halves, 1.5 * per_rank("hsdp"));
  EXPECT_LT(halves, 0.65 * ddp);
  static const bool added = register_sharding({.name = "ddp_that_shards", .optimizer = Held::sharded});
  EXPECT_TRUE(added);
  EXPECT_LT(per_rank("ddp_that_shards"), 0.65 * ddp);
}

TEST_F(MemoryNeed, HeadsThatRanksCannotDivideAreRefusedBeforeTheyStart) {
  recipe_.training.mesh.tp = 4;
  EXPECT_NO_THROW(require_division(recipe_));
  recipe_.training.mesh.tp = 5;
  EXPECT_THAT(message_of<ConfigError>([&] { require_division(recipe_); }),
              has_all("training.mesh.tp: ", "12 attention heads", "12 heads of keys and values", "5 ranks"));
}

// Memory is divided among all ranks of the job, including those of other hosts.
TEST_F(MemoryNeed, IsDividedAmongTheRanksOfAllHosts) {
  recipe_.training.strategy = "fsdp";
  EXPECT_LT(memory_per_rank(recipe_, Verb::train, {.ranks = 16, .ranks_per_host = 2}),
            0.5 * memory_per_rank(recipe_, Verb::train, {.ranks = 2, .ranks_per_host = 2}));
}

TEST_F(MemoryNeed, OptimizersWithoutStateNeedLess) {
  const double adamw = memory_per_rank(recipe_, Verb::train, {});
  recipe_.optimizer = optim::SgdOptions{.lr = 0.1};
  EXPECT_LT(memory_per_rank(recipe_, Verb::train, {}), 0.6 * adamw);
}

// DistilBERT and BART have other names for their sizes than BERT.
TEST_F(MemoryNeed, IsKnownForEveryBundledFamily) {
  for (const char* config :
       {R"({"model_type": "distilbert", "dim": 768, "hidden_dim": 3072, "n_layers": 6})",
        R"({"model_type": "bart", "d_model": 768, "encoder_layers": 6, "decoder_layers": 6})"}) {
    write_file_atomic(folder_.path() / "config.json", config);
    EXPECT_GT(memory_per_rank(recipe_, Verb::train, {}), 1e9) << config;
  }
}

TEST_F(MemoryNeed, ExcludesUnreadableModels) {
  recipe_.model.config = folder_.path() / "none.json";
  EXPECT_LT(memory_per_rank(recipe_, Verb::train, {}), 0.2e9);
}

}  // namespace
}  // namespace stretto::arguments
