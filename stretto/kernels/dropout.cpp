#include "stretto/kernels/dropout.h"

#include <algorithm>
#include <cmath>

#include "stretto/kernels/cpu/dropout_loops.h"
#include "stretto/kernels/cpu/tensor_loops.h"
#include "stretto/kernels/gpu_dropout.h"

namespace stretto::kernels {
namespace {

constexpr uint32_t philox_m0 = 0xD2511F53, philox_m1 = 0xCD9E8D57;
constexpr uint32_t philox_w0 = 0x9E3779B9, philox_w1 = 0xBB67AE85;

// The threshold for probability p; at least 1, since 0 means no dropout.
uint32_t drop_threshold(double p) {
  return static_cast<uint32_t>(std::clamp<long long>(std::llround(p * 4294967296.0), 1, 0xffffffff));
}

// The mask of elements with these random words.
Tensor mask_of(const Tensor& words, double p, at::ScalarType dtype) {
  const Tensor kept = words.ge(static_cast<int64_t>(drop_threshold(p)));
  return dtype == at::kBool ? kept : kept.to(dtype).mul_(1.0 / (1.0 - p));
}

}  // namespace

Drop drop_of(const Dropout& dropout) {
  if (dropout.p == 0) return {};
  return {dropout.key, drop_threshold(dropout.p), 1.0 / (1.0 - dropout.p)};
}

Tensor dropout_mask(const DropoutRows& rows, int64_t columns, double p, uint64_t key, at::ScalarType dtype) {
  if (rows.samples.is_cuda()) {
    const Tensor words = gpu_dropout_words(rows, columns, key);
    if (words.defined()) return mask_of(words.reshape({words.size(0) * rows.streams, columns}), p, dtype);
  }
  if (!rows.samples.device().is_cpu() || dtype == at::kDouble) {
    return dropout_mask_reference(rows, columns, p, key, dtype);
  }
  const int64_t count = rows.samples.numel();
  const Drop drop = drop_of({p, key});
  Tensor mask = at::empty({count * rows.streams, columns}, at::TensorOptions(at::kFloat));
  require_sizes("dropout: places", rows.places, {count});
  const Tensor sample_rows = rows.samples.contiguous(), place_rows = rows.places.contiguous();
  const int64_t* samples = sample_rows.const_data_ptr<int64_t>();
  const int64_t* places = place_rows.const_data_ptr<int64_t>();
  float* out = mask.data_ptr<float>();
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t stream = 0; stream < rows.streams; ++stream) {
      dropout_loop(out, rows.first_column, columns,
                   row_counter(samples[row], places[row], rows.first_stream + stream), drop);
      out += columns;
    }
  }
  return dtype == at::kFloat ? mask : mask.to(dtype);
}

Tensor dropout_mask_reference(const DropoutRows& rows, int64_t columns, double p, uint64_t key,
                              at::ScalarType dtype) {
  constexpr int64_t word = 0xffffffff;
  const int64_t count = rows.samples.numel();
  const int64_t blocks = (columns + 3) / 4;
  const auto options = rows.samples.options();
  const auto spread = [&](const Tensor& per_row) {
    return per_row.view({count, 1, 1}).expand({count, rows.streams, blocks}).contiguous();
  };
  const Tensor streams =
      at::arange(rows.first_stream, rows.first_stream + rows.streams, options).view({1, rows.streams, 1});
  Tensor c0 = (at::arange(blocks, options) + rows.first_column / 4)
                  .view({1, 1, blocks})
                  .expand({count, rows.streams, blocks})
                  .contiguous();
  Tensor c1 = spread(rows.places.bitwise_and(word));
  Tensor c2 = spread(rows.samples.bitwise_and(word));
  Tensor c3 = spread(rows.samples.bitwise_right_shift(32)).bitwise_or(streams.bitwise_left_shift(16));
  int64_t key0 = static_cast<int64_t>(key & word), key1 = static_cast<int64_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    // The 64-bit product wraps to the right bits; the shift's sign bits are masked off the upper word.
    const Tensor product0 = c0 * static_cast<int64_t>(philox_m0);
    const Tensor product1 = c2 * static_cast<int64_t>(philox_m1);
    const Tensor high0 = product0.bitwise_right_shift(32).bitwise_and(word);
    const Tensor high1 = product1.bitwise_right_shift(32).bitwise_and(word);
    c0 = high1.bitwise_xor(c1).bitwise_xor(key0);
    c2 = high0.bitwise_xor(c3).bitwise_xor(key1);
    c1 = product1.bitwise_and(word);
    c3 = product0.bitwise_and(word);
    key0 = (key0 + philox_w0) & word;
    key1 = (key1 + philox_w1) & word;
  }
  const Tensor words = at::stack({c0, c1, c2, c3}, 3).view({count * rows.streams, 4 * blocks});
  return mask_of(words.slice(1, 0, columns), p, dtype);
}

}  // namespace stretto::kernels
