#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace stretto::metrics {

// The confusion matrix: how often each label was predicted for each gold label.
class Confusion {
 public:
  // Throws Error unless predicted and gold are equally long and all their labels lie in 0 .. num_labels - 1.
  Confusion(std::span<const int64_t> predicted, std::span<const int64_t> gold, int64_t num_labels);

  // `counts`: [gold, predicted], row-major. Throws Error unless there are num_labels x num_labels counts,
  // none negative.
  Confusion(std::vector<int64_t> counts, int64_t num_labels);

  int64_t num_labels() const { return num_labels_; }
  int64_t count(int64_t gold, int64_t predicted) const { return counts_[index(gold, predicted)]; }
  int64_t total() const { return total_; }
  int64_t correct() const;
  int64_t gold_count(int64_t label) const;
  int64_t predicted_count(int64_t label) const;

 private:
  size_t index(int64_t gold, int64_t predicted) const {
    return static_cast<size_t>(gold * num_labels_ + predicted);
  }

  int64_t num_labels_;
  int64_t total_ = 0;
  std::vector<int64_t> counts_;  // [gold, predicted]
};

// Fraction of predictions that equal the gold label.
double accuracy(const Confusion& confusion);

// 2 tp / (2 tp + fp + fn) for one label against the rest; 0 for 0/0, as in scikit-learn.
double f1(const Confusion& confusion, int64_t label);

// Mean of f1 over the labels that occur, in gold or predictions: f1_score(average="macro").
double f1_macro(const Confusion& confusion);

// The means of precision and recall over the labels that occur: precision_score and
// recall_score(average="macro"). With average="micro", precision, recall and F1 of samples with one label
// each all equal the accuracy.
double precision_macro(const Confusion& confusion);
double recall_macro(const Confusion& confusion);

// Mean of f1 over labels, weighted by their gold counts: f1_score(average="weighted").
double f1_weighted(const Confusion& confusion);

// Matthews correlation for any number of labels (Gorodkin 2004, "Comparing two K-category assignments by a
// K-category correlation coefficient"); 0 for 0/0: matthews_corrcoef.
double matthews_correlation(const Confusion& confusion);

// All of the above by name: "accuracy", "f1_macro", "f1_weighted", "matthews_correlation" and, for two labels
// only, "f1" of label 1 (average="binary"). Throws Error like Confusion, and if there are no samples.
std::map<std::string, double> classification_metrics(std::span<const int64_t> predicted,
                                                     std::span<const int64_t> gold, int64_t num_labels);

// One metric by name: those of classification_metrics(), "precision_macro", "recall_macro",
// "precision_micro", "recall_micro", "f1_micro" and, for label 1 of two labels, "precision", "recall" and
// "f1". Throws ConfigError for any other name, and Error if there are no samples.
double classification_metric(const std::string& name, const Confusion& confusion);

}  // namespace stretto::metrics
