#include "stretto/optim/schedules/linear_with_warmup.h"

#include <algorithm>
#include <cmath>

namespace stretto::optim {
namespace {

class LinearWithWarmup : public Schedule {
 public:
  explicit LinearWithWarmup(const LinearWithWarmupOptions& options) : options_(options) {}
  std::string name() const override { return "LinearWithWarmup"; }
  StepRates rates(int64_t steps_done) const override { return {.lr = base().lr * factor(steps_done)}; }

 private:
  void on_start() override {
    warmup_steps_ = options_.num_warmup_steps.value_or(static_cast<int64_t>(
        std::ceil(options_.warmup_ratio.value_or(0) * static_cast<double>(total_steps()))));
  }

  double factor(int64_t steps_done) const {
    if (steps_done < warmup_steps_)
      return static_cast<double>(steps_done) / static_cast<double>(warmup_steps_);
    const auto left = static_cast<double>(total_steps() - steps_done);
    const auto decay_steps = static_cast<double>(std::max<int64_t>(1, total_steps() - warmup_steps_));
    return std::max(0.0, left / decay_steps);
  }

  LinearWithWarmupOptions options_;
  int64_t warmup_steps_ = 0;
};

}  // namespace

std::unique_ptr<Schedule> linear_with_warmup(const LinearWithWarmupOptions& options) {
  return std::make_unique<LinearWithWarmup>(options);
}

}  // namespace stretto::optim
