#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stretto/trainer/run/recurrence.h"
#include "stretto/trainer/run/validation.h"

namespace stretto::trainer {

struct Session;

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

  // The step that the first evaluation of a run follows; nullopt if this depends on time or on the lengths of
  // samples, or if there are no evaluations. REQUIRES: the run is at its start.
  std::optional<int64_t> first() const;

  // Evaluates the validation samples after `step`, 0 before the first. Throws Error if a metric is not
  // finite, except `may_be_nonfinite`. Collective.
  Validated evaluate(int64_t step, const std::string& may_be_nonfinite = "");

  // Counts an evaluation of the current weights, by evaluate() or another process.
  void count();
  // Throws Error if a metric of the evaluation after `step` is not finite, except `may_be_nonfinite`.
  static void require_finite(int64_t step, const Metrics& metrics, const std::string& may_be_nonfinite);

  // The identity of the samples of each set, by its name.
  nlohmann::json identities() const;

  // The metrics of the samples of evaluate.sanity_steps; nullopt if there are none. Collective.
  std::optional<Metrics> check();

  // Saves the number of evaluations and, under "validation", an identification of the samples of each set.
  void add_state(State& state) const;
  // Throws ConfigError if the samples differ, unless checkpoint.accept_changes contains data.validation.
  void resume(const State& state);

 private:
  void require_same_data(const std::string& set, const nlohmann::json& saved) const;
  // Calls `use` while the module has the weights to evaluate. Collective.
  void with_weights(const std::function<void(const ValidationPass&)>& use);

  const Recipe& recipe_;
  Session& session_;
  const std::vector<ValidationSamples> sets_;  // empty without evaluation
  Recurrence every_;
  int64_t done_ = 0;
  // identifies the sets of the resumed checkpoint
  nlohmann::json evaluated_before_ = nlohmann::json::object();
};

}  // namespace stretto::trainer
