#include "stretto/data/global_batches.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/data/packing.h"

namespace stretto::data {
namespace {

using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

class Fixed : public Dataset {
 public:
  explicit Fixed(std::vector<int32_t> lengths) : lengths_(std::move(lengths)) {}
  int64_t size() const override { return std::ssize(lengths_); }
  int32_t length_of(int64_t sample) const override { return lengths_[static_cast<size_t>(sample)]; }
  Batch pack(std::span<const int64_t>) const override { return {}; }

 private:
  std::vector<int32_t> lengths_;
};

std::vector<int32_t> some_lengths(size_t count) {
  std::vector<int32_t> lengths(count);
  for (size_t i = 0; i < count; ++i) lengths[i] = static_cast<int32_t>(1 + i * 7 % 13);
  return lengths;
}

std::vector<int64_t> of_all_ranks(int world_size, const std::function<GlobalBatch(int)>& batch_of) {
  std::vector<int64_t> samples;
  for (int rank = 0; rank < world_size; ++rank) {
    for (const auto& micro_batch : batch_of(rank).micro_batches)
      samples.insert(samples.end(), micro_batch.begin(), micro_batch.end());
  }
  return samples;
}

TEST(GlobalBatches, TheRanksPartsAreTheBatch) {
  const Fixed dataset(some_lengths(40));
  for (const int world_size : {1, 2, 3}) {
    for (const BatchOptions& sizes :
         {BatchOptions{.global_batch_size = 12, .batch_size = 2}, BatchOptions{.max_tokens = 25}}) {
      const auto batches_of = [&](int rank) {
        BatchOptions options = sizes;
        options.world_size = world_size;
        options.rank = rank;
        return GlobalBatches(dataset, options);
      };
      for (int64_t index = 0; index < batches_of(0).batches(1); ++index) {
        const auto samples = batches_of(0).batch(1, index).samples;
        EXPECT_THAT(of_all_ranks(world_size, [&](int rank) { return batches_of(rank).batch(1, index); }),
                    UnorderedElementsAreArray(samples));
      }
    }
  }
}

TEST(GlobalBatches, SizesDecideTheMicroBatches) {
  const Fixed dataset(some_lengths(40));
  EXPECT_EQ(GlobalBatches(dataset, {.global_batch_size = 12, .batch_size = 3, .world_size = 2})
                .batch(0, 0)
                .micro_batches.size(),
            2u);
  EXPECT_EQ(GlobalBatches(dataset, {.max_tokens = 30, .grad_accumulation_steps = 3})
                .batch(0, 0)
                .micro_batches.size(),
            3u);
  EXPECT_FALSE(
      GlobalBatches(dataset, {.global_batch_size = 2, .world_size = 3}).batch(0, 0).reaches_all_ranks(3));
  EXPECT_TRUE(
      GlobalBatches(dataset, {.global_batch_size = 3, .world_size = 3}).batch(0, 0).reaches_all_ranks(3));
  EXPECT_EQ(GlobalBatches(dataset, {.max_tokens = INT64_MAX, .grad_accumulation_steps = 3}).batches(0), 1);
}

// The micro-batches of one rank are divided in order, even if there are fewer samples than micro-batches.
TEST(GlobalBatches, SameMicroBatchesForAnyNumberOfRanks) {
  const Fixed dataset(some_lengths(100));
  for (const int64_t samples : {3, 50, 64}) {
    std::vector<int64_t> global(static_cast<size_t>(samples));
    std::iota(global.begin(), global.end(), 7);
    const auto micro_batches = [&](int ranks) {
      MicroBatches all;
      const int64_t most = (8 + ranks - 1) / ranks;
      for (int rank = 0; rank < ranks; ++rank) {
        const GlobalBatches batches(
            dataset,
            {.global_batch_size = 64, .batch_size = 8, .same_parts = 8, .world_size = ranks, .rank = rank});
        GlobalBatch batch = batches.split(global);
        EXPECT_THAT(batch.micro_batches, SizeIs(most)) << "as many passes on each rank";
        EXPECT_EQ(batch.own_parts.begin, std::ssize(all));
        EXPECT_EQ(batch.reaches_all_ranks(ranks), samples >= 8 && 8 % ranks == 0) << ranks;
        const auto idle = batch.micro_batches.end() - batch.own_parts.size();
        for (auto part = batch.micro_batches.begin(); part < idle; ++part) EXPECT_TRUE(part->empty());
        all.insert(all.end(), idle, batch.micro_batches.end());
      }
      return all;
    };
    EXPECT_THAT(micro_batches(1), SizeIs(8));
    for (const int ranks : {2, 3, 4, 5, 7, 8}) EXPECT_EQ(micro_batches(ranks), micro_batches(1)) << ranks;
    std::vector<int64_t> found;
    for (const auto& part : micro_batches(4)) found.insert(found.end(), part.begin(), part.end());
    EXPECT_THAT(found, UnorderedElementsAreArray(global));
  }
}

TEST(Packing, SequencesFollowEachOther) {
  const std::vector<int32_t> ids = {5, 6, 7, 8};
  const std::vector<int32_t> types = {0, 0, 1, 1};
  const std::vector<TokenSequence> sequences = {{std::span(ids).first(3), std::span(types).first(3), 4},
                                                {{}, {}, 9},
                                                {std::span(ids).last(1), std::span(types).last(1), 2}};
  const Batch batch = pack_sequences(sequences);
  const auto values = [&](const char* name) {
    const Tensor& tensor = batch.at(name);
    return std::vector<int64_t>(tensor.data_ptr<int64_t>(), tensor.data_ptr<int64_t>() + tensor.numel());
  };
  using Values = std::vector<int64_t>;
  EXPECT_EQ(batch.count, 3);
  EXPECT_EQ(batch.sample_ids, (Values{4, 9, 2}));
  EXPECT_EQ(values("input_ids"), (Values{5, 6, 7, 8}));
  EXPECT_EQ(values("token_type_ids"), (Values{0, 0, 1, 1}));
  EXPECT_EQ(values("position_ids"), (Values{0, 1, 2, 0}));
  EXPECT_EQ(values("samples"), (Values{4, 4, 4, 2}));
  EXPECT_EQ(values("places"), (Values{0, 1, 2, 0}));
  EXPECT_TRUE(batch.at("places").is_same(batch.at("position_ids"))) << "no separate memory";
  EXPECT_EQ(values("cu_seqlens"), (Values{0, 3, 3, 4}));
  EXPECT_EQ(pack_sequences({}).count, 0);
}

// The dropout masks of the documents differ, like those of one sequence.
TEST(Packing, DocumentsOfOneSampleHaveSuccessivePlaces) {
  const std::vector<int32_t> ids = {5, 6, 7, 8, 9, 10};
  const std::vector<int32_t> types(6, 0);
  const auto part = [&](size_t first, size_t count, int64_t sample) {
    return TokenSequence{std::span(ids).subspan(first, count), std::span(types).first(count), sample};
  };
  const Batch batch = pack_sequences(std::vector{part(0, 2, 4), part(2, 1, 9), part(3, 3, 4)}, 4);
  EXPECT_TRUE(at::equal(batch.at("position_ids"), at::tensor({0, 1, 0, 0, 1, 2, 0, 0}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.at("places"), at::tensor({0, 1, 0, 2, 3, 4, 0, 0}, at::kLong)));
}

TEST(Packing, PaddingRepeatsTheFirstToken) {
  const std::vector<int32_t> ids = {5, 6, 7};
  const std::vector<int32_t> types = {1, 0, 0};
  const std::vector<TokenSequence> sequences = {{std::span(ids).first(2), std::span(types).first(2), 4},
                                                {std::span(ids).last(1), std::span(types).last(1), 2}};
  const Batch batch = pack_sequences(sequences, 4);
  const auto is = [&](const char* name, const std::vector<int64_t>& expected) {
    return at::equal(batch.at(name), at::tensor(expected));
  };
  EXPECT_TRUE(is("input_ids", {5, 6, 7, 5}));
  EXPECT_TRUE(is("token_type_ids", {1, 0, 0, 1}));
  EXPECT_TRUE(is("position_ids", {0, 1, 0, 0}));
  EXPECT_TRUE(is("samples", {4, 4, 2, 4}));
  EXPECT_TRUE(is("cu_seqlens", {0, 2, 3}));
  EXPECT_EQ(pack_sequences(sequences, 3).at("input_ids").numel(), 3) << "nothing to pad";
  EXPECT_TRUE(pack_sequences({}, 4).tensors.empty());
}

}  // namespace
}  // namespace stretto::data
