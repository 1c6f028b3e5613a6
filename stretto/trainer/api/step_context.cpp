#include "stretto/trainer/api/step_context.h"

#include "stretto/base/error.h"
#include "stretto/base/known_values.h"
#include "stretto/trainer/records/logged_values.h"

namespace stretto {

AxisRanks StepContext::data_parallel() const {
  if (all_ranks_step_) return mesh_.data_parallel();
  return AxisRanks(
      mesh_.group(Axes::data),
      fmt::format(
          "{}: a batch has too few samples for {} ranks, so some ranks do not run this step, and a collective in it would hang; use larger batches, and a number of samples that leaves no small batch at the end",
          forward.training ? fmt::format("step {}", step + 1) : "evaluation", mesh_.size(Axes::data)));
}

ManualOptimization& StepContext::manual() const {
  if (manual_ != nullptr) return *manual_;
  throw ConfigError(
      "context.manual(): there are no optimizers to step here; they are there in training_step of a module whose automatic_optimization() returns false");
}

void StepContext::log(const std::string& name, double value, const LogOptions& options) const {
  if (forward.training && find_known_value(name) != nullptr) {
    throw ConfigError("log(\"{}\"): the Trainer logs this name itself; choose another name", name);
  }
  if (options.weight && options.reduction == LogReduction::sum)
    throw ConfigError("log(\"{}\"): a sum has no weight; set only one of weight and reduction", name);
  trainer::LoggedValue logged = {.value = value,
                                 .weight = options.weight.value_or(static_cast<double>(batch_count)),
                                 .reduction = options.reduction};
  if (!forward.training) return logged_.record.add(name, logged);
  if (!options.on_step && !options.on_epoch) {
    throw ConfigError(
        "log(\"{}\"): neither on_step nor on_epoch is set, so nothing would be recorded; set one", name);
  }
  logged.hidden = !options.prog_bar;
  if (options.on_step) logged_.record.add(name, logged);
  if (options.on_epoch) logged_.epoch.add(options.on_step ? name + "_epoch" : name, logged);
}

}  // namespace stretto
