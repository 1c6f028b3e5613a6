#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stretto::cli {

// A setting that trials of a search draw, and its distribution.
struct SearchParameter {
  enum class Kind { log, uniform, integer, choice };

  std::string name;  // of the setting: "optimizer.lr"
  Kind kind = Kind::uniform;
  double low = 0, high = 0;
  std::vector<std::string> values = {};  // of a choice

  // The value of a trial as text for the recipe: a function of the seed, the trial and the name alone.
  std::string draw(uint64_t seed, int64_t trial) const;
};

// Parses "optimizer.lr=log:1e-5:1e-3": after the name log (the logarithm is uniform), uniform or int with two
// limits, or "choice:A,B,C". Throws ConfigError.
SearchParameter parse_search_parameter(const std::string& text);

}  // namespace stretto::cli
