#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "stretto/checkpoint/writer.h"
#include "stretto/config/recipe.h"
#include "stretto/trainer/run/recurrence.h"
#include "stretto/trainer/run/requests.h"
#include "stretto/trainer/run/training_run.h"

namespace stretto {

// Implements `checkpoint` and `resume` of the recipe: when a run is saved, and what it resumes from. All calls are
// collective.
class Checkpoints {
 public:
  // REQUIRES: the output folder exists at rank 0.
  Checkpoints(const Recipe& recipe, const Mesh& mesh);

  // Describes the live state into which a checkpoint is loaded; `random_writers` as in TrainingRun::state().
  using Describe = std::function<State(int random_writers)>;

  // Loads the checkpoint selected by `resume` into the described state; nullopt if the run starts from the beginning.
  // Throws ConfigError if a required checkpoint is missing or the settings differ, and DataError if no checkpoint is
  // valid.
  std::optional<State> load(const Describe& describe);

  // Whether the checkpoint that load() has loaded belongs to the run in this output folder. The same on all
  // ranks.
  bool continues_folder() const { return continues_; }

  // Waits for the save in progress, then loads the newest checkpoint of this run. Throws Error with `reason` if there
  // is none.
  State roll_back(const Describe& describe, const std::string& reason);

  // Requests pending on this rank before a step: by signals, and on rank 0 by the time interval.
  Requests requests() const;

  // Whether to save after this step. `evaluation` as in Recurrence::due(). `last`: the run is complete; `stops`: it is not,
  // but this is the last step of this process.
  bool due(const StepReport& report, std::optional<int64_t> evaluation, bool last, bool stops) const;

  // `last`: the final save, which waits for a save in progress regardless of when_busy.
  void save(State state, const StepReport& report, bool last, std::optional<checkpoint_format::Score> score);

  // Waits for the save in progress. Returns the reason if the last save failed, else "".
  std::string finish();

 private:
  std::optional<checkpoint_format::Checkpoint> choose() const;
  bool is_in_folder(const std::filesystem::path& checkpoint) const;
  State load_from(const std::filesystem::path& checkpoint, const Describe& describe);
  void require_same_settings(const checkpoint_format::Manifest& manifest,
                             const std::filesystem::path& checkpoint) const;

  const Recipe& recipe_;
  const Mesh& mesh_;
  std::filesystem::path folder_;
  Recurrence every_;
  RequestSignals signals_;
  std::unique_ptr<checkpoint::Writer> writer_;  // created at the first save
  bool continues_ = false;
  bool holds_state_ = false;  // the folder has a checkpoint of this run; the same on all ranks
};

}  // namespace stretto
