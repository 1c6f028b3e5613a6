#include "stretto/metrics/ranking.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

namespace stretto::metrics {
namespace {

// The samples of equal scores.
struct Tied {
  double positive = 0;  // of label 1
  double negative = 0;
};

// The groups of tied samples, the highest score first.
std::vector<Tied> ranked(std::span<const double> scores, std::span<const double> labels) {
  if (scores.size() != labels.size())
    throw Error("{} scores for {} labels; expected one per label", scores.size(), labels.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) throw Error("sample {}: the score is NaN", i);
    if (labels[i] != 0 && labels[i] != 1)
      throw Error("sample {}: the label is {}; expected 1 for a sample of the class, else 0", i, labels[i]);
  }
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, std::greater<>(), [&](size_t i) { return scores[i]; });
  std::vector<Tied> groups;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || scores[order[i]] != scores[order[i - 1]]) groups.emplace_back();
    (labels[order[i]] == 1 ? groups.back().positive : groups.back().negative) += 1;
  }
  return groups;
}

Tied total(const std::vector<Tied>& groups) {
  Tied sum;
  for (const Tied& tied : groups) {
    sum.positive += tied.positive;
    sum.negative += tied.negative;
  }
  return sum;
}

// Every num_labels-th value from the `label`-th: a column.
std::vector<double> column(std::span<const double> values, int64_t num_labels, int64_t label) {
  std::vector<double> of_class;
  of_class.reserve(values.size() / static_cast<size_t>(num_labels));
  for (auto i = static_cast<size_t>(label); i < values.size(); i += static_cast<size_t>(num_labels))
    of_class.push_back(values[i]);
  return of_class;
}

}  // namespace

double area_under_roc(std::span<const double> scores, std::span<const double> labels) {
  const std::vector<Tied> groups = ranked(scores, labels);
  const auto [positive, negative] = total(groups);
  if (positive == 0 || negative == 0)
    throw UndefinedMetric("the area under the ROC curve is not defined: all {} labels are {}", scores.size(),
                          positive > 0 ? 1 : 0);
  double pairs = 0, positive_above = 0;  // twice the pairs in the right order
  for (const Tied& tied : groups) {
    pairs += tied.negative * (2 * positive_above + tied.positive);
    positive_above += tied.positive;
  }
  return pairs / (2 * positive * negative);
}

double average_precision(std::span<const double> scores, std::span<const double> labels) {
  const std::vector<Tied> groups = ranked(scores, labels);
  if (groups.empty()) throw Error("the average precision of no samples is not defined");
  const double positive = total(groups).positive;
  if (positive == 0) return 0;
  double sum = 0;
  Tied above;
  for (const Tied& tied : groups) {
    above.positive += tied.positive;
    above.negative += tied.negative;
    sum += tied.positive / positive * (above.positive / (above.positive + above.negative));
  }
  return sum;
}

double averaged(RankingFunction* metric, std::span<const double> scores, std::span<const double> labels,
                int64_t num_labels, Average average) {
  if (num_labels < 1 || scores.size() % static_cast<size_t>(num_labels) != 0)
    throw Error("{} scores of {} classes; expected one per sample and class", scores.size(), num_labels);
  if (average == Average::micro) return metric(scores, labels);
  double sum = 0, weights = 0;
  for (int64_t label = 0; label < num_labels; ++label) {
    const std::vector<double> of_class = column(labels, num_labels, label);
    const double weight =
        average == Average::macro ? 1 : std::accumulate(of_class.begin(), of_class.end(), 0.0);
    if (weight == 0) continue;
    try {
      sum += weight * metric(column(scores, num_labels, label), of_class);
    } catch (const UndefinedMetric& error) {
      throw UndefinedMetric("class {}: {}", label, error.what());
    } catch (const Error& error) {
      throw Error("class {}: {}", label, error.what());
    }
    weights += weight;
  }
  return weights == 0 ? 0 : sum / weights;
}

}  // namespace stretto::metrics
