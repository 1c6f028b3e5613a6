#include "stretto/trainer/run/step_guard.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/number_text.h"

namespace stretto::trainer {
namespace {

constexpr int64_t max_skips = 10;     // in a row
constexpr int64_t max_rollbacks = 5;  // per run
constexpr int64_t warmup_steps = 20;  // before running means are used
constexpr double mean_weight = 0.05;  // of the newest step in a running mean

// The action for a spike. REQUIRES: policy is not off.
OnNonfinite action_of(OnSpike policy) {
  if (policy == OnSpike::skip) return OnNonfinite::skip;
  return policy == OnSpike::stop ? OnNonfinite::stop : OnNonfinite::rollback;
}

}  // namespace

StepGuard::StepGuard(const TrainingConfig& config) : config_(config) {}

double StepGuard::lr_scale() const {
  return std::pow(config_.rollback_lr_factor, static_cast<double>(rollbacks_));
}

StepGuard::Verdict StepGuard::judge(double loss, double norm, int64_t step, const std::string& culprit) {
  if (!std::isfinite(loss) || !std::isfinite(norm)) {
    reason_ = fmt::format(
        "step {}: {} is not finite{}", step,
        std::isfinite(loss) ? "a gradient" : fmt::format("the loss ({})", number_text(loss)), culprit);
    return act(config_.on_nonfinite, step,
               "Lower optimizer.lr, set training.max_grad_norm, or check the samples");
  }
  if (config_.on_spike != OnSpike::off && taken_ >= warmup_steps) {
    // The loss may be negative, so its distance from the mean is compared.
    const bool by_loss = loss > mean_loss_ + (config_.spike_factor - 1) * std::abs(mean_loss_);
    if (by_loss || norm > config_.spike_factor * mean_norm_) {
      reason_ = fmt::format("step {}: {} {:.4g} is more than {:g} times its running mean {:.4g}", step,
                            by_loss ? "the loss" : "the gradient norm", by_loss ? loss : norm,
                            config_.spike_factor, by_loss ? mean_loss_ : mean_norm_);
      return act(action_of(config_.on_spike), step, "Raise training.spike_factor if such steps are expected");
    }
  }
  remember(loss, norm);
  return Verdict::take;
}

StepGuard::Verdict StepGuard::act(OnNonfinite policy, int64_t step, const std::string& advice) {
  if (policy == OnNonfinite::stop) throw Error("{}; the step was not taken. {}", reason_, advice);
  if (policy == OnNonfinite::skip) {
    if (++skipped_in_a_row_ > max_skips) {
      throw Error("{}; {} steps in a row were skipped. {}", reason_, max_skips, advice);
    }
    log::warning("{}; skipping step {}", reason_, step);
    return Verdict::skip;
  }
  if (++rollbacks_ > max_rollbacks) {
    throw Error("{}; still so after {} rollbacks. {}", reason_, max_rollbacks, advice);
  }
  return Verdict::rollback;
}

void StepGuard::remember(double loss, double norm) {
  const double weight = std::max(mean_weight, 1 / static_cast<double>(taken_ + 1));
  mean_loss_ += weight * (loss - mean_loss_);
  mean_norm_ += weight * (norm - mean_norm_);
  ++taken_;
  skipped_in_a_row_ = 0;
}

void StepGuard::add_state(State& state) const {
  state.scalars["guard"] = {{"mean_loss", mean_loss_},
                            {"mean_norm", mean_norm_},
                            {"taken", taken_},
                            {"skipped_in_a_row", skipped_in_a_row_},
                            {"rollbacks", rollbacks_}};
}

void StepGuard::resume(const State& state) {
  const nlohmann::json& before = state.scalar("guard");
  before.at("mean_loss").get_to(mean_loss_);
  before.at("mean_norm").get_to(mean_norm_);
  before.at("taken").get_to(taken_);
  before.at("skipped_in_a_row").get_to(skipped_in_a_row_);
  // The checkpoint was saved before the rollback to it was counted.
  rollbacks_ = std::max(rollbacks_, before.at("rollbacks").get<int64_t>());
}

}  // namespace stretto::trainer
