#include "stretto/base/known_values.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace stretto {
namespace {

std::string with_commas(double value) {
  const std::string digits = fmt::format("{:.0f}", value);
  std::string grouped;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

std::string percent_of_time(const char* what, double share) {
  return fmt::format("{} {:.0f} %", what, share * 100);
}

constexpr std::array known_table = {
    KnownValue{"step"},
    KnownValue{"time"},
    KnownValue{"epoch", "", [](double value) { return fmt::format("epoch {:.2f}", value); }, 5},
    KnownValue{"loss", "", nullptr, 0},
    KnownValue{"lr", "learning rate", [](double value) { return fmt::format("lr {:.2e}", value); }, 4},
    KnownValue{"grad_norm", "gradient norm", nullptr, KnownValue::others, false},
    KnownValue{"samples_per_second", "throughput (samples/s)",
               [](double value) { return fmt::format("{:.1f} samples/s", value); }, 1},
    KnownValue{"tokens_per_second", "throughput (tokens/s)",
               [](double value) { return with_commas(value) + " tokens/s"; }},
    KnownValue{"communication", "share of time in communication",
               [](double value) { return percent_of_time("communication", value); }, 2},
    KnownValue{"data_wait", "share of time waiting for data",
               [](double value) { return percent_of_time("data", value); }, 3},
    KnownValue{"rank_imbalance", "rank balance (slowest rank / mean)",
               [](double value) { return fmt::format("slowest rank {:.2f} x mean", value); },
               KnownValue::others, false},
    KnownValue{"memory_mib", "memory of the largest rank (MiB)",
               [](double value) { return fmt::format("memory {:.0f} MiB", value); }},
    KnownValue{"gpu_memory_mib", "GPU memory of the largest rank (MiB)",
               [](double value) { return fmt::format("GPU memory {:.0f} MiB", value); }}};

}  // namespace

std::span<const KnownValue> known_values() { return known_table; }

const KnownValue* find_known_value(std::string_view name) {
  const auto* const found = std::ranges::find(known_table, name, &KnownValue::name);
  return found == known_table.end() ? nullptr : &*found;
}

}  // namespace stretto
