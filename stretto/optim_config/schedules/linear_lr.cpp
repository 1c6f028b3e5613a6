#include <algorithm>

#include "stretto/optim_config/schedules.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {

using settings::above;
using settings::at_least;

void LinearLrOptions::fields(settings::Fields& field) {
  field("start_factor", start_factor, "factor on lr at the first step", above(0).at_most(1));
  field("end_factor", end_factor, "factor on lr after total_iters steps", at_least(0).at_most(1));
  field("total_iters", total_iters, "steps from one factor to the other", at_least(1).at_most(1e9));
}

namespace {

class LinearLr : public Schedule {
 public:
  explicit LinearLr(const LinearLrOptions& options) : options_(options) {}
  std::string name() const override { return "LinearLR"; }
  StepRates rates(int64_t steps_done) const override {
    const double part =
        std::min(1.0, static_cast<double>(steps_done) / static_cast<double>(options_.total_iters));
    return {.lr = base().lr * (options_.start_factor + (options_.end_factor - options_.start_factor) * part)};
  }

 private:
  LinearLrOptions options_;
};

}  // namespace

std::unique_ptr<Schedule> linear_lr(const LinearLrOptions& options) {
  settings::check_settings(options, "LinearLR");
  return std::make_unique<LinearLr>(options);
}

}  // namespace stretto::optim
