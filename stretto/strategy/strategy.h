#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/enum_names.h"
#include "stretto/base/precision.h"

namespace stretto {

// How ranks share a model: a row of strategy/sharding.h, and optionally the precision.
struct Strategy {
  std::string kind = "ddp";
  std::optional<Precision> precision = std::nullopt;  // the recipe's if not named
  bool optimizer_in_files = false;                    // "-nvme": the optimizer's state is in files
  bool parameters_in_files = false;  // "-none-nvme": and, where they are sharded, the parameters
  // The name offloads state to the memory of the host. That is where CPU ranks have it, so that nothing is
  // left to do; other ranks do not offload.
  bool in_host_memory = false;

  // Parses back to this.
  std::string name() const;
  // Whether the kinds are equal and no two different precisions are named.
  bool agrees_with(const Strategy& other) const {
    return kind == other.kind && (!precision || !other.precision || precision == other.precision);
  }
  bool operator==(const Strategy&) const = default;
};

// Accepts KIND[-PRECISION] ("zero2-bf16"), and the names that accmt, DeepSpeed, Accelerate and Lightning give
// to the same strategies ("deepspeed-2-bf16", "deepspeed_stage_2", "zero3"). The place of the optimizer's
// state may follow, and, where it is sharded, that of the parameters ("zero2-nvme", "fsdp-bf16-cpu",
// "zero2-cpu-none", "fsdp-nvme-nvme"): none, cpu or nvme. Parameters that are not sharded stay in memory, as
// in DeepSpeed's stage 2. Throws ConfigError, whose message distinguishes
// names of those tools that this version does not support from misspellings.
Strategy parse_strategy(std::string_view name);

// Every KIND[-PRECISION].
std::vector<std::string> strategy_names();

// The names that other tools give to a kind: for fsdp "zero3", "deepspeed-3", ...
std::vector<std::string> strategy_aliases(std::string_view kind);

// All names of accmt that begin with `family`: "ddp", "fsdp" or "deepspeed", supported here or not.
std::vector<std::string> accmt_names(std::string_view family);

// The strategy that `stretto launch --strategy` has set for this program; nullopt if it has set none.
std::optional<Strategy> launched_strategy();
// Sets it for programs that this process starts.
void set_launched_strategy(const Strategy& strategy);

}  // namespace stretto
