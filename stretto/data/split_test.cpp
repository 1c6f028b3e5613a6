#include "stretto/data/split.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/data/sample_lengths_fixture.h"

namespace stretto::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int32_t> lengths_up_to(int32_t longest, size_t count) {
  std::mt19937_64 random(count);
  std::vector<int32_t> lengths(count);
  for (int32_t& length : lengths)
    length = 1 + static_cast<int32_t>(random() % static_cast<uint64_t>(longest));
  return lengths;
}

std::vector<int64_t> first_samples(size_t count) {
  std::vector<int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// Checks the laws for the parts of all ranks in one batch.
void check_parts(const std::vector<MicroBatches>& ranks, const std::vector<int64_t>& batch,
                 const std::vector<int32_t>& lengths) {
  std::vector<int64_t> all;
  std::vector<int64_t> tokens(ranks.size(), 0);
  int32_t longest = 0;
  for (const int64_t sample : batch) longest = std::max(longest, lengths[static_cast<size_t>(sample)]);
  for (size_t step = 0; step < ranks[0].size(); ++step) {
    size_t fewest = batch.size();
    size_t most = 0;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      ASSERT_EQ(ranks[rank].size(), ranks[0].size()) << "every rank has the same steps";
      const auto& part = ranks[rank][step];
      fewest = std::min(fewest, part.size());
      most = std::max(most, part.size());
      for (const int64_t sample : part) tokens[rank] += lengths[static_cast<size_t>(sample)];
      all.insert(all.end(), part.begin(), part.end());
    }
    ASSERT_LE(most - fewest, 1u);
    const auto [least, greatest] = std::minmax_element(tokens.begin(), tokens.end());
    ASSERT_LE(*greatest - *least, longest);
  }
  std::sort(all.begin(), all.end());
  auto expected = batch;
  std::sort(expected.begin(), expected.end());
  ASSERT_EQ(all, expected);
}

// In packed batches, no micro-batch is much larger than the others.
TEST(Split, MicroBatchesHaveSimilarTokensWithoutPadding) {
  for (const size_t count : {8u, 63u, 64u, 130u}) {
    const auto lengths = lengths_up_to(50, count);
    const auto batch = first_samples(count);
    for (const int ranks : {1, 2, 3}) {
      for (const int64_t steps : {1, 4, 7}) {
        std::vector<MicroBatches> parts;
        for (int rank = 0; rank < ranks; ++rank)
          parts.push_back(split_batch(batch, lengths_of(lengths), ranks, rank, steps, false));
        check_parts(parts, batch, lengths);
        std::vector<int64_t> tokens(static_cast<size_t>(steps));
        for (const MicroBatches& part : parts) {
          for (size_t step = 0; step < part.size(); ++step) {
            for (const int64_t sample : part[step]) tokens[step] += lengths[static_cast<size_t>(sample)];
          }
        }
        const auto [least, greatest] = std::minmax_element(tokens.begin(), tokens.end());
        EXPECT_LE(*greatest - *least, 100) << count << " samples, " << steps << " steps";
      }
    }
  }
}

TEST(Split, PartsCoverTheBatch) {
  for (const size_t size : {1u, 2u, 5u, 31u, 32u, 33u, 100u}) {
    const auto lengths = lengths_up_to(100, size);
    const auto batch = first_samples(size);
    for (int ranks = 1; ranks <= 7; ++ranks) {
      for (const int64_t steps : {1, 2, 3, 8}) {
        std::vector<MicroBatches> parts;
        for (int rank = 0; rank < ranks; ++rank)
          parts.push_back(split_batch(batch, lengths_of(lengths), ranks, rank, steps));
        check_parts(parts, batch, lengths);
        ASSERT_EQ(std::ssize(parts[0]), steps);
      }
    }
  }
}

TEST(Split, BatchSizeBoundsEveryPart) {
  for (const size_t size : {1u, 16u, 17u, 32u, 95u}) {
    const auto lengths = lengths_up_to(50, size);
    for (int ranks = 1; ranks <= 7; ++ranks) {
      for (const int64_t batch_size : {1, 4, 11}) {
        const int64_t steps = count_micro_batches(static_cast<int64_t>(size), ranks, batch_size);
        for (int rank = 0; rank < ranks; ++rank) {
          for (const auto& part : split_batch(first_samples(size), lengths_of(lengths), ranks, rank, steps)) {
            ASSERT_LE(std::ssize(part), batch_size);
          }
        }
      }
    }
  }
}

TEST(Split, MicroBatchesAreTheAccumulation) {
  EXPECT_EQ(count_micro_batches(64, 2, 16), 2);
  EXPECT_EQ(count_micro_batches(33, 2, 16), 2);  // the last batch of an epoch
  EXPECT_EQ(count_micro_batches(5, 2, 16), 1);
  EXPECT_EQ(count_micro_batches(32, 3, 11), 1);  // not divisible by the ranks
  EXPECT_EQ(count_micro_batches(0, 3, 11), 0);
  EXPECT_EQ(count_micro_batches(INT64_MAX, 1, INT64_MAX), 1);
}

TEST(Split, LongestFirstAndBalanced) {
  const std::vector<int32_t> lengths{1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<int64_t> batch{0, 1, 2, 3, 4, 5, 6, 7};
  // Lengths 8 7 6 5 give {8, 5} and {7, 6}. Both ranks then have 13 tokens, so that 4 3 2 1 give {4, 1} and
  // {3, 2}.
  EXPECT_THAT(split_batch(batch, lengths_of(lengths), 2, 0, 2),
              ElementsAre(ElementsAre(7, 4), ElementsAre(3, 0)));
  EXPECT_THAT(split_batch(batch, lengths_of(lengths), 2, 1, 2),
              ElementsAre(ElementsAre(6, 5), ElementsAre(2, 1)));
}

TEST(Split, ARankMayBeLeftWithoutASample) {
  const std::vector<int32_t> lengths{4, 4};
  EXPECT_THAT(split_batch(first_samples(2), lengths_of(lengths), 3, 1, 1), ElementsAre(ElementsAre(1)));
  EXPECT_THAT(split_batch(first_samples(2), lengths_of(lengths), 3, 2, 1), ElementsAre(ElementsAre()));
}

TEST(Split, Refusals) {
  const std::vector<int32_t> lengths{4, 4};
  EXPECT_THAT(message_of<ConfigError>([&] { split_batch(first_samples(2), lengths_of(lengths), 2, 2, 1); }),
              HasSubstr("rank 2 of 2 ranks"));
  EXPECT_THAT(message_of<ConfigError>([&] { split_batch(first_samples(2), lengths_of(lengths), 2, 0, 0); }),
              HasSubstr("into 0 micro-batches"));
  EXPECT_THAT(message_of<ConfigError>([&] { count_micro_batches(2, 0, 1); }),
              HasSubstr("0 ranks with 1 sample each"));
}

}  // namespace
}  // namespace stretto::data
