#include "stretto/config/strategy.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto {
namespace {

// Names of Accelerate, DeepSpeed, Lightning and torchtitan: whole words, and prefixes of longer ones.
bool is_known_elsewhere(std::string_view kind) {
  constexpr std::string_view words[] = {"auto", "cp", "dp", "pp", "tp"};
  constexpr std::string_view beginnings[] = {"colossalai", "ddp_", "deepspeed", "fairscale", "fsdp",
                                             "horovod",    "hsdp", "megatron",  "xla",       "zero"};
  const auto begins_kind = [&](std::string_view beginning) { return kind.starts_with(beginning); };
  return std::find(std::begin(words), std::end(words), kind) != std::end(words) ||
         std::any_of(std::begin(beginnings), std::end(beginnings), begins_kind);
}

Strategy parse_ddp(std::string_view name, const std::vector<std::string_view>& parts) {
  if (parts.size() == 1) return {};
  const std::string_view precision = parts[1];
  if (parts.size() > 2) {
    throw ConfigError("\"{}\": ddp takes a precision and nothing else; available: {}", name,
                      fmt::join(strategy_names(), ", "));
  }
  if (precision == "fp32" || precision == "bf16" || precision == "fp64") {
    return {.kind = "ddp", .precision = std::string(precision)};
  }
  if (precision == "fp16" || precision == "fp8") {
    throw ConfigError("\"{}\": {} needs loss scaling, which this version does not have; use ddp-bf16", name,
                      precision);
  }
  throw ConfigError("\"{}\" is not a strategy{}; available: {}", name, did_you_mean(name, strategy_names()),
                    fmt::join(strategy_names(), ", "));
}

}  // namespace

std::vector<std::string> strategy_names() { return {"ddp", "ddp-fp32", "ddp-bf16", "ddp-fp64"}; }

Strategy parse_strategy(std::string_view name) {
  const auto parts = split(name, '-');
  if (parts[0] == "ddp") return parse_ddp(name, parts);
  if (is_known_elsewhere(parts[0])) {
    throw ConfigError("\"{}\" is known, but not available in this version; available: {}", name,
                      fmt::join(strategy_names(), ", "));
  }
  throw ConfigError("\"{}\" is not a strategy{}; available: {}", name, did_you_mean(name, strategy_names()),
                    fmt::join(strategy_names(), ", "));
}

}  // namespace stretto
