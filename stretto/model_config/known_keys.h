#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace stretto {

// The keys of config.json that a family of decoders knows.
struct KnownKeys {
  std::vector<std::string> all;       // those that the family reads, or that change nothing in it
  std::vector<std::string> nullable;  // those of them for which null has a meaning
};

// Throws ConfigError with `source` for a key of a decoder's config.json that is neither among `known` nor one
// that no decoder computes with (how it was saved, tokens, generation): it may change what the model
// computes. Null and empty values, false for a key that is not similar to a known one, and keys that begin
// with "_" are not refused. Throws also for a null of a known key that is not nullable, as transformers does.
void check_keys(const nlohmann::json& json, const std::string& source, const std::string& model_type,
                KnownKeys known);

}  // namespace stretto
