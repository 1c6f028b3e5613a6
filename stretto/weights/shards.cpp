#include "stretto/weights/shards.h"

#include <cmath>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/weights/weight_files.h"

namespace stretto::weights {

std::vector<Shard> plan_shards(const std::vector<weights::SafetensorsTensor>& weights, int64_t max_bytes) {
  std::vector<Shard> shards;
  Shard open;
  int64_t open_bytes = 0;
  for (const weights::SafetensorsTensor& weight : weights) {
    if (weight.bytes > max_bytes) {
      shards.push_back({{}, {weight}});
      continue;
    }
    if (open_bytes + weight.bytes > max_bytes) {
      shards.push_back(std::exchange(open, {}));
      open_bytes = 0;
    }
    open.tensors.push_back(weight);
    open_bytes += weight.bytes;
  }
  if (!open.tensors.empty() || shards.empty()) shards.push_back(std::move(open));
  for (size_t i = 0; i < shards.size(); ++i) {
    shards[i].file = shards.size() == 1
                         ? weights::weights_name
                         : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
  }
  return shards;
}

nlohmann::ordered_json shard_index(const std::vector<Shard>& shards) {
  int64_t bytes = 0;
  std::map<std::string, std::string> file_of;
  for (const Shard& shard : shards) {
    for (const weights::SafetensorsTensor& tensor : shard.tensors) {
      bytes += tensor.bytes;
      file_of[tensor.name] = shard.file;
    }
  }
  return {{"metadata", {{"total_size", bytes}}}, {"weight_map", file_of}};
}

int64_t parse_size(const std::string& text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr Unit units[] = {{"KiB", 1024.0},
                            {"MiB", 1048576.0},
                            {"GiB", 1073741824.0},
                            {"TiB", 1099511627776.0},
                            {"KB", 1e3},
                            {"MB", 1e6},
                            {"GB", 1e9},
                            {"TB", 1e12},
                            {"B", 1},
                            {"", 1}};
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    const auto number = parse_double(trim(std::string_view(text).substr(0, text.size() - unit.name.size())));
    if (!number) break;
    const double bytes = *number * unit.bytes;
    if (bytes >= 1 && bytes < 9e18) return static_cast<int64_t>(bytes);
    break;
  }
  throw ConfigError("\"{}\" is not a size; expected a number with a unit, such as 5GB, 500MB or 2GiB", text);
}

}  // namespace stretto::weights
