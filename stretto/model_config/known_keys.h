#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace stretto {

// Throws ConfigError with `source` for a key of a decoder's config.json that is neither among `known`, those
// that its family reads or that change nothing in it, nor one that no decoder computes with (how it was
// saved, tokens, generation): it may change what the model computes. Null and empty values, false for a key
// that is not similar to a known one, and keys that begin with "_" are not refused.
void refuse_unknown_keys(const nlohmann::json& json, const std::string& source, const std::string& model_type,
                         std::vector<std::string> known);

}  // namespace stretto
