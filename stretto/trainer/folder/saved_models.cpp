#include "stretto/trainer/folder/saved_models.h"

#include <cmath>
#include <set>

#include "stretto/base/error.h"
#include "stretto/base/log.h"

namespace stretto {

SavedModels::SavedModels(std::vector<ModelRule> rules, const RunFolder* folder, const Module& module)
    : folder_(folder) {
  std::set<std::string> names;
  for (ModelRule& rule : rules) {
    if (!names.insert(rule.name).second)
      throw ConfigError("checkpoint.save_models: {} is given twice; remove one", rule.name);
    Monitor monitor("checkpoint.save_models", rule.metric, rule.limits.mode);
    if (folder != nullptr) savers_.emplace_back(*folder, module, "models/" + rule.name);
    rules_.push_back({std::move(rule), std::move(monitor)});
  }
}

bool SavedModels::allows(const SavingLimits& limits, double value) {
  if (limits.saving_above && !(value > *limits.saving_above)) return false;
  return !limits.saving_below || value < *limits.saving_below;
}

bool SavedModels::improve(const Metrics& metrics, int64_t step, double epochs) {
  bool any = false;
  for (Rule& rule : rules_) {
    const double value = rule.monitor.value(metrics);
    rule.improved = std::isfinite(value) && allows(rule.rule.limits, value) &&
                    (!rule.best || rule.monitor.better(value, *rule.best));
    if (!rule.improved) continue;
    any = true;
    rule.best = value;
    rule.step = step;
    rule.epochs = epochs;
    log::info("saved      models/{}: {} {:.4f}", rule.rule.name, rule.monitor.metric(), value);
  }
  return any;
}

void SavedModels::save(const NamedTensors& weights) {
  for (size_t i = 0; i < savers_.size(); ++i) {
    const Rule& rule = rules_[i];
    if (!rule.improved) continue;
    savers_[i].save(weights, {{"metric", rule.monitor.metric()},
                              {"value", *rule.best},
                              {"step", rule.step},
                              {"epoch", rule.epochs}});
  }
}

void SavedModels::retry() {
  for (ModelSaver& saver : savers_) saver.retry();
}

std::string SavedModels::finish() {
  std::vector<std::string> failures;
  for (ModelSaver& saver : savers_) {
    if (std::string failure = saver.finish(); !failure.empty()) failures.push_back(std::move(failure));
  }
  return fmt::format("{}", fmt::join(failures, "; "));
}

void SavedModels::add_state(State& state) const {
  nlohmann::json& saved = state.scalars["saved_models"] = nlohmann::json::object();
  for (const Rule& rule : rules_) {
    if (rule.best)
      saved[rule.rule.name] = {{"value", *rule.best}, {"step", rule.step}, {"epoch", rule.epochs}};
  }
}

void SavedModels::resume(const State& state, const std::vector<bool>& on_disk) {
  const nlohmann::json& saved = state.scalar("saved_models");
  for (size_t i = 0; i < rules_.size(); ++i) {
    Rule& rule = rules_[i];
    if (!on_disk.at(i) || !saved.contains(rule.rule.name)) continue;
    const nlohmann::json& before = saved.at(rule.rule.name);
    rule.best = before.at("value").get<double>();
    before.at("step").get_to(rule.step);
    before.at("epoch").get_to(rule.epochs);
  }
}

std::vector<bool> SavedModels::on_disk() const {
  std::vector<bool> found;
  for (const Rule& rule : rules_)
    found.push_back(std::filesystem::exists(folder_->path() / "models" / rule.rule.name));
  return found;
}

}  // namespace stretto
