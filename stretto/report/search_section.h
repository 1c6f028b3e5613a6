#pragma once

#include <optional>
#include <string>
#include <vector>

namespace stretto::report {

// The trials of a search of settings, for a page about them.
struct SearchedTrial {
  std::string name;
  std::vector<std::string> values;  // of the parameters
  std::optional<double> score;
  std::string state;  // "finished", "stopped after 200 steps", ...
};

struct SearchedParameter {
  std::string name;
  bool is_number = true;
  bool is_log = false;  // drawn over its logarithm
};

struct SearchResults {
  std::string metric;
  std::vector<SearchedParameter> parameters;
  std::vector<SearchedTrial> trials;  // the best first
};

// A section of the page: a table of the trials, and per numeric parameter a plot of the scores over its
// values.
std::string search_section(const SearchResults& results);

}  // namespace stretto::report
