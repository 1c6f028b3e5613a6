#include "stretto/data/sampler.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/data/sample_lengths_fixture.h"

namespace stretto::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int32_t> random_lengths(size_t count, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<int32_t> lengths(count);
  for (int32_t& length : lengths) length = 1 + static_cast<int32_t>(random() % 60);
  return lengths;
}

std::vector<std::vector<int64_t>> epoch_of(const Sampler& sampler, int64_t epoch) {
  std::vector<std::vector<int64_t>> batches;
  for (int64_t i = 0; i < sampler.batches(epoch); ++i) batches.push_back(sampler.batch(epoch, i));
  return batches;
}

std::vector<int64_t> sorted_union(const std::vector<std::vector<int64_t>>& batches) {
  std::vector<int64_t> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<int64_t> counting(size_t count) {
  std::vector<int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

int64_t tokens_of(const std::vector<int64_t>& batch, const std::vector<int32_t>& lengths) {
  int64_t tokens = 0;
  for (const int64_t sample : batch) tokens += lengths[static_cast<size_t>(sample)];
  return tokens;
}

TEST(Sampler, AnEpochIsEverySampleOnce) {
  for (const size_t size : {1u, 2u, 7u, 64u, 999u, 1000u}) {
    const auto lengths = random_lengths(size);
    for (const int64_t batch_size : {1, 3, 32, 2000}) {
      for (const int64_t window : {1, 4, 50}) {
        for (const auto& [shuffle, grouped] : {std::pair{false, true}, {true, true}, {true, false}}) {
          const Sampler sampler(lengths_of(lengths), {.seed = 5,
                                                      .global_batch_size = batch_size,
                                                      .shuffle = shuffle,
                                                      .group_by_length = grouped,
                                                      .window = window});
          const auto batches = epoch_of(sampler, 2);
          ASSERT_EQ(sorted_union(batches), counting(size)) << size << " " << batch_size << " " << window;
          for (size_t i = 0; i + 1 < batches.size(); ++i) ASSERT_EQ(std::ssize(batches[i]), batch_size);
          ASSERT_LE(std::ssize(batches.back()), batch_size);
        }
      }
    }
  }
}

TEST(Sampler, ATokenBudgetHoldsAndLosesNothing) {
  for (const size_t size : {1u, 50u, 3000u}) {
    const auto lengths = random_lengths(size);
    for (const int64_t budget : {60, 100, 4096}) {
      for (const auto& [shuffle, grouped] : {std::pair{false, true}, {true, true}, {true, false}}) {
        const Sampler sampler(
            lengths_of(lengths),
            {.seed = 5, .max_tokens = budget, .shuffle = shuffle, .group_by_length = grouped});
        const auto batches = epoch_of(sampler, 1);
        ASSERT_EQ(sorted_union(batches), counting(size));
        for (const auto& batch : batches) ASSERT_LE(tokens_of(batch, lengths), budget);
      }
    }
  }
  // Batches are well filled: at most one poorly filled batch per window of 50.
  const auto lengths = random_lengths(20'000);
  const Sampler sampler(lengths_of(lengths), {.seed = 5, .max_tokens = 1000});
  const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  EXPECT_LT(sampler.batches(0), tokens / 1000 * 108 / 100);
}

TEST(Sampler, ABatchDoesNotDependOnEarlierCalls) {
  const auto lengths = random_lengths(1234);
  for (const int64_t max_tokens : {0, 500}) {
    const SamplerOptions options{.seed = 9, .global_batch_size = 16, .max_tokens = max_tokens, .window = 6};
    const Sampler sampler(lengths_of(lengths), options);
    const auto forward0 = epoch_of(sampler, 0);
    const auto forward3 = epoch_of(sampler, 3);
    std::mt19937_64 random(2);
    const Sampler jumping(lengths_of(lengths), options);
    for (int draw = 0; draw < 500; ++draw) {
      const bool third = random() % 2 == 0;
      const auto& expected = third ? forward3 : forward0;
      const size_t index = random() % expected.size();
      ASSERT_EQ(jumping.batch(third ? 3 : 0, static_cast<int64_t>(index)), expected[index]);
    }
    EXPECT_EQ(Sampler(lengths_of(lengths), options).batch(3, 40), forward3[40]);
  }
}

TEST(Sampler, EpochsAndSeedsDiffer) {
  const auto lengths = random_lengths(1000);
  const Sampler one(lengths_of(lengths), {.seed = 1, .global_batch_size = 10});
  const Sampler two(lengths_of(lengths), {.seed = 2, .global_batch_size = 10});
  int same = 0;
  for (int64_t i = 0; i < 100; ++i) {
    same += one.batch(0, i) == one.batch(1, i);
    same += one.batch(0, i) == two.batch(0, i);
  }
  EXPECT_LT(same, 3);
}

TEST(Sampler, SamplesOfABatchHaveSimilarLengths) {
  const auto lengths = random_lengths(3200);  // 1 to 60 tokens; two windows of 50 x 32
  const Sampler sampler(lengths_of(lengths), {.seed = 1, .global_batch_size = 32});
  int64_t ascending = 0;
  int64_t last = 0;
  for (const auto& batch : epoch_of(sampler, 0)) {
    const auto length = [&](int64_t sample) { return lengths[static_cast<size_t>(sample)]; };
    EXPECT_LE(length(batch.back()) - length(batch.front()), 4);
    ascending += length(batch.front()) >= last;
    last = length(batch.front());
  }
  EXPECT_LT(ascending, 75);  // the batches of a window are shuffled, not in order of length
  EXPECT_GT(ascending, 25);
}

// Packed batches are better without grouping: all have about the same number of tokens.
TEST(Sampler, UngroupedBatchesMixLengths) {
  const auto lengths = random_lengths(3200);
  const Sampler sampler(lengths_of(lengths), {.seed = 1, .global_batch_size = 32, .group_by_length = false});
  std::vector<int64_t> in_order;
  for (const auto& batch : epoch_of(sampler, 0)) {
    EXPECT_NEAR(static_cast<double>(tokens_of(batch, lengths)), 32 * 30.5, 500);
    in_order.insert(in_order.end(), batch.begin(), batch.end());
  }
  const Sampler other_size(lengths_of(lengths),
                           {.seed = 1, .global_batch_size = 100, .group_by_length = false});
  EXPECT_EQ(other_size.batch(0, 1), std::vector(in_order.begin() + 100, in_order.begin() + 200))
      << "the order is the epoch's alone";
}

// Lengths regroup the samples inside a window, never across windows.
TEST(Sampler, WindowsDivideTheOrder) {
  const auto lengths = random_lengths(1000);
  const SamplerOptions options{.seed = 3, .global_batch_size = 10, .window = 5};
  const std::vector<int32_t> equal(1000, 7);
  const Sampler grouped(lengths_of(lengths), options);
  const Sampler plain(lengths_of(equal), options);  // the same order, which does not depend on the lengths
  for (int64_t window = 0; window < 20; ++window) {
    std::set<int64_t> samples;
    std::set<int64_t> expected;
    for (int64_t i = window * 5; i < window * 5 + 5; ++i) {
      for (const int64_t sample : grouped.batch(0, i)) samples.insert(sample);
      for (const int64_t sample : plain.batch(0, i)) expected.insert(sample);
    }
    ASSERT_EQ(samples, expected) << "window " << window;
  }
}

TEST(Sampler, WithoutShufflingTheOrderEqualsTheDatasets) {
  const auto lengths = random_lengths(10);
  const Sampler sampler(lengths_of(lengths), {.global_batch_size = 4, .shuffle = false, .window = 2});
  EXPECT_THAT(epoch_of(sampler, 7),
              ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7), ElementsAre(8, 9)));
}

// The expected batch is fixed: the rule is part of the contract, because a resumed run must continue with the
// same samples.
TEST(Sampler, TheRuleIsFixed) {
  const std::vector<int32_t> lengths{5, 3, 9, 1, 7, 2, 8, 4, 6, 10};
  const Sampler sampler(lengths_of(lengths), {.seed = 42, .global_batch_size = 3, .window = 2});
  EXPECT_THAT(epoch_of(sampler, 0),
              ElementsAre(ElementsAre(1, 7, 0), ElementsAre(4, 6, 9), ElementsAre(3, 5, 8), ElementsAre(2)));
}

// Code that reads all of 10^10 samples would not finish.
TEST(Sampler, SeekingReadsOneWindowOnly) {
  constexpr int64_t size = 10'000'000'000;
  int64_t asked = 0;
  const SampleLengths lengths = {size, [&asked](int64_t) { return ++asked, 7; }};
  const Sampler sampler(lengths, {.seed = 1, .global_batch_size = 32});
  EXPECT_EQ(sampler.batches(0), 312'500'000);
  EXPECT_EQ(asked, 0);
  std::set<int64_t> seen;
  for (const int64_t index : {0, 1, 156'250'000, 312'499'999}) {
    for (const int64_t sample : sampler.batch(4, index)) seen.insert(sample);
  }
  EXPECT_EQ(seen.size(), 4u * 32);
  EXPECT_GT(*seen.rbegin(), 9'000'000'000);
  EXPECT_LT(asked, 3 * 50 * 32 * 40) << "three windows, each sorted";
}

TEST(Sampler, EmptyDatasetHasNoBatches) {
  EXPECT_EQ(Sampler(SampleLengths{}, {.global_batch_size = 4}).batches(0), 0);
  EXPECT_EQ(Sampler(SampleLengths{}, {.max_tokens = 4}).batches(0), 0);
}

TEST(Sampler, HugeOptionsDoNotOverflow) {
  const auto lengths = random_lengths(5);
  constexpr int64_t huge = INT64_MAX;
  EXPECT_EQ(
      sorted_union(epoch_of(Sampler(lengths_of(lengths), {.global_batch_size = huge, .window = huge}), 0)),
      counting(5));
  EXPECT_EQ(sorted_union(epoch_of(Sampler(lengths_of(lengths), {.max_tokens = huge, .window = huge}), 0)),
            counting(5));
}

TEST(Sampler, Refusals) {
  const std::vector<int32_t> lengths{5, 30, 7};
  const auto message = [&](const SamplerOptions& options, int64_t epoch, int64_t index) {
    return message_of([&] { Sampler(lengths_of(lengths), options).batch(epoch, index); });
  };
  EXPECT_THAT(message({.max_tokens = 20}, 0, 0),
              has_all("sample 1 (counted from 0)", "30 tokens", "max_tokens = 20"));
  EXPECT_THAT(message({.global_batch_size = 0}, 0, 0), HasSubstr("a global batch of 0 samples"));
  EXPECT_THAT(message({.global_batch_size = 2, .window = 0}, 0, 0), HasSubstr("a window of 0 batches"));
  EXPECT_THAT(message({.max_tokens = -1}, 0, 0), HasSubstr("at most -1 tokens"));
  EXPECT_THAT(message({.global_batch_size = 2}, 0, 2), HasSubstr("epoch 0 has batches 0 to 1, not 2"));
  EXPECT_THAT(message({.global_batch_size = 2}, -1, 0), HasSubstr("there is no epoch -1"));
}

}  // namespace
}  // namespace stretto::data
