#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stretto {

// How ranks share a model: KIND[-PRECISION], the names of Accelerate and DeepSpeed launchers ("ddp-bf16").
struct Strategy {
  std::string kind = "ddp";
  std::optional<std::string> precision =
      std::nullopt;  // "fp32", "bf16" or "fp64"; the recipe's when not named

  bool operator==(const Strategy&) const = default;
};

// Throws ConfigError, whose message distinguishes names of other tools, not available in this version, from misspellings.
Strategy parse_strategy(std::string_view name);

// Every kind, and every name that parse_strategy accepts.
std::vector<std::string> strategy_kinds();
std::vector<std::string> strategy_names();

}  // namespace stretto
