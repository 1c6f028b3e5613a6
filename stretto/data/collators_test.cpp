#include "stretto/data/collators.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto::data {
namespace {

using ::testing::HasSubstr;

Tensor ids(const std::vector<int64_t>& values) {
  return at::tensor(at::ArrayRef<int64_t>(values), at::kLong);
}

Tensor rows(const std::vector<std::vector<int64_t>>& values) {
  std::vector<Tensor> all;
  for (const auto& row : values) all.push_back(ids(row));
  return at::stack(all);
}

const std::vector<Sample> samples = {{{"input_ids", ids({5, 6, 7})}, {"labels", ids({8, 9})}},
                                     {{"input_ids", ids({5})}, {"labels", ids({7, 7, 2})}}};

TEST(Collators, PadToTheLongestSequence) {
  const Batch batch = CollatorForLongestSequence{.pad_token_id = 1}(samples);
  EXPECT_TRUE(at::equal(batch.at("input_ids"), rows({{5, 6, 7}, {5, 1, 1}})));
  EXPECT_TRUE(at::equal(batch.at("attention_mask"), rows({{1, 1, 1}, {1, 0, 0}})));
  EXPECT_TRUE(at::equal(batch.at("labels"), rows({{8, 9, -100}, {7, 7, 2}})));
  const Batch left =
      CollatorForLongestSequence{.pad_token_id = 1, .pad_to_multiple_of = 4, .pad_left = true}(samples);
  EXPECT_TRUE(at::equal(left.at("input_ids"), rows({{1, 5, 6, 7}, {1, 1, 1, 5}})));
  EXPECT_TRUE(at::equal(left.at("attention_mask"), rows({{0, 1, 1, 1}, {0, 0, 0, 1}})));
  EXPECT_TRUE(at::equal(left.at("labels"), rows({{-100, -100, 8, 9}, {-100, 7, 7, 2}})));
}

// Masks, types and other tensors of the samples are kept.
TEST(Collators, KeepOtherTensorsOfSamples) {
  std::vector<Sample> full = samples;
  for (Sample& sample : full) {
    sample["attention_mask"] = at::zeros_like(sample.at("input_ids"));
    sample["token_type_ids"] = at::ones_like(sample.at("input_ids"));
    sample["labels"] = at::scalar_tensor(3, at::kLong);
    sample["weight"] = at::scalar_tensor(0.5);
  }
  const Batch batch = CollatorForLongestSequence{}(full);
  EXPECT_TRUE(at::equal(batch.at("attention_mask"), at::zeros({2, 3}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.at("token_type_ids"), rows({{1, 1, 1}, {1, 0, 0}})));
  EXPECT_TRUE(at::equal(batch.at("labels"), ids({3, 3})));
  EXPECT_EQ(batch.at("weight").sizes(), (std::vector<int64_t>{2}));
  EXPECT_TRUE(CollatorForLongestSequence{}({}).tensors.empty());
}

TEST(Collators, MoveLabelsIntoTheDecoder) {
  const CollatorForSeq2Seq collate = {.padding = {.pad_token_id = 1}, .decoder_start_token_id = 2};
  const Batch batch = collate(samples);
  EXPECT_TRUE(at::equal(batch.at("labels"), rows({{8, 9, -100}, {7, 7, 2}})));
  EXPECT_TRUE(at::equal(batch.at("decoder_input_ids"), rows({{2, 8, 9}, {2, 7, 7}})));
  const Batch longer = CollatorForSeq2Seq{.padding = {.pad_token_id = 1, .pad_to_multiple_of = 4},
                                          .decoder_start_token_id = 2}(samples);
  EXPECT_TRUE(at::equal(longer.at("decoder_input_ids"), rows({{2, 8, 9, 1}, {2, 7, 7, 2}})));
  EXPECT_FALSE(CollatorForSeq2Seq{}(samples).has("decoder_input_ids"));
}

TEST(Collators, TokensAreTheLabelsOfLanguageModels) {
  const Batch batch = CollatorForLanguageModeling{.padding = {.pad_token_id = 5}}(samples);
  EXPECT_TRUE(at::equal(batch.at("labels"), rows({{5, 6, 7}, {5, -100, -100}})));
}

TEST(Collators, MistakesAreNamed) {
  EXPECT_THAT(message_of<ConfigError>([&] { CollatorForLongestSequence{.pad_to_multiple_of = 0}(samples); }),
              HasSubstr("pad_to_multiple_of is 0"));
  EXPECT_THAT(message_of<DataError>([&] {
                CollatorForLongestSequence{}(std::vector<Sample>{{{"x", ids({1})}}});
              }),
              HasSubstr("sample 0 of the batch has no sequence \"input_ids\""));
  std::vector<Sample> uneven = samples;
  uneven[1].erase("labels");
  EXPECT_THAT(message_of<DataError>([&] { CollatorForLongestSequence{}(uneven); }),
              HasSubstr("sample 1 of the batch has no sequence \"labels\""));
  EXPECT_THAT(
      message_of<DataError>([&] {
        CollatorForSeq2Seq{.decoder_start_token_id = 2}(std::vector<Sample>{{{"input_ids", ids({1})}}});
      }),
      HasSubstr("samples have no sequence \"labels\""));
  const std::vector<int64_t> one = {0};
  EXPECT_THAT(message_of<ShapeError>([&] { mask_tokens(ids({1}), one, 1, {.vocab_size = 9}); }),
              HasSubstr("expected [1, T] Long"));
  EXPECT_THAT(message_of<ConfigError>([&] {
                mask_tokens(rows({{1}}), one, 1, {.vocab_size = 9, .mask_share = 0.9, .random_share = 0.2});
              }),
              HasSubstr("the shares together at most 1"));
  EXPECT_THAT(message_of<ConfigError>([&] { mask_tokens(rows({{1}}), one, 1, {}); }),
              HasSubstr("vocab_size is 0"));
}

TEST(MaskTokens, ChoosesAndReplacesByItsShares) {
  const TokenMasking masking = {.mask_token_id = 4, .vocab_size = 1000, .special_ids = {0, 2}};
  const Tensor tokens = at::arange(40000, at::kLong).remainder(900).view({100, 400}) + 10;
  tokens.select(1, 0).fill_(2);
  std::vector<int64_t> samples(100);
  std::iota(samples.begin(), samples.end(), 1000);
  const MaskedTokens masked = mask_tokens(tokens, samples, 7, masking);
  const Tensor chosen = masked.labels != -100;
  const auto count = [](const Tensor& condition) { return condition.sum().item<double>(); };
  const double total = count(chosen);
  EXPECT_NEAR(total / 39900, 0.15, 0.006);
  EXPECT_EQ(count(chosen.select(1, 0)), 0) << "special tokens";
  EXPECT_TRUE(at::equal(masked.labels.masked_select(chosen), tokens.masked_select(chosen)));
  EXPECT_TRUE(at::equal(masked.input_ids.masked_select(~chosen), tokens.masked_select(~chosen)));
  const Tensor now = masked.input_ids.masked_select(chosen);
  EXPECT_NEAR(count(now == 4) / total, 0.8, 0.02);
  EXPECT_NEAR(count(now == tokens.masked_select(chosen)) / total, 0.1, 0.02);
  EXPECT_FALSE(at::equal(mask_tokens(tokens, samples, 8, masking).labels, masked.labels)) << "another epoch";
  EXPECT_TRUE(at::equal(tokens.select(1, 0), at::full({100}, 2, at::kLong))) << "its argument is unchanged";
}

// The same tokens are chosen in another batch with other padding.
TEST(MaskTokens, DoesNotDependOnTheBatch) {
  const TokenMasking masking = {.mask_token_id = 4, .vocab_size = 50, .special_ids = {0}, .probability = 0.5};
  const Tensor two = at::arange(5, 45, at::kLong).view({2, 20});
  const std::vector<int64_t> samples = {31, 8};
  const MaskedTokens together = mask_tokens(two, samples, 3, masking);
  const Tensor padded = at::constant_pad_nd(two.slice(0, 1, 2), {3, 4}, 0);
  const MaskedTokens alone = mask_tokens(padded, std::vector<int64_t>{8}, 3, masking);
  EXPECT_TRUE(at::equal(alone.labels.slice(1, 3, 23), together.labels.slice(0, 1, 2)));
  EXPECT_TRUE(at::equal(alone.input_ids.slice(1, 3, 23), together.input_ids.slice(0, 1, 2)));
}

}  // namespace
}  // namespace stretto::data
