#include "stretto/trainer/folder/best_model.h"

#include <cmath>

namespace stretto {

BestModel::BestModel(const CheckpointConfig& config, const std::string& setting)
    : monitor_(setting, config.monitor.value_or("loss"), config.mode) {}

bool BestModel::improves(const Metrics& metrics, int64_t step, int64_t epoch) {
  const double value = monitor_.value(metrics);
  last_.reset();
  if (!std::isfinite(value)) return false;
  last_ = value;
  if (best_ && !monitor_.better(value, best_->at(monitor_.metric()))) return false;
  best_ = metrics;
  step_ = step;
  epoch_ = epoch;
  return true;
}

std::optional<checkpoint_format::Score> BestModel::score() const {
  if (!last_) return std::nullopt;
  return checkpoint_format::Score{monitor_.metric(), *last_, monitor_.larger_is_better()};
}

void BestModel::add_state(State& state) const {
  state.scalars["best"] = {{"monitor", monitor_.metric()}, {"epoch", epoch_}, {"step", step_}};
  if (last_) state.scalars["best"]["last"] = *last_;
  if (best_) state.scalars["best"]["metrics"] = *best_;
}

void BestModel::read_last(const nlohmann::json& saved) {
  last_.reset();
  if (saved.contains("last")) last_ = saved.at("last").get<double>();
}

void BestModel::roll_back(const State& state) { read_last(state.scalar("best")); }

// If the monitored metric has changed, the stored values do not apply.
void BestModel::resume(const State& state) {
  const nlohmann::json& before = state.scalar("best");
  if (before.at("monitor") != monitor_.metric()) return;
  before.at("epoch").get_to(epoch_);
  step_ = before.value("step", int64_t{0});  // 0: a checkpoint of an earlier version
  read_last(before);
  if (before.contains("metrics")) best_ = before.at("metrics").get<Metrics>();
}

}  // namespace stretto
