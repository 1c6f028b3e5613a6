#include "stretto/kernels/cpu/reduce_loops.h"

#include <algorithm>
#include <type_traits>

#include "stretto/kernels/cpu/multiarch.h"

namespace stretto::kernels {
namespace {

// Inlined into the functions below: target_clones does not apply to templates.

// Applies `op`; integers wrap around.
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

// Reduces block by block, so that partial sums stay in the L1 cache.
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
  op == ReduceOp::sum ? sum_loop(operands) : reduce_body(op, operands);
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
