#include "stretto/model_config/transformer_sizes.h"

#include "stretto/base/error.h"
#include "stretto/model_config/config_json.h"

namespace stretto {
namespace {

std::string described(const NamedSize& size) { return fmt::format("{} {}", size.key, size.value); }

}  // namespace

void check_transformer_sizes(const std::string& source, const NamedSize& width,
                             const std::vector<TableSize>& tables, const std::vector<StackSize>& stacks) {
  for (const auto& [rows, columns] : tables) {
    check_parameter_count({{rows.value, columns.value}}, source,
                          fmt::format("{} x {}", described(rows), described(columns)));
  }
  for (const auto& [layers, heads, inner, square_maps] : stacks) {
    if (width.value % heads.value != 0)
      throw ConfigError("{}: {} ({}) must be a multiple of {} ({})", source, width.key, width.value,
                        heads.key, heads.value);
    check_parameter_count(
        {{square_maps, layers.value, width.value, width.value}, {2, layers.value, width.value, inner.value}},
        source, fmt::format("{} x {} x {}", described(layers), described(width), described(inner)));
  }
}

}  // namespace stretto
