#include "stretto/trainer/api/standard_metrics.h"

#include <cmath>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/metrics/ranking.h"

namespace stretto {
namespace {

void require_samples(bool any, const std::string& metric) {
  if (!any)
    throw Error("metric \"{}\": no sample was added in the evaluation; call update in validation_step",
                metric);
}

// Throws DataError, which begins with `what`, unless all classes are in 0 .. num_labels - 1.
void check_classes(const std::string& what, const Tensor& classes, int64_t num_labels) {
  const Tensor wrong = classes.masked_select(classes.lt(0).logical_or(classes.ge(num_labels)));
  if (wrong.numel() > 0)
    throw DataError("{} is {}; expected 0 .. {}", what, wrong[0].item<int64_t>(), num_labels - 1);
}

}  // namespace

ClassMetric::ClassMetric(int64_t num_labels, std::vector<std::string> values, std::string prefix,
                         int64_t ignore_index)
    : Metric(Kind::sum, {num_labels, num_labels}),
      num_labels_(num_labels),
      values_(std::move(values)),
      prefix_(std::move(prefix)),
      ignore_index_(ignore_index) {
  const std::vector<int64_t> each(1, 0);
  const metrics::Confusion sample(each, each, num_labels);
  for (const std::string& value : values_) metrics::classification_metric(value, sample);
}

void ClassMetric::update(const Tensor& predicted, const Tensor& labels) {
  const bool scores = predicted.dim() == labels.dim() + 1 && predicted.size(-1) == num_labels_;
  if (!scores && (predicted.sizes() != labels.sizes() || predicted.is_floating_point())) {
    throw ShapeError(
        "ClassMetric: predictions {} for labels {}; expected classes of the labels' shape, or scores with a last dimension of {}",
        describe(predicted), describe(labels), num_labels_);
  }
  if (!counts()) return;
  const Tensor all_labels = labels.detach().to(at::kCPU, at::kLong).flatten();
  const Tensor classes =
      (scores ? predicted.detach().argmax(-1) : predicted.detach()).to(at::kCPU, at::kLong);
  const Tensor kept = all_labels.ne(ignore_index_);
  const Tensor gold = all_labels.masked_select(kept), chosen = classes.flatten().masked_select(kept);
  check_classes("ClassMetric: a label", gold, num_labels_);
  check_classes("ClassMetric: a prediction", chosen, num_labels_);
  add(at::bincount(gold * num_labels_ + chosen, {}, num_labels_ * num_labels_)
          .view({num_labels_, num_labels_}));
}

metrics::Confusion ClassMetric::confusion() const {
  const Tensor counts = state().to(at::kLong).contiguous();
  const auto* first = counts.const_data_ptr<int64_t>();
  return {std::vector<int64_t>(first, first + counts.numel()), num_labels_};
}

Metrics ClassMetric::compute() const {
  const metrics::Confusion counts = confusion();
  require_samples(counts.total() > 0, prefix_ + values_.front());
  Metrics computed;
  for (const std::string& value : values_)
    computed[prefix_ + value] = metrics::classification_metric(value, counts);
  return computed;
}

void MeanMetric::update(const Tensor& values) {
  add(at::stack({values.detach().to(at::kDouble).sum(),
                 at::scalar_tensor(values.numel(), at::kDouble).to(values.device())}));
}

void MeanMetric::update(double mean, double count) {
  if (!(count >= 0)) throw Error("MeanMetric: the mean is of {} samples; expected at least 0", count);
  if (count > 0) add(at::tensor({mean * count, count}, at::kDouble));
}

double MeanMetric::mean() const {
  const double count = state()[1].item<double>();
  require_samples(count > 0, name_);
  return state()[0].item<double>() / count;
}

Metrics MeanMetric::compute() const { return {{name_, mean()}}; }

void PerplexityMetric::update(const Loss& loss) {
  add(at::stack({loss.sum.detach().to(at::kCPU, at::kDouble), at::scalar_tensor(loss.count, at::kDouble)}));
}

Metrics PerplexityMetric::compute() const { return {{name_, std::exp(mean())}}; }

RankingMetric::RankingMetric(Function* function, std::string name, int64_t num_labels, std::string average)
    : Metric(Kind::rows, {2 * num_labels}),
      function_(function),
      name_(std::move(name)),
      num_labels_(num_labels),
      average_(std::move(average)) {
  parse_enum<metrics::Average>(average_);
}

void RankingMetric::update(const Tensor& scores, const Tensor& labels) {
  const bool is_binary = num_labels_ == 1;
  const bool one_class = !is_binary && labels.dim() == 1 && !labels.is_floating_point();
  const bool fits = is_binary ? scores.dim() == 1 && scores.sizes() == labels.sizes()
                              : scores.dim() == 2 && scores.size(1) == num_labels_ && labels.dim() > 0 &&
                                    scores.size(0) == labels.size(0) &&
                                    (one_class || scores.sizes() == labels.sizes());
  if (!fits) {
    const std::string expected =
        is_binary ? "both [N]" : fmt::format("[N, {0}], and classes [N] or 0 and 1 [N, {0}]", num_labels_);
    throw ShapeError("metric \"{}\": scores {} and labels {}; expected {}", name_, describe(scores),
                     describe(labels), expected);
  }
  if (!counts()) return;
  const Tensor rows = scores.detach().to(at::kCPU, at::kDouble).reshape({-1, num_labels_});
  Tensor wanted = labels.detach().to(at::kCPU);
  if (one_class) {
    check_classes("metric \"" + name_ + "\": a label", wanted, num_labels_);
    wanted = at::one_hot(wanted.to(at::kLong), num_labels_);
  }
  add(at::cat({rows, wanted.to(at::kDouble).reshape({-1, num_labels_})}, 1));
}

Metrics RankingMetric::compute() const {
  require_samples(state().size(0) > 0, name_);
  const auto values_of = [](const Tensor& values) {
    return std::span(values.const_data_ptr<double>(), static_cast<size_t>(values.numel()));
  };
  const Tensor scores = state().slice(1, 0, num_labels_).contiguous(),
               labels = state().slice(1, num_labels_).contiguous();
  try {
    return {{name_, metrics::averaged(function_, values_of(scores), values_of(labels), num_labels_,
                                      parse_enum<metrics::Average>(average_))}};
  } catch (const metrics::UndefinedMetric& error) {
    if (!std::exchange(has_warned_, true))
      log::warning("metric \"{}\": {}; evaluations leave it out", name_, error.what());
    return {};
  }
}

AurocMetric::AurocMetric(std::string name) : AurocMetric(1, "micro", std::move(name)) {}
AurocMetric::AurocMetric(int64_t num_labels, std::string average, std::string name)
    : RankingMetric(metrics::area_under_roc, std::move(name), num_labels, std::move(average)) {}

AveragePrecisionMetric::AveragePrecisionMetric(std::string name)
    : AveragePrecisionMetric(1, "micro", std::move(name)) {}
AveragePrecisionMetric::AveragePrecisionMetric(int64_t num_labels, std::string average, std::string name)
    : RankingMetric(metrics::average_precision, std::move(name), num_labels, std::move(average)) {}

}  // namespace stretto
