#pragma once

#include <string>
#include <string_view>

namespace stretto::machine {

// The instruction sets that determine the speed of matmuls.
struct Processor {
  std::string model = "unknown";
  std::string version = "";  // "family 26, model 2": virtual machines hide the name of the model
  bool avx2 = false;         // with fused multiply-add
  bool avx512 = false;       // AVX512F
  bool avx512_bf16 = false;  // bf16 dot products
  bool amx_bf16 = false;     // bf16 tiles
  bool half_width = false;   // AVX-512 executed as two 256-bit halves

  bool bf16() const { return avx512_bf16 || amx_bf16; }
  // "AMD EPYC (family 26, model 2)".
  std::string name() const { return version.empty() ? model : model + " (" + version + ")"; }
  // "AVX-512, AMX bf16".
  std::string instructions() const;
  // Peak fp32 operations per cycle of one core, a fused multiply-add counting as two, with two such units
  // (Xeons with one unit reach half of it); 0 if unknown.
  double fp32_operations_per_cycle() const;
  // Peak bf16 matmul operations per cycle of one core; 0 without bf16 instructions.
  double bf16_operations_per_cycle() const;
};

// Parses the text of /proc/cpuinfo.
Processor parse_processor(std::string_view cpuinfo);

// The current clock of this core in GHz, measured with a chain of multiplications of known latency; takes 20
// ms. 0 on processors other than x86-64.
double measure_clock();

}  // namespace stretto::machine
