#pragma once

#include <span>
#include <vector>

namespace stretto::metrics {

// Pearson's correlation coefficient; NaN if either side is constant or shorter than 2. REQUIRES: x.size() ==
// y.size().
double pearson(std::span<const double> x, std::span<const double> y);

// Spearman's correlation coefficient: Pearson's of the ranks, where equal values share their mean rank. NaN
// and REQUIRES like pearson.
double spearman(std::span<const double> x, std::span<const double> y);

}  // namespace stretto::metrics
