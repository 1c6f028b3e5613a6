#include "stretto/lite/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/data/example.h>

#include "stretto/base/message_support.h"
#include "stretto/lite/loop.h"

namespace stretto::lite {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Sentences {
  Tensor ids;
  std::vector<std::string> texts;
  std::optional<Tensor> mask;
  Tensor temperature;  // a scalar for the whole batch
};
auto lite_fields(Sentences& batch) { return std::tie(batch.ids, batch.texts, batch.mask, batch.temperature); }

TEST(LiteBatch, StructsAreDividedPartByPart) {
  Sentences batch = {at::arange(6).view({3, 2}), {"a", "b", "c"}, at::ones({3}), at::scalar_tensor(0.5)};
  EXPECT_EQ(count_samples(batch), 3);
  keep_samples(batch, 1, 3);
  EXPECT_TRUE(batch.ids.equal(at::tensor({2, 3, 4, 5}).view({2, 2})));
  EXPECT_THAT(batch.texts, ElementsAre("b", "c"));
  EXPECT_EQ(batch.mask->size(0), 2);
  EXPECT_EQ(batch.temperature.dim(), 0);
  int tensors = 0;
  for_each_tensor(batch, [&](Tensor&) { ++tensors; });
  EXPECT_EQ(tensors, 3);
}

TEST(LiteBatch, VectorsAreListsOfSamples) {
  std::vector<torch::data::Example<at::Tensor, at::Tensor>> examples(5, {at::ones({2}), at::ones({})});
  EXPECT_EQ(count_samples(examples), 5);
  keep_samples(examples, 4, 5);
  EXPECT_EQ(examples.size(), 1u);
  std::map<std::string, std::pair<Tensor, int>> named = {{"x", {at::ones({4}), 7}}};
  EXPECT_EQ(count_samples(named), 4);
  keep_samples(named, 0, 1);
  EXPECT_EQ(named["x"].first.size(0), 1);
  EXPECT_EQ(named["x"].second, 7);
}

TEST(LiteBatch, IndivisibleBatchesAreRefused) {
  std::tuple<Tensor, Tensor> uneven = {at::ones({3}), at::ones({2})};
  EXPECT_THAT(message_of<DataError>([&] { count_samples(uneven); }), HasSubstr("parts hold 3 and 2 samples"));
  Batch packed;
  packed.tensors = {{"ids", at::arange(6)}, {"cu_seqlens", at::tensor({0, 6})}};
  EXPECT_THAT(message_of<DataError>([&] { keep_samples(packed, 0, 1); }),
              HasSubstr("pass the dataset to Lite::setup"));
  Tensor number = at::scalar_tensor(1);
  EXPECT_FALSE(count_samples(number).has_value());
}

TEST(LiteBatch, SharesCoverABatchAndDifferByOneAtMost) {
  for (const int64_t count : {1, 2, 7, 8, 30}) {
    for (const int ranks : {1, 2, 3, 8}) {
      int64_t end = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Range own = share_range(count, rank, ranks);
        EXPECT_EQ(own.begin, end);
        EXPECT_GE(own.end - own.begin, count / ranks);
        EXPECT_LE(own.end - own.begin, count / ranks + 1);
        end = own.end;
      }
      EXPECT_EQ(end, count);
    }
  }
}

}  // namespace
}  // namespace stretto::lite
