#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "stretto/base/enum_names.h"
#include "stretto/base/error.h"

namespace stretto::metrics {

// Metrics of scores, which rank samples without a threshold: scikit-learn's roc_auc_score and
// average_precision_score. They do not depend on the order of the samples, to the last bit.

// The metric is not defined for these labels.
struct UndefinedMetric : Error {
  using Error::Error;
};

// A metric of one class against the rest: a score per sample, and label 1 for a sample of the class, else 0.
// Throws Error unless there is a label per score, for scores that are NaN and for other labels.
using RankingFunction = double(std::span<const double> scores, std::span<const double> labels);

// Area under the ROC curve: the probability that a sample of label 1 has a higher score than one of label 0,
// ties counting half (Hanley and McNeil 1982). Also throws UndefinedMetric unless both labels occur.
double area_under_roc(std::span<const double> scores, std::span<const double> labels);

// Average precision: the sum over all thresholds of the precision there times the increase of the recall, 0
// if label 1 does not occur. Also throws Error if there are no samples.
double average_precision(std::span<const double> scores, std::span<const double> labels);

// How the values of several classes become one: their mean; their mean weighted by the classes' samples,
// which ignores classes without samples; or the value of all pairs of a sample and a class as one list.
enum class Average : uint8_t { macro, weighted, micro };
constexpr auto names_of(Average) { return std::to_array<std::string_view>({"macro", "weighted", "micro"}); }

// `metric` of each class against the rest, averaged. scores, labels [samples, num_labels], row-major: label 1
// for each class of a sample, else 0; so samples may have one class each (multi_class="ovr") or any number.
// Throws Error and UndefinedMetric as the metric does, with the class, and Error unless there are num_labels
// values per sample.
double averaged(RankingFunction* metric, std::span<const double> scores, std::span<const double> labels,
                int64_t num_labels, Average average);

}  // namespace stretto::metrics
