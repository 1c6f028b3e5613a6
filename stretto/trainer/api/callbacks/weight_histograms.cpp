#include "stretto/trainer/api/callbacks/weight_histograms.h"

namespace stretto::trainer {

Histogram histogram_of(const Tensor& values) {
  constexpr int64_t bins = 64;
  at::NoGradGuard no_grad;
  Tensor flat = values.detach().to(at::kCPU, at::kDouble).flatten();
  flat = flat.masked_select(flat.isfinite());
  Histogram histogram;
  if (flat.numel() == 0) return histogram;
  histogram.min = flat.min().item<double>();
  histogram.max = flat.max().item<double>();
  histogram.count = static_cast<double>(flat.numel());
  histogram.sum = flat.sum().item<double>();
  histogram.sum_of_squares = flat.square().sum().item<double>();
  if (histogram.min == histogram.max) {
    histogram.limits = {histogram.max};
    histogram.counts = {histogram.count};
    return histogram;
  }
  const Tensor counts = at::histc(flat, bins, histogram.min, histogram.max);
  const double width = (histogram.max - histogram.min) / bins;
  for (int64_t bin = 0; bin < bins; ++bin) {
    histogram.limits.push_back(bin + 1 == bins ? histogram.max
                                               : histogram.min + width * static_cast<double>(bin + 1));
    histogram.counts.push_back(counts[bin].item<double>());
  }
  return histogram;
}

namespace {

void write_histograms(const FitContext& fit, int64_t step, const std::string& kind,
                      const NamedTensors& tensors) {
  if (fit.mesh.world().rank() != 0) return;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.is_floating_point()) continue;
    const Histogram histogram = histogram_of(tensor);
    if (histogram.count > 0) fit.trackers.write_histogram(step, kind + "/" + name, histogram);
  }
}

}  // namespace

void WeightHistograms::gradients_ready(FitContext& fit, const StepReport& coming) {
  if (every_.due(coming, /*requested=*/false))
    write_histograms(fit, coming.step, "gradients", fit.gradients());
}

void WeightHistograms::step_end(FitContext& fit, const StepReport& report) {
  if (!every_.due(report, /*requested=*/false)) return;
  fit.catch_up();
  write_histograms(fit, report.step, "weights", fit.weights());
}

}  // namespace stretto::trainer
