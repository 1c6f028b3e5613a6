#include "stretto/data/samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Sample i consists of the i + 1 numbers from 0, a label for each, and i.
class Counting : public SampleDataset {
 public:
  Counting() : SampleDataset(std::vector<int32_t>{1, 2, 3}) {}
  Sample sample(int64_t index) const override {
    const Tensor ids = at::arange(index + 1, at::kLong);
    return {{"ids", ids},
            {"labels", ids * 10},
            {"mask", at::ones_like(ids)},
            {"index", at::scalar_tensor(index)}};
  }
};

TEST(Samples, AreStackedAndPadded) {
  const Batch batch = Counting().pack(std::vector<int64_t>{2, 0});
  EXPECT_THAT(batch.sample_ids, ElementsAre(2, 0));
  EXPECT_EQ(batch.count, 2);
  EXPECT_TRUE(at::equal(batch.at("ids"), at::tensor({0, 1, 2, 0, 0, 0}, at::kLong).view({2, 3})));
  EXPECT_TRUE(at::equal(batch.at("labels"), at::tensor({0, 10, 20, 0, -100, -100}, at::kLong).view({2, 3})));
  EXPECT_TRUE(at::equal(batch.at("mask"), at::tensor({1, 1, 1, 1, 0, 0}, at::kLong).view({2, 3})));
  EXPECT_THAT(batch.at("index").sizes(), ElementsAre(2));
}

TEST(Samples, AnEmptyListIsABatchWithoutTensors) {
  const Batch batch = Counting().pack({});
  EXPECT_TRUE(batch.tensors.empty());
  EXPECT_EQ(batch.count, 0);
}

TEST(Samples, EveryDimensionIsPadded) {
  const std::vector<Sample> samples = {{{"x", at::ones({1, 3})}}, {{"x", at::ones({2, 1})}}};
  const Tensor x = pad_and_stack(samples, {{"x", 7}}).at("x");
  EXPECT_TRUE(
      at::equal(x, at::tensor({1.f, 1.f, 1.f, 7.f, 7.f, 7.f, 1.f, 7.f, 7.f, 1.f, 7.f, 7.f}).view({2, 2, 3})));
}

TEST(Samples, MismatchedSamplesAreNamed) {
  const std::vector<Sample> lacking = {{{"x", at::ones({1})}}, {}};
  EXPECT_THAT(message_of<DataError>([&] { pad_and_stack(lacking); }),
              HasSubstr("sample 1 of the batch has no tensor \"x\""));
  const std::vector<Sample> typed = {{{"x", at::ones({1})}}, {{"x", at::ones({1}, at::kLong)}}};
  EXPECT_THAT(message_of<DataError>([&] { pad_and_stack(typed); }), HasSubstr("not in type"));
}

}  // namespace
}  // namespace stretto::data
