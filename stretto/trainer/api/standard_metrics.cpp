#include "stretto/trainer/api/standard_metrics.h"

#include <cmath>

#include "stretto/base/error.h"

namespace stretto {
namespace {

void require_samples(bool any, const std::string& metric) {
  if (!any)
    throw Error("metric \"{}\": no sample was added in the evaluation; call update in validation_step",
                metric);
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
  for (const auto& [what, values] : {std::pair("label", gold), std::pair("prediction", chosen)}) {
    const Tensor wrong = values.masked_select(values.lt(0).logical_or(values.ge(num_labels_)));
    if (wrong.numel() > 0)
      throw DataError("ClassMetric: a {} is {}; expected 0 .. {}", what, wrong[0].item<int64_t>(),
                      num_labels_ - 1);
  }
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

void AurocMetric::update(const Tensor& scores, const Tensor& labels) {
  if (scores.dim() != 1 || scores.sizes() != labels.sizes())
    throw ShapeError("AurocMetric: scores {} and labels {}; expected both [N]", describe(scores),
                     describe(labels));
  add(at::stack({scores.detach().to(at::kDouble), labels.to(at::kDouble)}, 1));
}

Metrics AurocMetric::compute() const {
  require_samples(state().size(0) > 0, name_);
  const Tensor columns = state().t().contiguous();
  const auto column = [&](int64_t i) {
    return std::span(columns[i].const_data_ptr<double>(), static_cast<size_t>(columns.size(1)));
  };
  return {{name_, metrics::area_under_roc(column(0), column(1))}};
}

}  // namespace stretto
