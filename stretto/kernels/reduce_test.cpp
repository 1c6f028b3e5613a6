#include "stretto/kernels/reduce.h"

#include <limits>

#include <gtest/gtest.h>

#include <ATen/ATen.h>

namespace stretto::kernels {
namespace {

using at::Tensor;

constexpr std::array dtypes = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kByte,
                               at::kChar,  at::kShort,  at::kInt,      at::kLong};

// The expected result, by ATen in the dtype of the sums.
Tensor reference(ReduceOp op, const std::vector<Tensor>& in) {
  const bool narrow = in[0].scalar_type() == at::kBFloat16 || in[0].scalar_type() == at::kHalf;
  Tensor result = narrow ? in[0].to(at::kFloat) : in[0].clone();
  for (size_t i = 1; i < in.size(); ++i) {
    switch (op) {
      case ReduceOp::sum:
        result.add_(in[i]);
        break;
      case ReduceOp::product:
        result.mul_(in[i]);
        break;
      case ReduceOp::min:
        result = at::minimum(result, in[i].to(result.scalar_type()));
        break;
      case ReduceOp::max:
        result = at::maximum(result, in[i].to(result.scalar_type()));
        break;
    }
  }
  return result.to(in[0].scalar_type());
}

std::vector<Tensor> random_inputs(at::ScalarType dtype, int count, int64_t n, uint64_t seed) {
  at::Generator random = at::detail::createCPUGenerator(seed);
  std::vector<Tensor> inputs;
  for (int i = 0; i < count; ++i) {
    inputs.push_back(at::isFloatingType(dtype) ? at::randn({n}, random).to(dtype)
                                               : at::randint(0, 120, {n}, random, at::TensorOptions(dtype)));
  }
  return inputs;
}

TEST(Reduce, EqualsATenForEveryTypeOperationAndSize) {
  for (const at::ScalarType dtype : dtypes) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max}) {
      for (const int64_t n : {0, 1, 7, 1024, 3001}) {
        for (const int count : {1, 2, 5}) {
          auto in = random_inputs(dtype, count, n, static_cast<uint64_t>(n + count));
          const Tensor expected = reference(op, in);
          Tensor separate = at::empty({n}, dtype);
          std::vector<const void*> sources;
          for (const Tensor& tensor : in) sources.push_back(tensor.const_data_ptr());
          const std::array<void*, 2> destinations = {separate.data_ptr(), in.back().data_ptr()};
          reduce(op, dtype, sources, destinations, n);
          EXPECT_TRUE(at::equal(separate, expected)) << dtype << " " << n << " of " << count;
          EXPECT_TRUE(at::equal(in.back(), expected)) << dtype << " " << n << " of " << count;
        }
      }
    }
  }
}

TEST(Reduce, NaNAndInfinityPropagate) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                   infinity = std::numeric_limits<double>::infinity();
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max}) {
      const Tensor a = at::tensor({nan, 1.0, infinity, 2.0}, at::kDouble).to(dtype);
      const Tensor b = at::tensor({1.0, nan, 3.0, infinity}, at::kDouble).to(dtype);
      Tensor out = at::empty({4}, dtype);
      const std::array<const void*, 2> in = {a.const_data_ptr(), b.const_data_ptr()};
      const std::array<void*, 1> outs = {out.data_ptr()};
      reduce(op, dtype, in, outs, 4);
      EXPECT_TRUE(at::allclose(out, reference(op, {a, b}), 0, 0, /*equal_nan=*/true)) << dtype << out;
      EXPECT_TRUE(out.isnan()[1].item<bool>());
    }
  }
}

TEST(Reduce, OtherTypesAreRefused) {
  EXPECT_FALSE(can_reduce(at::kBool));
  EXPECT_FALSE(can_reduce(at::kComplexFloat));
  EXPECT_TRUE(can_reduce(at::kBFloat16));
}

}  // namespace
}  // namespace stretto::kernels
