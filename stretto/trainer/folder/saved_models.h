#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "stretto/config/model_rule.h"
#include "stretto/trainer/folder/model_saver.h"
#include "stretto/trainer/run/monitor.h"

namespace stretto {

// The models that a run saves besides model/, each the best by a metric: checkpoint.save_models and
// Trainer::register_model_saving. They are folders models/<name>, with the metric in their state.json. The decisions are the
// same on all ranks; rank 0 writes.
class SavedModels {
 public:
  // `folder`: null on other ranks than 0. Throws ConfigError for two rules of one name and for a metric without a known
  // direction.
  SavedModels(std::vector<ModelRule> rules, const RunFolder* folder, const Module& module);

  bool empty() const { return rules_.empty(); }

  // Whether a rule saves the model with these metrics; then save() must follow. Throws ConfigError if a metric is missing.
  bool improve(const Metrics& metrics, int64_t step, double epochs);
  // On rank 0.
  void save(const NamedTensors& weights);

  // On rank 0: what could not be written before.
  void retry();
  // On rank 0, at the end; as ModelSaver::finish(), with the reasons of all models.
  std::string finish();

  void add_state(State& state) const;
  // `on_disk`: of each rule, whether its model is; those without begin again.
  void resume(const State& state, const std::vector<bool>& on_disk);
  // On rank 0.
  std::vector<bool> on_disk() const;
  size_t size() const { return rules_.size(); }

 private:
  struct Rule {
    ModelRule rule;
    Monitor monitor;
    std::optional<double> best = {};
    int64_t step = 0;
    double epochs = 0;
    bool improved = false;  // by the last metrics
  };
  static bool allows(const SavingLimits& limits, double value);

  const RunFolder* folder_;
  std::vector<Rule> rules_;
  std::deque<ModelSaver> savers_;  // in the order of the rules; empty on other ranks than 0
};

}  // namespace stretto
