#pragma once

#include <cstdint>

namespace stretto::kernels {

// 16-bit floating-point numbers as bits: what the loops know of c10::BFloat16 and c10::Half.
struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

}  // namespace stretto::kernels
