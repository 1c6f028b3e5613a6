#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "stretto/metrics/classification.h"
#include "stretto/tensor/batch.h"
#include "stretto/trainer/api/metric.h"

namespace stretto {

// Metrics for validation_step of a Module (metric.h):
//
//   Tagger()
//       : net_(model(...)),
//         scores_(metric(std::make_shared<ClassMetric>(4, {"accuracy", "f1_macro"}))) {}
//   Predictions validation_step(const Batch& batch, StepContext&) override {
//     scores_->update(net_->forward(batch.at("x")), batch.at("labels"));
//     return {};
//   }

// Metrics of predicted classes, from a confusion matrix that is summed over all samples.
class ClassMetric : public Metric {
 public:
  // `values`: names of metrics::classification_metric(), which are logged with `prefix`. Labels equal to
  // `ignore_index` are ignored. Throws ConfigError for an unknown name.
  ClassMetric(int64_t num_labels, std::vector<std::string> values, std::string prefix = "",
              int64_t ignore_index = -100);

  // `predicted`: classes of an integer type, with the shape of `labels`; or scores with one more dimension
  // [num_labels], of which the largest gives the class. Throws ShapeError, and DataError for a class out of
  // range.
  void update(const Tensor& predicted, const Tensor& labels);

  // Rows are gold labels and columns predicted ones: for metrics::confusion_table() and class_scores().
  metrics::Confusion confusion() const;
  Metrics compute() const override;

 private:
  int64_t num_labels_;
  std::vector<std::string> values_;
  std::string prefix_;
  int64_t ignore_index_;
};

// The mean of values over samples.
class MeanMetric : public Metric {
 public:
  explicit MeanMetric(std::string name) : Metric(Kind::sum, {2}), name_(std::move(name)) {}

  // One value per sample, in a tensor of any shape; or the mean of `count` samples. Throws Error for a
  // negative count.
  void update(const Tensor& values);
  void update(double mean, double count);
  Metrics compute() const override;

 protected:
  double mean() const;

 private:
  std::string name_;
};

// The exponential of the mean loss per token.
class PerplexityMetric : public MeanMetric {
 public:
  explicit PerplexityMetric(std::string name = "perplexity") : MeanMetric(name), name_(std::move(name)) {}
  using MeanMetric::update;
  // The sum of the tokens' negative log-likelihoods, and their number, as nn::cross_entropy returns.
  void update(const Loss& loss);
  Metrics compute() const override;

 private:
  std::string name_;
};

// Base of metrics of scores, which rank samples without a threshold, with scikit-learn's values: of one
// class, or of several as the macro, weighted or micro average over the classes, each against the rest. Its
// state is a score and a label per sample and class.
class RankingMetric : public Metric {
 public:
  // One class has scores and labels [N]: label 1 is a sample of the class, which should have a high score,
  // and label 0 another one. Several have scores [N, num_labels], and labels [N] of an integer type, which
  // are the class of each sample, or labels [N, num_labels], 1 for each class of a sample, else 0. Classes of
  // samples with one class each are compared over samples, so scores should be probabilities. Throws
  // ShapeError, and DataError for a class out of range.
  void update(const Tensor& scores, const Tensor& labels);

  // No value, and a warning the first time, where the metric of a class is not defined. Throws Error for a
  // score that is NaN.
  Metrics compute() const override;

 protected:
  using Function = double(std::span<const double> scores, std::span<const double> labels);
  // `average`: "macro", "weighted" or "micro"; only for num_labels > 1. Throws ConfigError for another one.
  RankingMetric(Function* function, std::string name, int64_t num_labels, std::string average);

 private:
  Function* function_;
  std::string name_;
  int64_t num_labels_;
  std::string average_;
  mutable bool has_warned_ = false;
};

// Area under the ROC curve: roc_auc_score, with multi_class="ovr". It is not defined, and left out, if the
// samples of a class are none or all; the weighted average ignores classes without samples.
class AurocMetric : public RankingMetric {
 public:
  explicit AurocMetric(std::string name = "auroc");
  explicit AurocMetric(int64_t num_labels, std::string average = "macro", std::string name = "auroc");
};

// Average precision: average_precision_score; 0 for a class without samples.
class AveragePrecisionMetric : public RankingMetric {
 public:
  explicit AveragePrecisionMetric(std::string name = "average_precision");
  explicit AveragePrecisionMetric(int64_t num_labels, std::string average = "macro",
                                  std::string name = "average_precision");
};

// A metric computed by a function from a sum of any shape:
//   metric(std::make_shared<SumMetric>(std::vector<int64_t>{2}, [](const Tensor& sum) -> Metrics {
//     return {{"rmse", std::sqrt((sum[0] / sum[1]).item<double>())}};
//   }))
class SumMetric : public Metric {
 public:
  // `compute` gets the sum of all updates, float64 of `shape`.
  SumMetric(std::vector<int64_t> shape, std::function<Metrics(const Tensor&)> compute)
      : Metric(Kind::sum, std::move(shape)), compute_(std::move(compute)) {}
  void update(const Tensor& values) { add(values); }
  Metrics compute() const override { return compute_(state()); }

 private:
  std::function<Metrics(const Tensor&)> compute_;
};

// A metric computed by a function from the rows of all samples.
class RowMetric : public Metric {
 public:
  // `compute` gets the rows of all samples [N, columns], float64, in no particular order.
  RowMetric(int64_t columns, std::function<Metrics(const Tensor&)> compute)
      : Metric(Kind::rows, {columns}), compute_(std::move(compute)) {}
  void update(const Tensor& rows) { add(rows); }
  Metrics compute() const override { return compute_(state()); }

 private:
  std::function<Metrics(const Tensor&)> compute_;
};

}  // namespace stretto
