#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/csrc/autograd/autograd.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/nn/counted_memory_fixture.h"
#include "stretto/nn/functional.h"

namespace stretto::nn {
namespace {

using ::testing::HasSubstr;

struct Problem {
  Tensor x, weight, labels;
};

Problem problem(int64_t rows, int64_t classes, at::ScalarType type = at::kDouble) {
  at::manual_seed(classes);
  return {at::randn({rows, 6}, at::kDouble).to(type).requires_grad_(),
          at::randn({classes, 6}, at::kDouble).to(type).requires_grad_(),
          at::randint(classes, {rows}, at::kLong)};
}

void expect_equal(const Problem& given, const Context& context, double tolerance = 1e-12) {
  const Loss plain = cross_entropy(at::linear(given.x, given.weight), given.labels);
  const auto wanted = torch::autograd::grad({plain.sum * 3}, {given.x, given.weight});
  const Loss found = linear_cross_entropy(given.x, given.weight, given.labels, context);
  const auto gradients = torch::autograd::grad({found.sum * 3}, {given.x, given.weight});
  EXPECT_EQ(found.count, plain.count);
  EXPECT_TRUE(at::allclose(found.sum, plain.sum, tolerance, tolerance));
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_TRUE(at::allclose(gradients[i], wanted[i], 10 * tolerance, 10 * tolerance)) << i;
}

// 5000 classes need several chunks of 12000 rows.
TEST(LinearCrossEntropy, EqualsTheLogitsAndTheirCrossEntropy) {
  for (const Kernels kernels : {Kernels::fast, Kernels::reference}) {
    const Context context = {.kernels = kernels};
    for (const auto& [rows, classes] : {std::pair<int64_t, int64_t>{1, 1}, {9, 17}, {12000, 5000}})
      expect_equal(problem(rows, classes), context, rows > 9 ? 1e-10 : 1e-12);
    Problem some = problem(9, 17);
    some.labels.slice(0, 2, 5).fill_(-100);
    expect_equal(some, context);
    some.labels.fill_(-100);
    expect_equal(some, context);
    expect_equal(problem(40, 17, at::kFloat), context, 1e-5);
  }
}

TEST(LinearCrossEntropy, HoldsAPartOfTheLogitsOnly) {
  const Problem given = problem(12000, 5000);
  constexpr size_t logits = size_t{12000} * 5000 * sizeof(double);
  CountedMemory memory;
  const Loss loss = linear_cross_entropy(given.x, given.weight, given.labels);
  const auto gradients = torch::autograd::grad({loss.sum}, {given.x, given.weight});
  EXPECT_LT(memory.most(), logits / 3);
  EXPECT_GT(memory.most(), logits / 8) << "nothing was counted";
}

// The gradient is added to the parameter's buffer, which the engine sets, or returned for a parameter without
// a buffer.
TEST(LinearCrossEntropy, AddsToTheGradientBuffer) {
  const Problem given = problem(9, 17);
  const auto wanted = torch::autograd::grad(
      {cross_entropy(at::linear(given.x, given.weight), given.labels).sum}, {given.weight})[0];
  const Tensor buffer = at::ones_like(given.weight.detach());
  given.weight.mutable_grad() = buffer;
  linear_cross_entropy(given.x, given.weight, given.labels).sum.backward();
  EXPECT_TRUE(given.weight.grad().is_same(buffer));
  EXPECT_TRUE(at::allclose(buffer - 1, wanted));
  given.x.mutable_grad().reset();
  linear_cross_entropy(given.x, given.weight.detach(), given.labels).sum.backward();
  EXPECT_TRUE(at::allclose(buffer - 1, wanted)) << "a frozen weight gets no gradient";
  EXPECT_TRUE(given.x.grad().defined());
}

TEST(LinearCrossEntropy, WithoutGradientsNoneAreComputed) {
  const Problem given = problem(9, 17);
  const at::NoGradGuard no_grad;
  const Loss loss = linear_cross_entropy(given.x, given.weight, given.labels);
  EXPECT_FALSE(loss.sum.requires_grad());
  EXPECT_TRUE(at::allclose(loss.sum, cross_entropy(at::linear(given.x, given.weight), given.labels).sum));
}

TEST(LinearCrossEntropy, WrongLabelsAreRefused) {
  const Problem given = problem(2, 3);
  EXPECT_THAT(message_of([&] {
                linear_cross_entropy(given.x, given.weight, at::tensor({0, 3}, at::kLong));
              }),
              HasSubstr("linear_cross_entropy: label 3 is not one of 3 classes"));
  EXPECT_THAT(message_of([&] { linear_cross_entropy(given.x, given.weight, at::tensor({0}, at::kLong)); }),
              HasSubstr("[N] int64 are needed"));
}

}  // namespace
}  // namespace stretto::nn
