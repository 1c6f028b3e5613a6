#pragma once

#include <vector>

#include "stretto/generate/search.h"

namespace stretto::generate {

// Whether a sequence ends with the last of its new tokens.
bool has_ended(const GenerationOptions& options, const SearchEvents& events, const SearchStart& start,
               const std::vector<int32_t>& new_tokens);

}  // namespace stretto::generate
