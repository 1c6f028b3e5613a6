#include "stretto/kernels/cpu/embedding_loops.h"

#include "stretto/kernels/cpu/multiarch.h"

namespace stretto::kernels {
namespace {

// Columns per block, so that the sums stay in the L1 cache.
constexpr int64_t at_once = 512;

template <class T>
STRETTO_INLINE void row_sum_body(const RowSumCall<T>& call) {
  for (int64_t row = 0; row < call.rows; ++row) {
    for (int64_t begin = 0; begin < call.width; begin += at_once) {
      const int64_t columns = call.width - begin < at_once ? call.width - begin : at_once;
      Real<T> sums[at_once];
      for (int64_t t = 0; t < call.count; ++t) {
        const T* __restrict from = call.tables[t] + call.ids[t][row] * call.width + begin;
        if (t == 0) {
          for (int64_t c = 0; c < columns; ++c) sums[c] = widen(from[c]);
        } else {
          for (int64_t c = 0; c < columns; ++c) sums[c] += widen(from[c]);
        }
      }
      T* __restrict out = call.out + row * call.width + begin;
      for (int64_t c = 0; c < columns; ++c) narrow(sums[c], out[c]);
    }
  }
}

template <class T>
STRETTO_INLINE void row_add_body(const RowAddCall<T>& call) {
  for (int64_t row = 0; row < call.rows; ++row) {
    const T* __restrict grad = call.grad + row * call.width;
    Real<T>* __restrict sums = call.sums + call.ids[row] * call.width;
    for (int64_t c = 0; c < call.width; ++c) sums[c] += widen(grad[c]);
  }
}

}  // namespace

STRETTO_MULTIARCH void row_sum_loop(const RowSumCall<float>& call) { row_sum_body(call); }
STRETTO_MULTIARCH void row_sum_loop(const RowSumCall<Bf16>& call) { row_sum_body(call); }
STRETTO_MULTIARCH void row_sum_loop(const RowSumCall<double>& call) { row_sum_body(call); }
STRETTO_MULTIARCH void row_add_loop(const RowAddCall<float>& call) { row_add_body(call); }
STRETTO_MULTIARCH void row_add_loop(const RowAddCall<Bf16>& call) { row_add_body(call); }
STRETTO_MULTIARCH void row_add_loop(const RowAddCall<double>& call) { row_add_body(call); }

}  // namespace stretto::kernels
