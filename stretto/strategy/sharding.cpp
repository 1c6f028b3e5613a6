#include "stretto/strategy/sharding.h"

#include <fmt/ranges.h>

#include "stretto/base/registry.h"
#include "stretto/base/strings.h"

namespace stretto {
namespace {

Registry<Sharding>& registry() {
  static Registry<Sharding> strategies(
      "a strategy",
      {{.name = "ddp", .help = "all"},
       {.name = "zero1", .optimizer = Held::sharded, .help = "its part of the optimizer's state"},
       {.name = "zero2",
        .optimizer = Held::sharded,
        .gradients = Held::sharded,
        .help = "also of the gradients"},
       {.name = "fsdp",
        .optimizer = Held::sharded,
        .gradients = Held::sharded,
        .parameters = Held::sharded,
        .help = "(zero3) also of the parameters"},
       {.name = "hsdp",
        .optimizer = Held::sharded,
        .gradients = Held::sharded,
        .parameters = Held::sharded,
        .hybrid = true,
        .help = "the same within each group of dp_shard ranks"}});
  return strategies;
}

}  // namespace

const std::vector<Sharding>& shardings() { return registry().entries(); }

const Sharding& find_sharding(const std::string& strategy) {
  if (const Sharding* row = registry().find(strategy)) return *row;
  const std::vector<std::string> names = registry().names();
  throw ConfigError("\"{}\" is not a strategy{}; available: {}", strategy, did_you_mean(strategy, names),
                    fmt::join(names, ", "));
}

std::string strategies_with(bool (*property)(const Sharding&), std::string_view conjunction) {
  std::vector<std::string> names;
  for (const Sharding& row : shardings()) {
    if (property(row)) names.push_back(row.name);
  }
  if (names.size() < 2) return names.empty() ? "" : names[0];
  return fmt::format("{} {} {}", fmt::join(names.begin(), names.end() - 1, ", "), conjunction, names.back());
}

bool register_sharding(Sharding row) {
  registry().add(std::move(row));
  return true;
}

}  // namespace stretto
