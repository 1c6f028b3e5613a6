#include "stretto/kernels/reduce_loops.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "stretto/kernels/multiarch.h"

namespace stretto::kernels {
namespace {

// Templates cannot be compiled for several processors themselves; all of them are inlined into the functions below.
#define STRETTO_INLINE inline __attribute__((always_inline))

STRETTO_INLINE float widen(Bf16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }
STRETTO_INLINE float widen(F16 x) { return static_cast<float>(std::bit_cast<_Float16>(x.bits)); }
template <class T>
STRETTO_INLINE T widen(T x) {
  return x;
}

// To nearest, ties to even.
STRETTO_INLINE void narrow(float x, Bf16& to) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  to.bits = static_cast<uint16_t>(x != x ? 0x7fc0 : rounded);
}
STRETTO_INLINE void narrow(float x, F16& to) { to.bits = std::bit_cast<uint16_t>(static_cast<_Float16>(x)); }
template <class T>
STRETTO_INLINE void narrow(T x, T& to) {
  to = x;
}

// Whole numbers wrap around.
template <ReduceOp op, class T>
STRETTO_INLINE T combine(T x, T y) {
  if constexpr (op == ReduceOp::min) return x < y || x != x ? x : y;
  if constexpr (op == ReduceOp::max) return x > y || x != x ? x : y;
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(op == ReduceOp::sum ? static_cast<uint64_t>(x) + static_cast<uint64_t>(y)
                                              : static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
  } else {
    return op == ReduceOp::sum ? x + y : x * y;
  }
}

// Block by block, so that what is summed up stays in the innermost cache.
template <ReduceOp op, class T>
STRETTO_INLINE void reduce_by(const ReduceOperands<T>& operands) {
  using Wide = decltype(widen(T()));
  constexpr int64_t block = 1024;
  Wide sums[block];
  for (int64_t begin = 0; begin < operands.n; begin += block) {
    const int64_t n = std::min(block, operands.n - begin);
    const T* first = static_cast<const T*>(operands.in[0]) + begin;
    for (int64_t i = 0; i < n; ++i) sums[i] = widen(first[i]);
    for (int source = 1; source < operands.ins; ++source) {
      const T* next = static_cast<const T*>(operands.in[source]) + begin;
      for (int64_t i = 0; i < n; ++i) sums[i] = combine<op>(sums[i], widen(next[i]));
    }
    for (int destination = 0; destination < operands.outs; ++destination) {
      T* to = static_cast<T*>(operands.out[destination]) + begin;
      for (int64_t i = 0; i < n; ++i) narrow(sums[i], to[i]);
    }
  }
}

template <class T>
STRETTO_INLINE void reduce_body(ReduceOp op, const ReduceOperands<T>& operands) {
  switch (op) {
    case ReduceOp::sum:
      return reduce_by<ReduceOp::sum>(operands);
    case ReduceOp::product:
      return reduce_by<ReduceOp::product>(operands);
    case ReduceOp::min:
      return reduce_by<ReduceOp::min>(operands);
    case ReduceOp::max:
      return reduce_by<ReduceOp::max>(operands);
  }
}

#undef STRETTO_INLINE

}  // namespace

STRETTO_MULTIARCH void reduce_loop(ReduceOp op, const ReduceOperands<float>& operands) {
  reduce_body(op, operands);
}
STRETTO_MULTIARCH void reduce_loop(ReduceOp op, const ReduceOperands<double>& operands) {
  reduce_body(op, operands);
}
STRETTO_MULTIARCH void reduce_loop(ReduceOp op, const ReduceOperands<Bf16>& operands) {
  reduce_body(op, operands);
}
STRETTO_MULTIARCH void reduce_loop(ReduceOp op, const ReduceOperands<F16>& operands) {
  reduce_body(op, operands);
}
STRETTO_MULTIARCH void reduce_loop(ReduceOp op, const ReduceOperands<uint8_t>& operands) {
  reduce_body(op, operands);
}
STRETTO_MULTIARCH void reduce_loop(ReduceOp op, const ReduceOperands<int8_t>& operands) {
  reduce_body(op, operands);
}
STRETTO_MULTIARCH void reduce_loop(ReduceOp op, const ReduceOperands<int16_t>& operands) {
  reduce_body(op, operands);
}
STRETTO_MULTIARCH void reduce_loop(ReduceOp op, const ReduceOperands<int32_t>& operands) {
  reduce_body(op, operands);
}
STRETTO_MULTIARCH void reduce_loop(ReduceOp op, const ReduceOperands<int64_t>& operands) {
  reduce_body(op, operands);
}

}  // namespace stretto::kernels
