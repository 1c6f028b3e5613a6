#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "stretto/report/axis.h"
#include "stretto/report/chart.h"

namespace stretto::report {

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

inline bool is_finite(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

inline int color_of(const Chart& chart, size_t curve) {
  const int color = chart.curves[curve].color;
  return color < 0 ? static_cast<int>(curve) : color;
}

struct ChartRange {
  Range x, y;
};

// The finite points of all curves; nullopt if there are none.
inline std::optional<ChartRange> range_of(const Chart& chart) {
  ChartRange range;
  for (const Curve& curve : chart.curves) {
    for (const auto& point : curve.points) {
      if (!is_finite(point)) continue;
      range.x.add(point.first);
      range.y.add(point.second);
    }
  }
  if (range.x.low > range.x.high) return std::nullopt;
  return range;
}

// The last finite value of a curve, and the range of its values; nullopt if it has none.
struct CurveValues {
  double last = 0;
  Range range;
};
inline std::optional<CurveValues> values_of(const Curve& curve) {
  std::optional<CurveValues> values;
  for (const auto& point : curve.points) {
    if (!is_finite(point)) continue;
    if (!values) values.emplace();
    values->last = point.second;
    values->range.add(point.second);
  }
  return values;
}

}  // namespace stretto::report
