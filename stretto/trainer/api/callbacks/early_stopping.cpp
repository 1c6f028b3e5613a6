#include "stretto/trainer/api/callbacks/early_stopping.h"

#include <cmath>

#include "stretto/base/number_text.h"
#include "stretto/base/strings.h"

namespace stretto::trainer {
namespace {

nlohmann::json to_json(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? nlohmann::json(*value) : nlohmann::json();
}

std::optional<double> from_json(const nlohmann::json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

}  // namespace

EarlyStopping::EarlyStopping(const Recipe& recipe)
    : config_(recipe.early_stopping),
      monitor_(recipe.origins.label("early_stopping.monitor"),
               config_.monitor.value_or(recipe.checkpoint.monitor.value_or("loss")), config_.mode) {}

std::string EarlyStopping::reason_to_stop() const {
  if (!last_) return "";
  const std::string value = fmt::format("{} is {}", monitor_.metric(), number_text(*last_));
  if (!std::isfinite(*last_)) return config_.check_finite ? value + ", not finite" : "";
  if (config_.stopping_threshold && monitor_.better(*last_, *config_.stopping_threshold))
    return fmt::format("{}, better than early_stopping.stopping_threshold {}", value,
                       *config_.stopping_threshold);
  if (config_.divergence_threshold && monitor_.better(*config_.divergence_threshold, *last_))
    return fmt::format("{}, worse than early_stopping.divergence_threshold {}", value,
                       *config_.divergence_threshold);
  if (config_.patience && waited_ >= *config_.patience)
    return fmt::format("{} has not improved on {:.6g} for {} (early_stopping.patience)", monitor_.metric(),
                       best_.value_or(NAN), counted(waited_, "evaluation"));
  return "";
}

void EarlyStopping::fit_start(FitContext& fit) {
  if (const std::string reason = reason_to_stop(); !reason.empty()) fit.stop(reason);
}

void EarlyStopping::evaluation_end(FitContext& fit, const Metrics& metrics) {
  last_ = monitor_.metric() == "train_loss" ? fit.train_loss : monitor_.value(metrics);
  const bool improved =
      std::isfinite(*last_) && (!best_ || monitor_.better(*last_, *best_, config_.min_delta));
  if (improved) best_ = last_;
  waited_ = improved ? 0 : waited_ + 1;
  fit_start(fit);
}

void EarlyStopping::add_state(State& state) const {
  state.scalars = {{"monitor", monitor_.metric()},
                   {"best", to_json(best_)},
                   {"last", to_json(last_)},
                   {"not_finite", last_ && !std::isfinite(*last_)},
                   {"waited", waited_}};
}

// If the monitored metric has changed, the stored values do not apply.
void EarlyStopping::resume(const State& state) {
  if (state.scalar("monitor") != monitor_.metric()) return;
  best_ = from_json(state.scalar("best"));
  last_ = state.scalar("not_finite").get<bool>() ? NAN : from_json(state.scalar("last"));
  state.scalar("waited").get_to(waited_);
}

}  // namespace stretto::trainer
