#include "stretto/kernels/rotary.h"

#include "stretto/kernels/cpu/rotary_loops.h"
#include "stretto/kernels/cpu/tensor_loops.h"

namespace stretto::kernels {

Tensor rotate(const Tensor& x, const Tensor& cosines, const Tensor& sines, bool back) {
  if (x.dim() != 3 || cosines.dim() != 2 || cosines.size(0) != x.size(0) || 2 * cosines.size(1) > x.size(2)) {
    throw ShapeError(
        "rotary: x {} and cosines {} do not match; expected [T, heads, D] and [T, at most D / 2]",
        describe(x), describe(cosines));
  }
  require_sizes("rotary: sines", sines, cosines.sizes());
  if (is_fp16(x)) return rotate(widen_fp16(x), cosines, sines, back).to(at::kHalf);
  const Tensor out = at::empty_like(x);
  with_loop_type(x.scalar_type(), [&](auto number) {
    using T = decltype(number);
    RotaryCall<T> call = {};
    call.rows = x.size(0);
    call.heads = x.size(1);
    call.width = x.size(2);
    call.half = cosines.size(1);
    call.cosines = memory_of<Real<T>>(cosines);
    call.sines = memory_of<Real<T>>(sines);
    call.direction = back ? -1 : 1;
    call.in = memory_of<T>(x);
    call.out = memory_of<T>(out);
    rotary_loop(call);
  });
  return out;
}

Tensor rotate_reference(const Tensor& x, const Tensor& cosines, const Tensor& sines) {
  const int64_t half = cosines.size(1);
  const Tensor wide = x.to(cosines.scalar_type()), cosine = cosines.unsqueeze(1), sine = sines.unsqueeze(1);
  const Tensor first = wide.slice(2, 0, half), second = wide.slice(2, half, 2 * half);
  return at::cat({first * cosine - second * sine, second * cosine + first * sine, wide.slice(2, 2 * half)}, 2)
      .to(x.scalar_type());
}

}  // namespace stretto::kernels
