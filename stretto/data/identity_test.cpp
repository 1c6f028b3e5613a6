#include "stretto/data/identity.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/hash.h"
#include "stretto/base/message_support.h"
#include "stretto/data/packing.h"
#include "stretto/data/samples.h"
#include "stretto/data/subset.h"

namespace stretto::data {
namespace {

using ::testing::HasSubstr;

// Samples of equal lengths: a value and a label.
class Labelled : public SampleDataset {
 public:
  explicit Labelled(std::vector<int64_t> labels)
      : SampleDataset(std::ssize(labels)), labels_(std::move(labels)) {}
  Sample sample(int64_t index) const override {
    ++packed;
    return {{"x", at::full({2}, index, at::kFloat)},
            {"labels", at::scalar_tensor(labels_[static_cast<size_t>(index)], at::kLong)}};
  }
  mutable int64_t packed = 0;

 private:
  std::vector<int64_t> labels_;
};

TEST(Identity, HashesTheContentsOfSingleSamples) {
  const Labelled dataset({0, 1, 0}), again({0, 1, 0}), flipped({0, 1, 1}), longer({0, 1, 0, 1});
  const nlohmann::json saved = identify(dataset);
  EXPECT_EQ(difference("data.train", saved, again), "");
  EXPECT_THAT(difference("data.train", saved, flipped),
              has_all("data.train is not the data of the run", "number of samples (3) is equal",
                      "texts, tokens or labels differ"));
  EXPECT_THAT(difference("data.train", saved, longer),
              has_all("data.train holds 4 samples here", "3 in the run"));
  EXPECT_NE(Subset(dataset, {0, 2}).fingerprint(), Subset(flipped, {0, 2}).fingerprint());
}

TEST(Identity, EachSampleIsPackedOnce) {
  const Labelled dataset({0, 1, 0});
  identify(dataset), identify(dataset), Subset(dataset, {1}).fingerprint();
  EXPECT_EQ(dataset.packed, 3);
}

// Packed samples of two words; `older`: without places, like batches of earlier versions.
class Pairs : public Dataset {
 public:
  explicit Pairs(bool older) : older_(older) {}
  int64_t size() const override { return 3; }
  int32_t length_of(int64_t) const override { return 2; }
  Batch pack(std::span<const int64_t> samples) const override {
    static constexpr std::array<int32_t, 2> ids = {5, 6}, types = {0, 1};
    std::vector<TokenSequence> sequences;
    for (const int64_t sample : samples) sequences.push_back({ids, types, sample});
    Batch batch = pack_sequences(sequences);
    if (older_) batch.tensors.erase("places");
    return batch;
  }

 private:
  bool older_;
};

TEST(Identity, PlacesThatEqualThePositionsDoNotChangeTheFingerprint) {
  EXPECT_EQ(Pairs(false).fingerprint(), Pairs(true).fingerprint());
}

// A copy may be changed before its fingerprint is computed.
TEST(Identity, IsComputedAgainForACopy) {
  const Labelled dataset({0, 1, 0});
  const std::string fingerprint = dataset.fingerprint();
  const Labelled copy = dataset;  // NOLINT(performance-unnecessary-copy-initialization): the copy is tested
  EXPECT_EQ(copy.fingerprint(), fingerprint);
  EXPECT_EQ(copy.packed, 6);
}

// Older checkpoints have no fingerprint, or one that hashes the lengths of samples.
TEST(Identity, OlderCheckpointsRecordLess) {
  const Labelled dataset({0, 1, 0}), longer({0, 1, 0, 1});
  nlohmann::json saved = identify(dataset);
  const std::vector<int32_t> lengths = {1, 1, 1};
  EXPECT_EQ(saved["lengths_hash"],
            hash64({reinterpret_cast<const char*>(lengths.data()), lengths.size() * sizeof(int32_t)}));
  saved["fingerprint"] =
      hash128_hex({reinterpret_cast<const char*>(lengths.data()), lengths.size() * sizeof(int32_t)});
  EXPECT_EQ(difference("data.train", saved, dataset), "");
  EXPECT_EQ(difference("data.train", saved, Labelled({1, 1, 1})), "");
  EXPECT_THAT(difference("data.train", saved, longer), HasSubstr("holds 4 samples here and 3"));
  saved.erase("fingerprint");
  EXPECT_EQ(difference("data.train", saved, dataset), "");
}

}  // namespace
}  // namespace stretto::data
