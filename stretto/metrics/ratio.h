#pragma once

#include <cstdint>

namespace stretto::metrics {

// Zero for 0/0, as in scikit-learn and seqeval.
inline double ratio(double part, int64_t whole) { return whole == 0 ? 0 : part / static_cast<double>(whole); }
inline double ratio(int64_t part, int64_t whole) { return ratio(static_cast<double>(part), whole); }

}  // namespace stretto::metrics
