#include <bit>

#include "stretto/kernels/loops.h"
#include "stretto/kernels/multiarch.h"

namespace stretto::kernels {
namespace {

inline __attribute__((always_inline)) float widened(float value) { return value; }
inline __attribute__((always_inline)) double widened(double value) { return value; }
inline __attribute__((always_inline)) float widened(Bf16 value) {
  return std::bit_cast<float>(uint32_t{value.bits} << 16);
}

inline __attribute__((always_inline)) void narrow(float value, float& to) { to = value; }
inline __attribute__((always_inline)) void narrow(double value, double& to) { to = value; }
// To the nearest, ties to even, as ATen rounds.
inline __attribute__((always_inline)) void narrow(float value, Bf16& to) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  to.bits = static_cast<uint16_t>((value == value ? rounded : 0x7fc00000) >> 16);
}

// Columns at a time, so that the sums stay in the first cache.
constexpr int64_t at_once = 512;

template <class T>
inline __attribute__((always_inline)) void row_sum_body(const RowSumCall<T>& call) {
  for (int64_t row = 0; row < call.rows; ++row) {
    for (int64_t begin = 0; begin < call.width; begin += at_once) {
      const int64_t columns = call.width - begin < at_once ? call.width - begin : at_once;
      Real<T> sums[at_once];
      for (int64_t t = 0; t < call.count; ++t) {
        const T* __restrict from = call.tables[t] + call.ids[t][row] * call.width + begin;
        if (t == 0) {
          for (int64_t c = 0; c < columns; ++c) sums[c] = widened(from[c]);
        } else {
          for (int64_t c = 0; c < columns; ++c) sums[c] += widened(from[c]);
        }
      }
      T* __restrict out = call.out + row * call.width + begin;
      for (int64_t c = 0; c < columns; ++c) narrow(sums[c], out[c]);
    }
  }
}

template <class T>
inline __attribute__((always_inline)) void row_add_body(const RowAddCall<T>& call) {
  for (int64_t row = 0; row < call.rows; ++row) {
    const T* __restrict grad = call.grad + row * call.width;
    Real<T>* __restrict sums = call.sums + call.ids[row] * call.width;
    for (int64_t c = 0; c < call.width; ++c) sums[c] += widened(grad[c]);
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
