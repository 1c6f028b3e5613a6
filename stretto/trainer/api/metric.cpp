#include "stretto/trainer/api/metric.h"

#include <cstring>

#include "stretto/base/error.h"
#include "stretto/comm/mesh.h"

namespace stretto {

void Metric::clear() {
  std::vector<int64_t> shape = shape_;
  if (kind_ == Kind::rows) shape.insert(shape.begin(), 0);
  state_ = at::zeros(shape, at::kDouble);
  parts_.clear();
}

void Metric::add(const Tensor& values) {
  const auto sizes = values.sizes();
  const bool rows = kind_ == Kind::rows;
  if ((rows ? sizes.slice(std::min<size_t>(1, sizes.size())) : sizes) != at::IntArrayRef(shape_) ||
      (rows && sizes.empty())) {
    throw ShapeError("metric: {} was added; expected [{}{}]", describe(values), rows ? "N, " : "",
                     fmt::join(shape_, ", "));
  }
  if (!counts_) return;
  const Tensor added = values.detach().to(at::kCPU, at::kDouble);
  if (rows) {
    parts_.push_back(added);
  } else {
    state_ += added;
  }
}

std::string Metric::bytes() const {
  const Tensor state = state_.contiguous();
  return {static_cast<const char*>(state.const_data_ptr()), state.nbytes()};
}

void Metric::add_bytes(const std::string& bytes) {
  std::vector<int64_t> shape = shape_;
  const int64_t row = at::zeros(shape_).numel();
  if (kind_ == Kind::rows) {
    shape.insert(shape.begin(), row == 0 ? 0 : static_cast<int64_t>(bytes.size() / sizeof(double)) / row);
  }
  const Tensor of_rank = at::empty(shape, at::kDouble);
  std::memcpy(of_rank.data_ptr(), bytes.data(), of_rank.nbytes());
  state_ = kind_ == Kind::rows ? at::cat({state_, of_rank}) : state_ + of_rank;
}

EvaluatedMetrics::EvaluatedMetrics(const std::vector<std::shared_ptr<Metric>>& metrics) : metrics_(metrics) {
  for (const auto& metric : metrics_) metric->clear();
  count(true);
}

void EvaluatedMetrics::count(bool counts) {
  for (const auto& metric : metrics_) metric->counts_ = counts;
}

void EvaluatedMetrics::collect(const Mesh& mesh) {
  for (const auto& metric : metrics_) {
    if (!metric->parts_.empty()) metric->state_ = at::cat(metric->parts_);
    const auto of_ranks = mesh.group(Axes::data).all_gather_bytes(metric->bytes());
    metric->clear();
    for (const std::string& bytes : of_ranks) metric->add_bytes(bytes);
  }
}

void EvaluatedMetrics::add_values(Metrics& logged) const {
  for (const auto& metric : metrics_) {
    for (const auto& [name, value] : metric->compute()) {
      if (!logged.emplace(name, value).second)
        throw ConfigError("metric \"{}\": another value of the evaluation has the same name; rename one",
                          name);
    }
  }
}

}  // namespace stretto
