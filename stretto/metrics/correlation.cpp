#include "stretto/metrics/correlation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "stretto/metrics/numpy_sum.h"

namespace stretto::metrics {
namespace {

std::vector<double> centred(std::span<const double> values) {
  const double mean = numpy_sum(values) / static_cast<double>(values.size());
  std::vector<double> result(values.begin(), values.end());
  for (double& value : result) value -= mean;
  return result;
}

double norm(const std::vector<double>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

std::vector<double> ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return values[i]; });
  std::vector<double> rank(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) rank[order[i]] = static_cast<double>(begin + 1 + end) / 2;
    begin = end;
  }
  return rank;
}

}  // namespace

double pearson(std::span<const double> x, std::span<const double> y) {
  constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
  if (x.size() < 2) return undefined;
  const auto a = centred(x), b = centred(y);
  const double norm_a = norm(a), norm_b = norm(b);
  if (norm_a == 0 || norm_b == 0) return undefined;
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] / norm_a) * (b[i] / norm_b);
  return std::clamp(sum, -1.0, 1.0);
}

double spearman(std::span<const double> x, std::span<const double> y) { return pearson(ranks(x), ranks(y)); }

}  // namespace stretto::metrics
