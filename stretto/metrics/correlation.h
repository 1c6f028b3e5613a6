#pragma once

#include <span>
#include <vector>

namespace stretto::metrics {

// Pearson's correlation coefficient; NaN if either side is constant or shorter than 2. REQUIRES: as many of both.
double pearson(std::span<const double> x, std::span<const double> y);

// Spearman's: Pearson's of the ranks, where equal values share their mean rank. NaN and REQUIRES as above.
double spearman(std::span<const double> x, std::span<const double> y);

}  // namespace stretto::metrics
