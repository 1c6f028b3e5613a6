#include "stretto/trainer/folder/kept_models.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/base/log.h"

namespace stretto::trainer {

KeptModels::KeptModels(const Recipe& recipe, const Mesh& mesh, const std::vector<ModelRule>& rules,
                       const RunFolder* folder, const Module& module)
    : mesh_(mesh), folder_(folder) {
  const CheckpointConfig& config = recipe.checkpoint;
  rules_.push_back(
      {"model", "model",
       Monitor(recipe.origins.label("checkpoint.monitor"), config.monitor.value_or("loss"), config.mode)});
  for (const ModelRule& rule : rules) {
    if (std::ranges::find(rules_, rule.name, &Rule::name) != rules_.end())
      throw ConfigError("checkpoint.save_models: {} is given twice; remove one", rule.name);
    rules_.push_back({rule.name, "models/" + rule.name,
                      Monitor(recipe.origins.label("checkpoint.save_models"), rule.metric, rule.limits.mode),
                      rule.limits});
  }
  if (folder == nullptr) return;
  for (const Rule& rule : rules_) savers_.emplace_back(*folder, module, rule.folder);
}

void KeptModels::consider(Rule& rule, const Metrics& metrics, const StepReport& at) {
  const double value = rule.monitor.value(metrics);
  const SavingLimits& limits = rule.limits;
  rule.due = std::isfinite(value) && (!limits.saving_above || value > *limits.saving_above) &&
             (!limits.saving_below || value < *limits.saving_below) &&
             (!rule.best || rule.monitor.better(value, *rule.best));
  if (!rule.due) return;
  rule.best = value;
  rule.step = at.step;
  rule.epochs = at.epochs;
}

bool KeptModels::consider_further(const Metrics& metrics, const StepReport& at) {
  for (size_t i = 1; i < rules_.size(); ++i) consider(rules_[i], metrics, at);
  return std::ranges::any_of(rules_, &Rule::due);
}

bool KeptModels::improve(const Metrics& metrics, double train_loss, const StepReport& at) {
  last_.reset();
  consider(rules_[0], metrics, at);
  if (const double value = monitor().value(metrics); std::isfinite(value)) last_ = value;
  if (rules_[0].due) {
    metrics_ = metrics;
    epoch_ = at.epoch + 1;
  }
  Metrics all = metrics;
  all["train_loss"] = train_loss;
  return consider_further(all, at);
}

bool KeptModels::improve_without_evaluation(double train_loss, const StepReport& at) {
  rules_[0].due = false;
  return consider_further({{"train_loss", train_loss}}, at);
}

bool KeptModels::keep_last() {
  if (metrics_ || std::exchange(kept_last_, true)) return false;
  for (Rule& rule : rules_) rule.due = &rule == &rules_[0];
  return true;
}

void KeptModels::save(const ListedSource& weights) {
  for (size_t i = 0; i < savers_.size(); ++i) {
    const Rule& rule = rules_[i];
    if (!rule.due) {
      savers_[i].retry();
    } else if (i == 0) {
      savers_[i].save(weights);
    } else {
      log::info("saved      {}: {} {:.4f}", rule.folder, rule.monitor.metric(), *rule.best);
      savers_[i].save(weights, {{"metric", rule.monitor.metric()},
                                {"value", *rule.best},
                                {"step", rule.step},
                                {"epoch", rule.epochs}});
    }
  }
}

void KeptModels::retry() {
  for (ModelSaver& saver : savers_) saver.retry();
}

std::vector<std::string> KeptModels::finish() {
  std::vector<std::string> failures;
  for (ModelSaver& saver : savers_) failures.push_back(saver.finish());
  return failures;
}

std::optional<checkpoint_format::Score> KeptModels::score() const {
  if (!last_) return std::nullopt;
  return checkpoint_format::Score{monitor().metric(), *last_, monitor().larger_is_better()};
}

void KeptModels::add_state(State& state) const {
  nlohmann::json& best = state.scalars["best"];
  best = {{"monitor", monitor().metric()}, {"epoch", epoch_}, {"step", step()}};
  if (last_) best["last"] = *last_;
  if (metrics_) best["metrics"] = *metrics_;
  nlohmann::json& further = state.scalars["saved_models"] = nlohmann::json::object();
  for (size_t i = 1; i < rules_.size(); ++i) {
    const Rule& rule = rules_[i];
    if (rule.best) further[rule.name] = {{"value", *rule.best}, {"step", rule.step}, {"epoch", rule.epochs}};
  }
}

// Rank 0, which sees the folder, decides for all ranks.
bool KeptModels::is_on_disk(const Rule& rule) const {
  const bool found = folder_ != nullptr && std::filesystem::exists(folder_->path() / rule.folder);
  return !mesh_.world().broadcast_bytes(found ? "yes" : "", 0).empty();
}

void KeptModels::resume(const State& state) {
  const nlohmann::json& best = state.scalar("best");
  const bool is_chosen = rules_[0].best.has_value();
  // If the monitored metric has changed, the stored values do not apply.
  if ((is_chosen || is_on_disk(rules_[0])) && best.at("monitor") == monitor().metric()) {
    last_.reset();
    if (best.contains("last")) last_ = best.at("last").get<double>();
    if (!is_chosen) {
      best.at("epoch").get_to(epoch_);
      rules_[0].step = best.value("step", int64_t{0});  // 0: a checkpoint of an earlier version
    }
    if (!is_chosen && best.contains("metrics")) {
      metrics_ = best.at("metrics").get<Metrics>();
      rules_[0].best = metrics_->at(monitor().metric());
    }
  }
  for (size_t i = 1; i < rules_.size(); ++i) {
    Rule& rule = rules_[i];
    const nlohmann::json& further = state.scalar("saved_models");
    if (rule.best || !is_on_disk(rule) || !further.contains(rule.name)) continue;
    const nlohmann::json& before = further.at(rule.name);
    rule.best = before.at("value").get<double>();
    before.at("step").get_to(rule.step);
    before.at("epoch").get_to(rule.epochs);
  }
}

}  // namespace stretto::trainer
