#include "stretto/data/evaluation_batches.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto::data {
namespace {

using ::testing::HasSubstr;

class OfManyLengths : public Dataset {
 public:
  explicit OfManyLengths(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  int32_t length_of(int64_t sample) const override { return static_cast<int32_t>(1 + sample * 7 % 13); }
  Batch pack(std::span<const int64_t>) const override { return {}; }

 private:
  int64_t size_;
};

// The micro-batches of all parts; checks that they divide the samples of each part.
MicroBatches all_of(EvaluationBatches batches, size_t* parts = nullptr) {
  MicroBatches all;
  while (auto batch = batches.next()) {
    if (parts != nullptr) ++*parts;
    for (auto& micro_batch : batch->micro_batches) all.push_back(std::move(micro_batch));
  }
  EXPECT_EQ(std::ssize(all), batches.micro_batches());
  return all;
}

MicroBatches split_at_once(const Dataset& dataset, int world_size, int rank, int64_t batch_size) {
  std::vector<int64_t> samples(static_cast<size_t>(dataset.size()));
  std::iota(samples.begin(), samples.end(), int64_t{0});
  return split_batch(samples, lengths_of(dataset), world_size, rank,
                     count_micro_batches(dataset.size(), world_size, batch_size));
}

// The tests of split_batch() prove that these contain each sample once.
TEST(EvaluationBatches, EqualThoseOfOneGlobalBatch) {
  for (const int64_t size : {0, 1, 6, 100, 257}) {
    const OfManyLengths dataset(size);
    for (int world_size = 1; world_size <= 7; ++world_size) {
      for (int rank = 0; rank < world_size; ++rank) {
        const MicroBatches batches = all_of({dataset, world_size, rank, 8});
        ASSERT_EQ(batches, split_at_once(dataset, world_size, rank, 8));
        for (const auto& micro_batch : batches) ASSERT_LE(micro_batch.size(), 8u);
      }
    }
  }
}

TEST(EvaluationBatches, AreComputedAMillionSamplesAtATime) {
  const OfManyLengths dataset(2'500'001);
  for (const int rank : {0, 2}) {
    size_t parts = 0;
    EXPECT_TRUE(all_of({dataset, 3, rank, 32}, &parts) == split_at_once(dataset, 3, rank, 32));
    EXPECT_EQ(parts, 3u);
  }
}

TEST(EvaluationBatches, Refusals) {
  const OfManyLengths dataset(3);
  EXPECT_THAT(message_of<ConfigError>([&] { EvaluationBatches(dataset, 1, 0, 0); }),
              HasSubstr("1 rank with 0 samples each"));
  EXPECT_THAT(message_of<ConfigError>([&] { EvaluationBatches(dataset, 2, 2, 8); }),
              HasSubstr("rank 2 of 2 ranks"));
}

}  // namespace
}  // namespace stretto::data
