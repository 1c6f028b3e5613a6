#include "stretto/kernels/cpu/rotary_loops.h"

#include "stretto/kernels/cpu/multiarch.h"

namespace stretto::kernels {
namespace {

template <class T>
STRETTO_INLINE void rotary_body(const RotaryCall<T>& call) {
  const int64_t half = call.half;
  for (int64_t row = 0; row < call.rows; ++row) {
    const Real<T>* __restrict cosines = call.cosines + row * half;
    const Real<T>* __restrict sines = call.sines + row * half;
    for (int64_t head = 0; head < call.heads; ++head) {
      const T* __restrict in = call.in + (row * call.heads + head) * call.width;
      T* __restrict out = call.out + (row * call.heads + head) * call.width;
      for (int64_t i = 0; i < half; ++i) {
        const Real<T> first = widen(in[i]), second = widen(in[half + i]), sine = call.direction * sines[i];
        narrow(first * cosines[i] - second * sine, out[i]);
        narrow(second * cosines[i] + first * sine, out[half + i]);
      }
      for (int64_t i = 2 * half; i < call.width; ++i) out[i] = in[i];
    }
  }
}

}  // namespace

STRETTO_MULTIARCH void rotary_loop(const RotaryCall<float>& call) { rotary_body(call); }
STRETTO_MULTIARCH void rotary_loop(const RotaryCall<Bf16>& call) { rotary_body(call); }
STRETTO_MULTIARCH void rotary_loop(const RotaryCall<double>& call) { rotary_body(call); }

}  // namespace stretto::kernels
