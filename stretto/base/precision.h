#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>

namespace stretto {

// The precision of a run. `fp32` and `fp64` use that dtype throughout; `bf16` computes in bfloat16 on a copy
// of fp32 master weights, with fp32 gradients and reductions.
enum class Precision { fp32, bf16, fp64 };
constexpr auto names_of(Precision) { return std::to_array<std::string_view>({"fp32", "bf16", "fp64"}); }

// Lightning's names of precisions, with the names used here.
const std::map<std::string, std::string>& precision_spellings();

// Names of precisions that are known and refused, with the reason.
const std::map<std::string, std::string>& refused_precisions();

// Accepts the names of Precision and those of precision_spellings(). Throws ConfigError for any other name.
Precision parse_precision(const std::string& name);

}  // namespace stretto
