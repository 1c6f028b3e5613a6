#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "stretto/metrics/class_report.h"

namespace stretto::metrics {

// Metrics of samples with any number of classes each. `predicted` and `gold` are [samples, labels],
// row-major, 1 for each class of a sample, else 0.
class MultiLabel {
 public:
  // Throws Error unless both have the same number of values, a multiple of the number of labels.
  MultiLabel(std::span<const uint8_t> predicted, std::span<const uint8_t> gold,
             const std::vector<std::string>& labels);

  // scikit-learn's metrics: "accuracy" (fraction of samples whose classes are all right), "f1_micro",
  // "f1_macro" (mean over all classes) and "f1_weighted". Throws Error if there are no samples.
  std::map<std::string, double> metrics() const;
  const std::vector<ClassScores>& classes() const { return classes_; }

 private:
  std::vector<ClassScores> classes_;
  int64_t samples_ = 0, right_ = 0, correct_ = 0, predicted_ = 0, gold_ = 0;
};

}  // namespace stretto::metrics
