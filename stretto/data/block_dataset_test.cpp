#include "stretto/data/block_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/strings.h"
#include "stretto/data/epoch_cursor.h"
#include "stretto/token_corpus/blocks.h"

namespace stretto::data {
namespace {

using ::testing::ElementsAre;

// Blocks of 4 tokens, which are numbered across blocks; the last block may be shorter. In every block a
// document begins at the third token.
class NumberedBlocks : public token_corpus::Blocks {
 public:
  explicit NumberedBlocks(int64_t tokens, int32_t first_predicted = 0)
      : tokens_(tokens), first_predicted_(first_predicted) {}
  int64_t size() const override { return (tokens_ + 3) / 4; }
  int32_t block_size() const override { return 4; }
  int32_t length(int64_t block) const override {
    return static_cast<int32_t>(std::min<int64_t>(4, tokens_ - 4 * block));
  }
  int64_t tokens() const override { return tokens_; }
  token_corpus::Block read(int64_t block) const override {
    token_corpus::Block result{{}, {0}, first_predicted_};
    for (int32_t i = 0; i < length(block); ++i) result.ids.push_back(static_cast<int32_t>(4 * block + i));
    if (length(block) > 2) result.starts.push_back(2);
    return result;
  }
  std::string fingerprint() const override { return "numbers"; }

 private:
  int64_t tokens_;
  int32_t first_predicted_;
};

std::vector<int64_t> values(const Batch& batch, const char* name) {
  const Tensor& tensor = batch.at(name);
  return {tensor.const_data_ptr<int64_t>(), tensor.const_data_ptr<int64_t>() + tensor.numel()};
}

TEST(BlockDataset, PacksDocumentsAsSequencesWithTheNextTokensAsLabels) {
  const BlockDataset dataset(std::make_shared<NumberedBlocks>(10), /*pad_to_multiple_of=*/8);
  EXPECT_EQ(dataset.size(), 3);
  EXPECT_EQ(dataset.total_length(), 10);
  const Batch batch = dataset.pack(std::vector<int64_t>{2, 0});
  EXPECT_THAT(values(batch, "input_ids"), ElementsAre(8, 9, 0, 1, 2, 3, 8, 8));
  EXPECT_THAT(values(batch, "labels"), ElementsAre(9, -100, 1, -100, 3, -100, -100, -100));
  EXPECT_THAT(values(batch, "cu_seqlens"), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(values(batch, "position_ids"), ElementsAre(0, 1, 0, 1, 0, 1, 0, 0));
  EXPECT_THAT(values(batch, "samples"), ElementsAre(2, 2, 0, 0, 0, 0, 2, 2));
  EXPECT_THAT(values(batch, "places"), ElementsAre(0, 1, 0, 1, 2, 3, 0, 0));
  EXPECT_THAT(values(batch, "cu_samples"), ElementsAre(0, 2, 6));
  EXPECT_THAT(batch.sample_ids, ElementsAre(2, 0));
  EXPECT_EQ(batch.count, 2);
  EXPECT_EQ(dataset.pack({}).count, 0);
}

// The third token of the first block is the first of a document, so it is not predicted either.
TEST(BlockDataset, TokensOfContextAreNotPredicted) {
  const BlockDataset dataset(std::make_shared<NumberedBlocks>(8, /*first_predicted=*/3));
  EXPECT_THAT(values(dataset.pack(std::vector<int64_t>{0, 1}), "labels"),
              ElementsAre(-100, -100, 3, -100, -100, -100, 7, -100));
}

int64_t own_kilobytes() {
  const std::string status = read_file("/proc/self/status");
  for (const std::string_view line : split(status, '\n')) {
    if (line.starts_with("RssAnon")) return std::stoll(std::string(line.substr(line.find(':') + 1)));
  }
  return 0;
}

// With a thousand million blocks, reading the length of each would take seconds, and an index of all would
// take gigabytes.
TEST(BlockDataset, TimeAndMemoryDoNotDependOnTheNumberOfBlocks) {
  const int64_t count = 1'000'000'000;
  const BlockDataset dataset(std::make_shared<NumberedBlocks>(4 * count - 1));
  const int64_t before = own_kilobytes();
  for (const int64_t max_tokens : {0, 64}) {
    const BatchOptions options = {
        .seed = 7, .global_batch_size = 16, .max_tokens = max_tokens, .world_size = 1};
    EpochCursor cursor(dataset, options);
    EXPECT_EQ(cursor.steps_per_epoch(), count / 16);
    for (int step = 0; step < 3; ++step) cursor.advance();
    State state;
    cursor.add_state(state);
    EpochCursor resumed(dataset, options);
    resumed.resume(state);
    EXPECT_EQ(resumed.batch().samples, cursor.batch().samples);
    state.scalars["place"]["samples"] = int64_t{16} * 31'250'000;
    state.scalars["place"]["batch"] = 31'250'000;
    resumed.resume(state);
    EXPECT_EQ(resumed.batch().samples.size(), 16);
    EXPECT_EQ(resumed.steps_left(1), count / 16 - 31'250'000);
    // Another batch size continues with the remaining samples in the same order.
    BatchOptions larger = options;
    larger.global_batch_size = 32;
    larger.max_tokens *= 2;
    EpochCursor other(dataset, larger);
    other.resume(state);
    const auto samples = other.batch().samples;
    EXPECT_TRUE(std::ranges::equal(std::span(samples).first(16), resumed.batch().samples));
  }
  EXPECT_LE(own_kilobytes() - before, 2 << 10);
}

}  // namespace
}  // namespace stretto::data
