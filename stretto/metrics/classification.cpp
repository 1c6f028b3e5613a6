#include "stretto/metrics/classification.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/metrics/ratio.h"

namespace stretto::metrics {
namespace {

double precision(const Confusion& confusion, int64_t label) {
  return ratio(confusion.count(label, label), confusion.predicted_count(label));
}

double recall(const Confusion& confusion, int64_t label) {
  return ratio(confusion.count(label, label), confusion.gold_count(label));
}

// Mean of `score` over the labels that occur, in gold or predictions.
double macro(const Confusion& confusion, double (*score)(const Confusion&, int64_t)) {
  double sum = 0;
  int64_t occurring = 0;
  for (int64_t label = 0; label < confusion.num_labels(); ++label) {
    if (confusion.gold_count(label) + confusion.predicted_count(label) == 0) continue;
    sum += score(confusion, label);
    ++occurring;
  }
  return sum / static_cast<double>(occurring);
}

struct NamedMetric {
  const char* name;
  double (*value)(const Confusion&);
  bool binary = false;  // defined for two labels only
};

const std::vector<NamedMetric>& named_metrics() {
  static const std::vector<NamedMetric> all = {
      {"accuracy", accuracy},
      {"precision_micro", accuracy},
      {"recall_micro", accuracy},
      {"f1_micro", accuracy},
      {"precision_macro", precision_macro},
      {"recall_macro", recall_macro},
      {"f1_macro", f1_macro},
      {"f1_weighted", f1_weighted},
      {"matthews_correlation", matthews_correlation},
      {"precision", [](const Confusion& confusion) { return precision(confusion, 1); }, true},
      {"recall", [](const Confusion& confusion) { return recall(confusion, 1); }, true},
      {"f1", [](const Confusion& confusion) { return f1(confusion, 1); }, true}};
  return all;
}

}  // namespace

Confusion::Confusion(std::vector<int64_t> counts, int64_t num_labels)
    : num_labels_(num_labels), counts_(std::move(counts)) {
  if (num_labels < 1 || std::ssize(counts_) != num_labels * num_labels)
    throw Error("{} counts are not a confusion matrix of {} labels; expected {}", counts_.size(), num_labels,
                num_labels * num_labels);
  if (std::ranges::any_of(counts_, [](int64_t count) { return count < 0; }))
    throw Error("a confusion matrix has a negative count");
  total_ = std::reduce(counts_.begin(), counts_.end());
}

Confusion::Confusion(std::span<const int64_t> predicted, std::span<const int64_t> gold, int64_t num_labels)
    : num_labels_(num_labels), total_(std::ssize(gold)) {
  if (num_labels < 1) throw Error("metrics of {} labels are not defined; expected at least 1", num_labels);
  if (predicted.size() != gold.size()) {
    throw Error("{} predictions for {} gold labels; expected one per label", predicted.size(), gold.size());
  }
  counts_.resize(static_cast<size_t>(num_labels * num_labels));
  const auto check = [&](const char* what, size_t sample, int64_t label) {
    if (label >= 0 && label < num_labels) return;
    throw Error("sample {}: the {} label {} is out of range; expected 0 .. {}", sample, what, label,
                num_labels - 1);
  };
  for (size_t i = 0; i < gold.size(); ++i) {
    check("predicted", i, predicted[i]);
    check("gold", i, gold[i]);
    ++counts_[index(gold[i], predicted[i])];
  }
}

int64_t Confusion::correct() const {
  int64_t sum = 0;
  for (int64_t label = 0; label < num_labels_; ++label) sum += count(label, label);
  return sum;
}

int64_t Confusion::gold_count(int64_t label) const {
  int64_t sum = 0;
  for (int64_t predicted = 0; predicted < num_labels_; ++predicted) sum += count(label, predicted);
  return sum;
}

int64_t Confusion::predicted_count(int64_t label) const {
  int64_t sum = 0;
  for (int64_t gold = 0; gold < num_labels_; ++gold) sum += count(gold, label);
  return sum;
}

double accuracy(const Confusion& confusion) {
  return static_cast<double>(confusion.correct()) / static_cast<double>(confusion.total());
}

double f1(const Confusion& confusion, int64_t label) {
  // 2 tp + fp + fn = all predictions of the label and all gold ones.
  const int64_t both = confusion.gold_count(label) + confusion.predicted_count(label);
  if (both == 0) return 0;
  return 2.0 * static_cast<double>(confusion.count(label, label)) / static_cast<double>(both);
}

double f1_macro(const Confusion& confusion) { return macro(confusion, f1); }
double precision_macro(const Confusion& confusion) { return macro(confusion, precision); }
double recall_macro(const Confusion& confusion) { return macro(confusion, recall); }

double f1_weighted(const Confusion& confusion) {
  double sum = 0;
  for (int64_t label = 0; label < confusion.num_labels(); ++label) {
    sum += static_cast<double>(confusion.gold_count(label)) * f1(confusion, label);
  }
  return sum / static_cast<double>(confusion.total());
}

double matthews_correlation(const Confusion& confusion) {
  const auto total = static_cast<double>(confusion.total());
  double gold_predicted = 0;
  double gold_gold = 0;
  double predicted_predicted = 0;
  for (int64_t label = 0; label < confusion.num_labels(); ++label) {
    const auto gold = static_cast<double>(confusion.gold_count(label));
    const auto predicted = static_cast<double>(confusion.predicted_count(label));
    gold_predicted += gold * predicted;
    gold_gold += gold * gold;
    predicted_predicted += predicted * predicted;
  }
  const double covariance = static_cast<double>(confusion.correct()) * total - gold_predicted;
  const double variances = (total * total - gold_gold) * (total * total - predicted_predicted);
  return variances > 0 ? covariance / std::sqrt(variances) : 0;
}

std::map<std::string, double> classification_metrics(std::span<const int64_t> predicted,
                                                     std::span<const int64_t> gold, int64_t num_labels) {
  const Confusion confusion(predicted, gold, num_labels);
  if (confusion.total() == 0) throw Error("metrics of no samples are not defined");
  std::map<std::string, double> metrics = {{"accuracy", accuracy(confusion)},
                                           {"f1_macro", f1_macro(confusion)},
                                           {"f1_weighted", f1_weighted(confusion)},
                                           {"matthews_correlation", matthews_correlation(confusion)}};
  if (num_labels == 2) metrics["f1"] = f1(confusion, 1);
  return metrics;
}

double classification_metric(const std::string& name, const Confusion& confusion) {
  const auto& all = named_metrics();
  const auto found = std::ranges::find_if(all, [&](const NamedMetric& each) { return each.name == name; });
  if (found == all.end()) {
    std::vector<std::string> names;
    for (const NamedMetric& each : all) names.emplace_back(each.name);
    throw ConfigError("\"{}\" is not a metric of classes{}; there are {}", name, did_you_mean(name, names),
                      fmt::join(names, ", "));
  }
  if (found->binary && confusion.num_labels() != 2) {
    throw ConfigError("metric \"{0}\" is of two labels, and there are {1}; use {0}_macro or {0}_micro", name,
                      confusion.num_labels());
  }
  if (confusion.total() == 0) throw Error("metrics of no samples are not defined");
  return found->value(confusion);
}

}  // namespace stretto::metrics
