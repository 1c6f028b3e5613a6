#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace stretto::cli {

// The metric by which trials are compared: checkpoint.monitor.
struct SearchMetric {
  std::string name;
  bool larger_is_better = false;
};

constexpr int64_t no_limit = std::numeric_limits<int64_t>::max();  // of steps

// The state of a trial, read from its output folder.
struct TrialState {
  bool finished = false;
  int64_t steps = 0;  // from which it continues: those of its newest checkpoint
  // The best value of the metric in the evaluations of these steps; nullopt if there is none.
  std::optional<double> best = {};
};

// `until`: the last step that counts, or no_limit. Throws ConfigError, DataError and IoError for an
// unreadable folder. A folder that does not exist is that of a trial that has not begun.
TrialState read_trial(const std::filesystem::path& folder, const SearchMetric& metric, int64_t until);

// Returns the better half of `trials` by their scores, rounded up, in their order (successive halving:
// Jamieson and Talwalkar 2016, with a factor of 2). The first of equal scores is better; trials without a
// score are worst. REQUIRES: a score per trial.
std::vector<int64_t> better_half(const std::vector<int64_t>& trials,
                                 const std::vector<std::optional<double>>& scores, bool larger_is_better);

}  // namespace stretto::cli
