#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "stretto/checkpoint_format/manifest.h"
#include "stretto/comm/mesh.h"
#include "stretto/config/model_rule.h"
#include "stretto/config/recipe.h"
#include "stretto/tensor/state.h"
#include "stretto/trainer/api/step_report.h"
#include "stretto/trainer/folder/model_saver.h"
#include "stretto/trainer/run/monitor.h"

namespace stretto::trainer {

// The models that a run keeps, each the best by a metric: model/ by checkpoint.monitor, or the last weights
// of a run without evaluations; and the models of checkpoint.save_models and Trainer::register_model_saving
// in models/<name>, with the metric in their state.json. The decisions are the same on all ranks; rank 0
// writes.
class KeptModels {
 public:
  // `folder`: null on other ranks than 0, which call neither save() nor retry() and finish(). Throws
  // ConfigError for two rules of one name and for a metric without a known direction.
  KeptModels(const Recipe& recipe, const Mesh& mesh, const std::vector<ModelRule>& rules,
             const RunFolder* folder, const Module& module);

  // Whether a model is better than before, after an evaluation; save() must then follow. NaN is never better.
  // Throws ConfigError if a metric is missing.
  bool improve(const Metrics& metrics, double train_loss, const StepReport& at);
  // Like improve(), in a run without evaluations, for models that are selected by the training loss.
  bool improve_without_evaluation(double train_loss, const StepReport& at);
  // Whether model/ must be saved with the last weights, because no evaluation has selected it; true once.
  bool keep_last();

  // Writes the models that are due, and those that could not be written before.
  void save(const ListedSource& weights);
  void retry();
  // Ends the run: returns the result of ModelSaver::finish() for each model, model/ first.
  std::vector<std::string> finish();

  bool has_further() const { return rules_.size() > 1; }

  // Whether save() writes model/, and the best evaluation of model/.
  bool is_due() const { return rules_[0].due; }
  const Monitor& monitor() const { return rules_[0].monitor; }
  const std::optional<Metrics>& metrics() const { return metrics_; }
  int64_t step() const { return rules_[0].step; }
  int64_t epoch() const { return epoch_; }  // 1 is the first
  // The monitored metric of the last evaluation, unless it was not finite.
  std::optional<checkpoint_format::Score> score() const;

  void add_state(State& state) const;
  // Restores the best models from `state`. Models that this object has selected are kept, because they are on
  // disk. Otherwise a model on disk is the best one of `state`, and a model without a folder is selected from
  // scratch. Collective.
  void resume(const State& state);

 private:
  struct Rule {
    std::string name;
    std::string folder;  // in the run folder
    Monitor monitor;
    SavingLimits limits = {};
    std::optional<double> best = {};
    int64_t step = 0;
    double epochs = 0;
    bool due = false;  // save() writes it
  };
  static void consider(Rule& rule, const Metrics& metrics, const StepReport& at);
  bool consider_further(const Metrics& metrics, const StepReport& at);
  bool is_on_disk(const Rule& rule) const;

  const Mesh& mesh_;
  const RunFolder* folder_;
  std::vector<Rule> rules_;        // the first one is model/
  std::deque<ModelSaver> savers_;  // in the order of the rules; empty on other ranks than 0
  std::optional<Metrics> metrics_;
  int64_t epoch_ = 0;
  std::optional<double> last_;
  bool kept_last_ = false;
};

}  // namespace stretto::trainer
