#include "stretto/data/subset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/data/packing.h"
#include "stretto/data/samples.h"

namespace stretto::data {
namespace {

using ::testing::ElementsAre;

class Numbers : public SampleDataset {
 public:
  Numbers() : SampleDataset(std::vector<int32_t>{5, 6, 7, 8}) {}
  Sample sample(int64_t index) const override { return {{"x", at::scalar_tensor(10 * index, at::kLong)}}; }
};

TEST(Subset, HasTheSamplesInTheGivenOrder) {
  const Numbers whole;
  const Subset part(whole, {3, 1});
  EXPECT_EQ(part.size(), 2);
  EXPECT_EQ(part.length_of(0), 8);
  EXPECT_EQ(part.length_of(1), 6);
  const Batch batch = part.pack(std::vector<int64_t>{0, 1});
  EXPECT_EQ(batch.at("x")[0].item<int64_t>(), 30);
  EXPECT_EQ(batch.at("x")[1].item<int64_t>(), 10);
  EXPECT_TRUE(part.pads());
  EXPECT_NE(part.fingerprint(), whole.fingerprint());
  EXPECT_NE(part.fingerprint(), Subset(whole, {1, 3}).fingerprint());
  EXPECT_THROW(Subset(whole, {4}), ConfigError);
}

// Sequences of three tokens.
class Sequences : public Dataset {
 public:
  int64_t size() const override { return 2; }
  int32_t length_of(int64_t) const override { return 3; }
  Batch pack(std::span<const int64_t> samples) const override {
    const std::vector<int32_t> ids(3);
    std::vector<TokenSequence> sequences;
    for (const int64_t sample : samples) sequences.push_back({ids, ids, sample});
    return pack_sequences(sequences);
  }
};

// Dropout depends on the sample and the place in it.
TEST(Subset, CopiesOfASampleInABatchHaveDifferentPlaces) {
  const Sequences whole;
  const Batch batch = Subset(whole, {1, 0, 1}).pack(std::vector<int64_t>{0, 1, 2});
  EXPECT_TRUE(at::equal(batch.at("samples"), at::tensor({1, 1, 1, 0, 0, 0, 1, 1, 1}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.at("places"), at::tensor({0, 1, 2, 0, 1, 2, 3, 4, 5}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.at("position_ids"), at::tensor({0, 1, 2, 0, 1, 2, 0, 1, 2}, at::kLong)));
}

TEST(Subset, EvenlySpaced) {
  EXPECT_THAT(evenly_spaced(10, 4), ElementsAre(0, 2, 5, 7));
  EXPECT_THAT(evenly_spaced(3, 9), ElementsAre(0, 1, 2));
  EXPECT_TRUE(evenly_spaced(0, 2).empty());
}

}  // namespace
}  // namespace stretto::data
