#pragma once

#include "stretto/comm/mesh.h"
#include "stretto/tensor/state.h"
#include "stretto/trainer/records/logged_values.h"

namespace stretto::trainer {

struct StepTotals;

// The values that the steps of a run have logged: since the last record, and since the epoch began.
class LoggedSteps {
 public:
  // `mesh` must outlive it.
  explicit LoggedSteps(const Mesh& mesh) : mesh_(mesh) {}

  // Adds the values that a step logged on this rank. `totals`: of all ranks in that step.
  void add(const LoggedWindows& local, const StepTotals& totals);

  // Whether there are values of the epoch. The same on all ranks.
  bool has_epoch_values() const { return is_logged_in_epoch_; }

  // The means of the values since the last call, on rank 0; `epoch_ends`: with those over the epoch.
  // Collective.
  LoggedMeans take(bool epoch_ends);

  void add_state(State& state);  // collective
  void resume(const State& state);

 private:
  void collect_record();
  void collect_epoch();

  const Mesh& mesh_;
  LoggedWindows windows_;
  bool is_logged_ = false;           // other ranks may have values for the record
  bool is_logged_in_epoch_ = false;  // some rank has values of the epoch
};

}  // namespace stretto::trainer
