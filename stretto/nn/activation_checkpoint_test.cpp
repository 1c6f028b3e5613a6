#include "stretto/nn/activation_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stretto::nn {
namespace {

Tensor values(double from, bool requires_grad) {
  return (at::arange(6, at::kDouble).view({3, 2}) + from).requires_grad_(requires_grad);
}

// A decoder block that uses the encoder's states twice and its own states once.
Tensor block(const Carry& carry) { return at::tanh(carry[0] * carry[1] + at::sin(carry[1])); }

TEST(ActivationCheckpoint, EachTensorOfTheCarryGetsItsGradient) {
  const Carry kept = {values(0, true), values(1, true)}, recomputed = {values(0, true), values(1, true)};
  const Tensor first = block({block(kept), kept[1]});
  const Tensor second =
      activation_checkpoint(block, {activation_checkpoint(block, recomputed, {}), recomputed[1]}, {});
  EXPECT_TRUE(at::equal(second, first));
  first.sum().backward();
  second.sum().backward();
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(at::equal(recomputed[i].grad(), kept[i].grad())) << i;
}

TEST(ActivationCheckpoint, ATensorWithoutGradientIsCarriedToo) {
  const Carry carry = {values(0, true), values(1, false)};
  activation_checkpoint(block, carry, {}).sum().backward();
  EXPECT_TRUE(carry[0].grad().defined());
  EXPECT_FALSE(carry[1].grad().defined());
}

}  // namespace
}  // namespace stretto::nn
