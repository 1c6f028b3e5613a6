#include "stretto/cluster/machine/processor.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include <fmt/ranges.h>

#include "stretto/base/strings.h"

namespace stretto::machine {

std::string Processor::instructions() const {
  std::vector<const char*> names;
  if (avx512) {
    names.push_back("AVX-512");
  } else if (avx2) {
    names.push_back("AVX2");
  }
  if (avx512_bf16) names.push_back("AVX-512 bf16");
  if (amx_bf16) names.push_back("AMX bf16");
  return names.empty() ? "no vector instructions that are known" : fmt::format("{}", fmt::join(names, ", "));
}

double Processor::fp32_operations_per_cycle() const {
  if (avx512 && !half_width) return 64;
  return avx2 ? 32 : 0;
}

double Processor::bf16_operations_per_cycle() const {
  if (amx_bf16) return 1024;  // 16 x 16 x 32 multiply-adds in 16 cycles
  return avx512_bf16 ? (half_width ? 64 : 128) : 0;
}

Processor parse_processor(std::string_view cpuinfo) {
  constexpr std::string_view zen4_family = "25";
  Processor processor;
  std::string_view vendor, family, number;
  for (const std::string_view line : split(cpuinfo, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = trim(line.substr(0, colon)), value = trim(line.substr(colon + 1));
    if (key == "model name") processor.model = value;
    if (key == "vendor_id") vendor = value;
    if (key == "cpu family") family = value;
    if (key == "model") number = value;
    if (key != "flags") continue;
    if (!family.empty()) processor.version = fmt::format("family {}, model {}", family, number);
    const auto flags = split(value, ' ');
    const auto has = [&](std::string_view flag) { return std::ranges::find(flags, flag) != flags.end(); };
    processor.avx2 = has("avx2") && has("fma");
    processor.avx512 = has("avx512f");
    processor.avx512_bf16 = has("avx512_bf16");
    processor.amx_bf16 = has("amx_bf16");
    processor.half_width = vendor == "AuthenticAMD" && family == zen4_family;
    break;  // the first processor represents all
  }
  return processor;
}

double measure_clock() {
#if defined(__x86_64__)
  using Clock = std::chrono::steady_clock;
  constexpr int chain = 1000, cycles_per_multiplication = 3;
  uint64_t value = 3;
  double best = 0;
  const auto start = Clock::now();
  while (Clock::now() - start < std::chrono::milliseconds(20)) {
    const auto before = Clock::now();
    for (int i = 0; i < chain; ++i) {
      asm volatile("imul %0, %0\n\timul %0, %0\n\timul %0, %0\n\timul %0, %0\n\t" : "+r"(value));
    }
    const std::chrono::duration<double, std::nano> took = Clock::now() - before;
    best = std::max(best, 4 * chain * cycles_per_multiplication / took.count());
  }
  return best;
#else
  return 0;
#endif
}

}  // namespace stretto::machine
