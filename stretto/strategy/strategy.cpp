#include "stretto/strategy/strategy.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/strategy/sharding.h"

namespace stretto {
namespace {

constexpr const char* strategy_variable = "STRETTO_STRATEGY";

// A name that other tools give to a kind.
struct Alias {
  std::string_view name, kind;
};
constexpr Alias aliases[] = {{"deepspeed-0", "ddp"},
                             {"ddp_find_unused_parameters_false", "ddp"},
                             {"ddp_find_unused_parameters_true", "ddp"},
                             {"ddp_fork", "ddp"},
                             {"ddp_notebook", "ddp"},
                             {"ddp_spawn", "ddp"},
                             {"deepspeed-1", "zero1"},
                             {"deepspeed_stage_1", "zero1"},
                             {"ddp_sharded", "zero2"},
                             {"deepspeed", "zero2"},
                             {"deepspeed-2", "zero2"},
                             {"deepspeed_stage_2", "zero2"},
                             {"deepspeed-3", "fsdp"},
                             {"deepspeed_stage_3", "fsdp"},
                             {"zero3", "fsdp"}};

// Whether other tools (Accelerate, DeepSpeed, Lightning, torchtitan) know the name: whole words, and prefixes
// of longer ones.
bool is_known_elsewhere(std::string_view kind) {
  constexpr std::string_view words[] = {"auto", "cp", "dp", "pp", "tp"};
  constexpr std::string_view beginnings[] = {"colossalai", "ddp_", "deepspeed", "fairscale", "fsdp",
                                             "horovod",    "hsdp", "megatron",  "xla"};
  const auto begins_kind = [&](std::string_view beginning) { return kind.starts_with(beginning); };
  return std::find(std::begin(words), std::end(words), kind) != std::end(words) ||
         std::any_of(std::begin(beginnings), std::end(beginnings), begins_kind);
}

// Values of accmt and Accelerate for offloading the optimizer's state, then the parameters, or both.
bool is_offload(std::string_view word) { return word == "none" || word == "cpu" || word == "nvme"; }

// The kinds, for messages.
std::string available() {
  std::vector<std::string> kinds;
  for (const Sharding& row : shardings()) kinds.push_back(row.name);
  return fmt::format("available: {}, also with a precision, as in {}-bf16 (`stretto strats` lists all names)",
                     fmt::join(kinds, ", "), kinds.front());
}

[[noreturn]] void refuse(std::string_view name) {
  throw ConfigError("\"{}\" is not a strategy{}; {}", name, did_you_mean(name, strategy_names()),
                    available());
}

std::optional<std::string> find_kind(std::string_view name) {
  for (const Sharding& row : shardings()) {
    if (row.name == name) return row.name;
  }
  for (const Alias& alias : aliases) {
    if (alias.name == name) return std::string(alias.kind);
  }
  return std::nullopt;
}

// Parses `words`, which follow the kind: a precision, the place of the optimizer's state, and that of the
// parameters.
Strategy parse_rest(std::string_view name, const std::string& kind, std::vector<std::string_view> words) {
  Strategy strategy = {.kind = kind};
  if (!words.empty() && !is_offload(words[0])) {
    if (words[0] == "fp8")
      throw ConfigError("\"{}\": fp8 requires GPUs with fp8 instructions; use {}-bf16", name, kind);
    strategy.precision = find_enum<Precision>(words[0]);
    if (!strategy.precision) refuse(name);
    words.erase(words.begin());
  }
  const bool in_files = !words.empty() && words[0] == "nvme";
  const bool may_offload = shards_optimizer(find_sharding(kind)) || (words.size() == 1 && in_files);
  if (words.size() > 2 || (!words.empty() && !may_offload)) {
    throw ConfigError("\"{}\": only a precision, and nvme after it, may follow {}; {}", name, kind,
                      available());
  }
  for (const std::string_view word : words) {
    if (!is_offload(word)) refuse(name);
    if (word == "cpu") strategy.in_host_memory = true;
  }
  strategy.optimizer_in_files = in_files;
  strategy.parameters_in_files =
      words.size() == 2 && words[1] == "nvme" && shards_parameters(find_sharding(kind));
  return strategy;
}

}  // namespace

std::string Strategy::name() const {
  const std::string start = kind + (precision ? "-" + std::string(name_of(*precision)) : "");
  if (parameters_in_files)
    return start + (optimizer_in_files ? "-nvme" : in_host_memory ? "-cpu" : "-none") + "-nvme";
  return start + (optimizer_in_files ? "-nvme" : "") + (in_host_memory ? "-cpu" : "");
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const Sharding& row : shardings()) {
    names.push_back(row.name);
    for (const std::string& precision : enum_names<Precision>())
      names.push_back(fmt::format("{}-{}", row.name, precision));
  }
  return names;
}

std::vector<std::string> strategy_aliases(std::string_view kind) {
  std::vector<std::string> names;
  for (const Alias& alias : aliases) {
    if (alias.kind == kind) names.emplace_back(alias.name);
  }
  return names;
}

std::vector<std::string> accmt_names(std::string_view family) {
  constexpr std::string_view with[] = {"", "-fp32", "-fp16", "-bf16", "-fp8"};
  constexpr std::string_view places[] = {"none", "cpu", "nvme"};
  std::vector<std::string> names;
  const auto add = [&](std::string_view kind) {
    for (const std::string_view precision : with) names.push_back(fmt::format("{}{}", kind, precision));
  };
  if (family != "deepspeed") {
    add(family);
    if (family == "ddp") return names;
    for (const std::string_view precision : with) {
      if (!precision.empty()) names.push_back(fmt::format("{}{}-cpu", family, precision));
    }
    return names;
  }
  names.emplace_back(family);
  for (const int stage : {0, 1, 2, 3}) add(fmt::format("deepspeed-{}", stage));
  for (const int stage : {2, 3}) {
    for (const std::string_view precision : with) {
      if (precision.empty()) continue;
      for (const std::string_view optimizer : places) {
        for (const std::string_view parameters : places)
          names.push_back(fmt::format("deepspeed-{}{}-{}-{}", stage, precision, optimizer, parameters));
      }
    }
  }
  return names;
}

Strategy parse_strategy(std::string_view name) {
  std::vector<std::string_view> words = split(name, '-');
  // A stage of DeepSpeed is part of the kind: deepspeed-2.
  for (const size_t count : {size_t{2}, size_t{1}}) {
    if (words.size() < count) continue;
    const std::string head =
        fmt::format("{}", fmt::join(words.begin(), words.begin() + static_cast<ptrdiff_t>(count), "-"));
    if (const auto kind = find_kind(head))
      return parse_rest(name, *kind, {words.begin() + static_cast<ptrdiff_t>(count), words.end()});
  }
  if (name == "dp")
    throw ConfigError("\"dp\" runs one process with a thread per device; use ddp, a process per device");
  if (name == "tp")
    throw ConfigError(
        "\"tp\" divides layers among ranks under any strategy; choose one, such as ddp, and set the mesh's tp");
  if (is_known_elsewhere(words[0])) {
    throw ConfigError("\"{}\" is known, but not available in this version; {}", name, available());
  }
  refuse(name);
}

std::optional<Strategy> launched_strategy() {
  const char* name = std::getenv(strategy_variable);
  if (name == nullptr || *name == '\0') return std::nullopt;
  try {
    return parse_strategy(name);
  } catch (const ConfigError& error) {
    throw ConfigError("{}: {}", strategy_variable, error.what());
  }
}

void set_launched_strategy(const Strategy& strategy) {
  ::setenv(strategy_variable, strategy.name().c_str(), /*overwrite=*/1);
}

}  // namespace stretto
