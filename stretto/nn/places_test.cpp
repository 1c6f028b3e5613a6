// Tests that dropout masks are functions of sample and place, for samples of one sequence and for documents
// packed into one sample.
#include <array>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/message_support.h"
#include "stretto/base/philox.h"
#include "stretto/nn/functional.h"
#include "stretto/nn/sequence_dropout.h"

namespace stretto::nn {
namespace {

using ::testing::HasSubstr;

constexpr double p = 0.4;
constexpr uint64_t key = 11, site = 3;
constexpr int64_t columns = 6, heads = 2;

struct Sequence {
  int64_t sample, rows, first_place;
};

Batch packed(const std::vector<Sequence>& sequences, bool with_places) {
  std::vector<Tensor> positions, samples, places;
  std::vector<int64_t> bounds = {0};
  for (const Sequence& sequence : sequences) {
    positions.push_back(at::arange(sequence.rows));
    places.push_back(positions.back() + sequence.first_place);
    samples.push_back(at::full({sequence.rows}, sequence.sample, at::kLong));
    bounds.push_back(bounds.back() + sequence.rows);
  }
  Batch batch;
  batch.tensors = {{"cu_seqlens", at::tensor(bounds)},
                   {"position_ids", at::cat(positions)},
                   {"samples", at::cat(samples)}};
  if (with_places) batch.tensors["places"] = at::cat(places);
  return batch;
}

// Returns the mask with which existing checkpoints were trained.
double expected(int64_t sample, int64_t place, int64_t head, int64_t column) {
  const auto bits = static_cast<uint64_t>(sample);
  const auto words =
      philox({static_cast<uint32_t>(column / 4), static_cast<uint32_t>(place), static_cast<uint32_t>(bits),
              static_cast<uint32_t>(bits >> 32) | static_cast<uint32_t>(head) << 16},
             hash64(std::array<uint64_t, 2>{key, site}));
  const bool kept = words[static_cast<size_t>(column % 4)] >= std::llround(p * 4294967296.0);
  return kept ? 1 / (1 - p) : 0;
}

// Checks every function with dropout.
void expect_masks(const PackedLayout& layout, const std::vector<Sequence>& sequences, Kernels kernels) {
  const Context context = {.training = true, .key = key, .kernels = kernels};
  const Tensor ones = at::ones({layout.tokens, columns}, at::kDouble);
  const Tensor elements = dropout(ones, p, site, layout, context);
  const NormParameters constant = {at::zeros({columns}, at::kDouble), at::ones({columns}, at::kDouble), 1e-5};
  const Tensor normed = norm_dropout(ones, constant, p, site, layout, context);
  const Tensor locked = locked_dropout(ones, p, site, layout, context);
  const Tensor words = word_dropout(ones, p, site, layout, context);
  // All keys have equal weights, and value number j is 1 at key j only.
  const Tensor zeros = at::zeros({layout.tokens, heads, columns}, at::kDouble);
  const Tensor unit = at::eye(columns, at::kDouble)
                          .index_select(0, layout.position_ids)
                          .unsqueeze(1)
                          .expand({-1, heads, -1})
                          .contiguous();
  const Tensor attended = packed_attention(zeros, zeros, unit, layout, layout, p, site, context);
  const PackedLayout last = layout.last_tokens();
  const Tensor of_last =
      packed_attention(zeros.slice(0, 0, layout.batch), zeros, unit, last, layout, p, site, context);
  int64_t row = 0, number = 0;
  for (const Sequence& sequence : sequences) {
    for (int64_t i = 0; i < sequence.rows; ++i, ++row) {
      const int64_t place = sequence.first_place + i;
      for (int64_t column = 0; column < columns; ++column) {
        const double mask = expected(sequence.sample, place, 0, column);
        EXPECT_EQ(elements[row][column].item<double>(), mask);
        EXPECT_EQ(normed[row][column].item<double>(), mask);
        EXPECT_EQ(locked[row][column].item<double>(),
                  expected(sequence.sample, sequence.first_place, 0, column));
      }
      EXPECT_EQ(words[row][0].item<double>(), expected(sequence.sample, place, 0, 0) > 0 ? 1 : 0);
      for (int64_t head = 0; head < heads; ++head) {
        for (int64_t j = 0; j < sequence.rows; ++j) {
          const double weight =
              expected(sequence.sample, place, head, j) / static_cast<double>(sequence.rows);
          EXPECT_NEAR(attended[row][head * columns + j].item<double>(), weight, 1e-12);
          if (i + 1 < sequence.rows) continue;
          EXPECT_NEAR(of_last[number][head * columns + j].item<double>(), weight, 1e-12);
        }
      }
    }
    ++number;
  }
}

// In all bundled models each sample is one sequence, whose places equal its positions, whether places are
// given or not.
TEST(Places, MasksOfSamplesOfOneSequenceDependOnPositions) {
  const std::vector<Sequence> samples = {{7, 3, 0}, {int64_t{1} << 40, 2, 0}, {0, 5, 0}};
  for (const Kernels kernels : {Kernels::fast, Kernels::reference}) {
    for (const bool with_places : {false, true})
      expect_masks(PackedLayout(packed(samples, with_places)), samples, kernels);
  }
}

// The masks of a row depend on its place, regardless of the division of its sample into documents.
TEST(Places, DocumentsOfOneSampleShareNoMask) {
  const std::vector<Sequence> documents = {{7, 3, 0}, {7, 2, 3}, {9, 4, 0}, {7, 3, 5}};
  const PackedLayout layout(packed(documents, true));
  for (const Kernels kernels : {Kernels::fast, Kernels::reference}) expect_masks(layout, documents, kernels);
  const Tensor ones = at::ones({layout.tokens, 64}, at::kDouble);
  const Tensor mask = dropout(ones, p, site, layout, {.training = true, .key = key});
  EXPECT_FALSE(at::equal(mask.slice(0, 0, 3), mask.slice(0, 9, 12))) << "two documents of three rows";
}

TEST(Places, FirstAndLastTokensKeepTheirPlaces) {
  const PackedLayout layout(packed({{7, 3, 0}, {7, 2, 3}}, true));
  EXPECT_TRUE(at::equal(layout.first_tokens().places, at::tensor({0, 3}, at::kLong)));
  EXPECT_TRUE(at::equal(layout.last_tokens().places, at::tensor({2, 4}, at::kLong)));
}

TEST(Places, RefusesSequencesOfOneSampleWithoutPlaces) {
  EXPECT_THAT(message_of<DataError>([] {
                PackedLayout(packed({{7, 3, 0}, {9, 1, 0}, {7, 2, 3}}, false));
              }),
              HasSubstr("sequences 0 and 2 are both of sample 7"));
  Batch batch = packed({{7, 3, 0}}, true);
  batch.tensors["places"] = at::arange(2);
  EXPECT_THAT(message_of<DataError>([&] { PackedLayout{batch}; }), HasSubstr("3 tokens, but 2 places"));
}

}  // namespace
}  // namespace stretto::nn
