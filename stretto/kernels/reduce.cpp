#include "stretto/kernels/reduce.h"

#include "stretto/kernels/cpu/reduce_loops.h"

namespace stretto::kernels {
namespace {

template <class T>
void reduce_as(ReduceOp op, std::span<const void* const> in, std::span<void* const> out, int64_t n) {
  reduce_loop(op, ReduceOperands<T>{in.data(), static_cast<int>(in.size()), out.data(),
                                    static_cast<int>(out.size()), n});
}

using Loop = void (*)(ReduceOp, std::span<const void* const>, std::span<void* const>, int64_t);

Loop loop_for(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return reduce_as<float>;
    case at::kDouble:
      return reduce_as<double>;
    case at::kBFloat16:
      return reduce_as<Bf16>;
    case at::kHalf:
      return reduce_as<F16>;
    case at::kByte:
      return reduce_as<uint8_t>;
    case at::kChar:
      return reduce_as<int8_t>;
    case at::kShort:
      return reduce_as<int16_t>;
    case at::kInt:
      return reduce_as<int32_t>;
    case at::kLong:
      return reduce_as<int64_t>;
    default:
      return nullptr;
  }
}

}  // namespace

bool can_reduce(at::ScalarType dtype) { return loop_for(dtype) != nullptr; }

void reduce(ReduceOp op, at::ScalarType dtype, std::span<const void* const> in, std::span<void* const> out,
            int64_t n) {
  loop_for(dtype)(op, in, out, n);
}

}  // namespace stretto::kernels
