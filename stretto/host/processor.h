#pragma once

#include <string>
#include <string_view>

namespace stretto::host {

// The instructions that decide how fast matrices are multiplied.
struct Processor {
  std::string model = "unknown";
  bool avx2 = false;         // with fused multiply-add
  bool avx512 = false;       // AVX512F
  bool avx512_bf16 = false;  // bf16 dot products
  bool amx_bf16 = false;     // bf16 tiles
  bool half_width = false;   // AVX-512 of two turns of 256 bits each

  bool bf16() const { return avx512_bf16 || amx_bf16; }
  // "AVX-512, AMX bf16".
  std::string instructions() const;
  // fp32 operations a cycle of one core, a fused multiply-add being two, on processors with two such units (Xeons with
  // one reach half of it); 0 where that is not known.
  double fp32_operations_a_cycle() const;
  // The same of bf16 products; 0 without such instructions.
  double bf16_operations_a_cycle() const;
};

// From the text of /proc/cpuinfo. What it does not say stays unknown.
Processor parse_processor(std::string_view cpuinfo);

// Cycles a second at which this core runs now, in GHz, from a chain of multiplications whose latency is known; takes
// 20 ms. 0 on processors other than x86-64.
double measure_clock();

}  // namespace stretto::host
