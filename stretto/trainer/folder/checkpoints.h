#pragma once

#include <memory>
#include <optional>

#include "stretto/checkpoint/writer.h"
#include "stretto/config/recipe.h"
#include "stretto/trainer/folder/run_checkpoint.h"
#include "stretto/trainer/run/recurrence.h"
#include "stretto/trainer/run/requests.h"

namespace stretto {
class Module;
}

namespace stretto::trainer {

// Implements `checkpoint` of the recipe: when a run is saved, and the checkpoint to which it rolls back. All
// calls are collective.
class Checkpoints {
 public:
  // `holds_state`: the output folder has a checkpoint of this run. Checkpoints carry the companions of
  // `module`.
  Checkpoints(const Recipe& recipe, const Mesh& mesh, const Module& module, bool holds_state);

  // Waits for the save in progress and returns the newest checkpoint of this run, for a rollback because of
  // `reason`. Throws Error with the reason if there is none.
  std::unique_ptr<StateSource> newest(const std::string& reason);

  // Requests pending on this rank before a step: by signals, and on rank 0 by the time interval.
  Requests requests() const;

  // Whether to save after this step. `evaluation` as in Recurrence::due(). `last`: the run is complete;
  // `stops`: it is not, but this is the last step of this process.
  bool due(const StepReport& report, std::optional<int64_t> evaluation, bool last, bool stops) const;

  // `last`: the final save, which waits for a save in progress regardless of when_busy.
  void save(State state, const StepReport& report, bool last, std::optional<checkpoint_format::Score> score);

  // Waits for the save in progress. Returns the reason if the last save failed, else "".
  std::string finish();

 private:
  const Recipe& recipe_;
  const Mesh& mesh_;
  const Module& module_;
  Recurrence every_;
  RequestSignals signals_;
  std::unique_ptr<checkpoint::Writer> writer_;  // created at the first save
  bool holds_state_;                            // the same on all ranks
};

}  // namespace stretto::trainer
