#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/model_config/problem_type.h"
#include "stretto/tensor/batch.h"
#include "stretto/trainer/api/module.h"

namespace stretto::tasks {

// How a sequence classification is trained and evaluated.
struct ClassificationSettings {
  ProblemType problem = ProblemType::single_label_classification;
  std::vector<double> class_weights = {};  // by class; empty: 1 each
  double label_smoothing = 0;
  std::optional<std::string> glue_task = {};  // evaluate with the metrics of this task of GLUE
};

// The loss of `logits` [B, C] for the labels of a batch (data::TextDataset::pack).
Loss classification_loss(const Tensor& logits, const Tensor& labels, const ClassificationSettings& settings,
                         const nn::Context& context = {});

// Converts the logits of a batch [B, C] and its labels to rows of float64, from which ClassificationResults
// are constructed. `labels` undefined: samples have none.
Tensor classification_rows(const Tensor& logits, const Tensor& labels, ProblemType problem);

// The predictions of a model for a dataset.
class ClassificationResults {
 public:
  // `rows`: the rows of all samples, on the CPU; `labels`: names of the classes.
  ClassificationResults(const Tensor& rows, std::vector<std::string> labels, ClassificationSettings settings);

  bool has_labels() const { return has_labels_; }

  // The mean loss ("loss") and the metrics of the problem: metrics/classification.h, metrics/multi_label.h,
  // both with "auroc" and "average_precision" of the probabilities, of the second of two classes or the means
  // over the classes, without those that are not defined; pearson and spearmanr; or those of the GLUE task.
  // Empty without labels.
  Metrics metrics() const;
  // The names that metrics() may have.
  static std::vector<std::string> possible_metrics(ProblemType problem,
                                                   const std::optional<std::string>& glue_task);

  // Precision, recall and F1 per class, and of a single-label classification the confusion matrix: as tables
  // for a terminal, and as {"classes": ..., "confusion_matrix": ...}. Empty for a regression and without
  // labels.
  std::string tables() const;
  nlohmann::ordered_json report() const;

  // The record of a sample: {label, score} of the best class, for multi-label problems also `labels` (of
  // probability >= 0.5) and the `scores` of all; {prediction} of a regression. It has `gold`, the label or
  // labels, if there are any.
  nlohmann::ordered_json prediction(int64_t sample) const;

  // The samples that are predicted wrongly, the worst first: by the probability of the gold label, or, for
  // multi-label, of the least probable decision. For a regression: all samples by their error.
  std::vector<int64_t> most_wrong() const;

 private:
  int64_t width() const { return std::ssize(labels_); }
  std::vector<std::string> names_of(const Tensor& flags) const;
  Metrics glue_metrics() const;
  void add_ranking_metrics(Metrics& result) const;

  std::vector<std::string> labels_;
  ClassificationSettings settings_;
  Tensor logits_, gold_;  // gold_: as in a batch
  Tensor scores_;         // probabilities; of a regression the logits
  bool has_labels_;
};

}  // namespace stretto::tasks
