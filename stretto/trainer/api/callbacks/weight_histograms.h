#pragma once

#include "stretto/trainer/api/callback.h"
#include "stretto/trainer/run/recurrence.h"

namespace stretto::trainer {

// Writes the distribution of each weight and gradient, weights/NAME and gradients/NAME, to the trackers of
// the run: track.histograms. All ranks take part, because tensors may have to be gathered.
class WeightHistograms : public Callback {
 public:
  // `every`: steps or epochs.
  explicit WeightHistograms(const Interval& every) : every_(every, /*main_rank=*/true) {}

  std::string name() const override { return "weight_histograms"; }
  bool reads_parameters() const override { return false; }
  bool reads_gradients() const override { return true; }
  void gradients_ready(FitContext& fit, const StepReport& coming) override;
  void step_end(FitContext& fit, const StepReport& report) override;

 private:
  trainer::Recurrence every_;
};

// 64 bins of equal width between the smallest and the largest value. Values that are not finite are ignored;
// if all are, count is 0.
Histogram histogram_of(const Tensor& values);

}  // namespace stretto::trainer
