#include "stretto/strategy/sharding.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto {
namespace {

std::vector<Sharding>& table() {
  static std::vector<Sharding> rows = {
      {.name = "ddp", .help = "all"},
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
       .help = "the same within each group of dp_shard ranks"}};
  return rows;
}

const Sharding* find(const std::string& strategy) {
  const auto found = std::ranges::find(table(), strategy, &Sharding::name);
  return found == table().end() ? nullptr : &*found;
}

}  // namespace

const std::vector<Sharding>& shardings() { return table(); }

const Sharding& find_sharding(const std::string& strategy) {
  if (const Sharding* row = find(strategy)) return *row;
  std::vector<std::string> names;
  for (const Sharding& row : table()) names.push_back(row.name);
  throw ConfigError("\"{}\" is not a strategy{}; available: {}", strategy, did_you_mean(strategy, names),
                    fmt::join(names, ", "));
}

std::string strategies_with(bool (*property)(const Sharding&), std::string_view conjunction) {
  std::vector<std::string> names;
  for (const Sharding& row : table()) {
    if (property(row)) names.push_back(row.name);
  }
  if (names.size() < 2) return names.empty() ? "" : names[0];
  return fmt::format("{} {} {}", fmt::join(names.begin(), names.end() - 1, ", "), conjunction, names.back());
}

bool register_sharding(Sharding row) {
  if (find(row.name) != nullptr) throw ConfigError("strategy {} is registered twice", row.name);
  table().push_back(std::move(row));
  return true;
}

}  // namespace stretto
