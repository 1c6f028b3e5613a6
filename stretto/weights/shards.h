#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/weights/safetensors_header.h"

namespace stretto::weights {

// The weights that go into one file.
struct Shard {
  std::string file;
  std::vector<weights::SafetensorsTensor> tensors;
};

// Divides weights, in this order, into files of at most `max_bytes` of tensors, like transformers'
// save_pretrained: one file model.safetensors if all fit, else model-00001-of-0000N.safetensors, ... A larger
// tensor has a separate file.
std::vector<Shard> plan_shards(const std::vector<weights::SafetensorsTensor>& weights, int64_t max_bytes);

// The content of model.safetensors.index.json.
nlohmann::ordered_json shard_index(const std::vector<Shard>& shards);

// "5GB" -> 5'000'000'000; units KB, MB, GB, TB are powers of 1000, KiB to TiB of 1024, as in transformers.
// Throws ConfigError.
int64_t parse_size(const std::string& text);

}  // namespace stretto::weights
