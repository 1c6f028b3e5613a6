#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stretto/config/recipe.h"
#include "stretto/data/subset.h"
#include "stretto/trainer/api/module.h"
#include "stretto/trainer/records/evaluation_speed.h"
#include "stretto/trainer/run/recurrence.h"

namespace stretto::trainer {

struct Session;

// Validation samples by name.
using ValidationSets = std::vector<std::pair<std::string, const data::Dataset*>>;

// Implements `evaluate` of the recipe: when a run is evaluated, and on which samples.
class Evaluator {
 public:
  // `validation` may be null; the metrics of `others` are named "<set>/<metric>". All references must outlive
  // the object.
  Evaluator(Session& session, const data::Dataset* validation, const ValidationSets& others);

  // Whether there are evaluations at all.
  bool in_use() const { return !sets_.empty(); }
  // Whether this rank requests an evaluation after the next step, because an interval of time has passed.
  bool requested() const { return in_use() && every_.requested(); }
  // The number of the evaluation that follows this step, 1 for the first; nullopt if none does. `last`: the
  // run is complete.
  std::optional<int64_t> after(const StepReport& report, bool last) const;

  // The metrics of the validation samples, the same on all ranks. Throws Error if one is not finite, except
  // the metric `may_be_nonfinite`. Collective.
  Metrics evaluate(int64_t step, const std::string& may_be_nonfinite = "");

  // The duration and speed of the last evaluate().
  const EvaluationSpeed& speed() const { return speed_; }

  // The texts of evaluate.samples and their continuations at the last evaluate(), on rank 0.
  const std::vector<std::string>& samples() const { return written_; }

  // The tables of the last evaluate(), with evaluate.by_class on rank 0; else "".
  const std::string& table() const { return table_; }

  // The metrics of the samples of evaluate.sanity_steps; nullopt if there are none. Collective.
  std::optional<Metrics> check();

  // Saves the number of evaluations and, under "validation", an identification of the samples of each set.
  void add_state(State& state) const;
  // Throws ConfigError if the samples differ, unless checkpoint.accept_changes contains data.validation.
  void resume(const State& state);

 private:
  // Samples that are evaluated: all of a set, or evaluate.max_samples of it.
  struct Samples {
    std::string set;
    const data::Dataset* all;
    std::optional<data::Subset> limited = {};
    const data::Dataset& get() const { return limited ? *limited : *all; }
  };
  Samples limit(const std::string& set, const data::Dataset& all) const;
  void require_same_data(const std::string& set, const nlohmann::json& saved) const;
  Metrics measure(const std::string& set, const data::Dataset& samples);
  std::vector<std::string> write_samples();

  const Recipe& recipe_;
  Session& session_;
  std::vector<Samples> sets_;  // the first has no name; empty without evaluation
  Recurrence every_;
  int64_t done_ = 0;
  // identifies the sets of the resumed checkpoint
  nlohmann::json evaluated_before_ = nlohmann::json::object();
  EvaluationSpeed speed_;
  std::string table_;
  std::vector<std::string> written_;
};

// "accuracy 0.9312 | loss 0.2044"
std::string one_line(const Metrics& metrics);

}  // namespace stretto::trainer
