#pragma once

#include <bit>
#include <cstdint>

namespace stretto::kernels {

// c10::BFloat16 and c10::Half without libtorch: their bits.
struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

// Conversion to the type that plain loops compute in, and back with ATen's rounding: to nearest, ties to
// even. Always inlined, so that they are compiled for the target of the loop.
#define STRETTO_INLINE inline __attribute__((always_inline))

STRETTO_INLINE float widen(Bf16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }
STRETTO_INLINE float widen(F16 x) { return static_cast<float>(std::bit_cast<_Float16>(x.bits)); }
template <class T>
STRETTO_INLINE T widen(T x) {
  return x;
}

STRETTO_INLINE void narrow(float x, Bf16& to) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  to.bits = static_cast<uint16_t>(x != x ? 0x7fc0 : rounded);
}
STRETTO_INLINE void narrow(float x, F16& to) { to.bits = std::bit_cast<uint16_t>(static_cast<_Float16>(x)); }
template <class T>
STRETTO_INLINE void narrow(T x, T& to) {
  to = x;
}

}  // namespace stretto::kernels
