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

// Throws ConfigError that tells a name known from other tools, which this version cannot honour, from a slip.
Strategy parse_strategy(std::string_view name);

// Every name that parse_strategy takes.
std::vector<std::string> strategy_names();

}  // namespace stretto
