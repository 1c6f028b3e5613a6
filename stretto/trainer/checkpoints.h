#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "stretto/checkpoint/writer.h"
#include "stretto/config/interval.h"
#include "stretto/config/recipe.h"
#include "stretto/trainer/training_run.h"

namespace stretto {

// When a run is saved, and where it goes on from: `checkpoint` and `resume` of the recipe. All calls are collective.
class Checkpoints {
 public:
  Checkpoints(const Recipe& recipe, Group& group);

  // Describes the living state as the checkpoint to load has it: `random_writers` is TrainingRun::state()'s.
  using Describe = std::function<State(int random_writers)>;

  // Loads what the recipe says to resume from into the state that is described; nothing where the run starts from the
  // beginning. Throws ConfigError where there is nothing although there must be, or the settings differ, and DataError
  // where no checkpoint is whole.
  std::optional<State> load(const Describe& describe);

  // Whether a checkpoint that load() finds is of the run in this folder, not of another one.
  bool continues_folder() const;

  // Loads the newest checkpoint of this run, after the save under way. Throws Error, with `reason`, where there is none.
  State roll_back(const Describe& describe, const std::string& reason);

  // What this rank was asked for before a step: by signals, and at rank 0 by the clock.
  Requests ask() const;

  // Whether the state is to be saved after this step.
  bool due(const StepReport& report, bool last) const;

  // `last`: nothing comes after it, so that it waits for a save under way whatever when_busy says.
  void save(State state, const StepReport& report, bool last, std::optional<archive::Score> score);

  // Waits for the save under way. Throws IoError where the last one failed.
  void finish();

 private:
  std::optional<archive::Checkpoint> choose() const;
  State load_from(const std::filesystem::path& checkpoint, const Describe& describe);
  void require_same_settings(const archive::Manifest& manifest,
                             const std::filesystem::path& checkpoint) const;

  const Recipe& recipe_;
  Group& group_;
  std::filesystem::path folder_;
  Interval every_;
  RequestSignals signals_;
  std::unique_ptr<checkpoint::Writer> writer_;  // made for the first save
  bool holds_state_ = false;                    // the folder has a checkpoint of this run, on all ranks alike
  std::chrono::steady_clock::time_point last_save_ = std::chrono::steady_clock::now();
  double last_epochs_ = 0;
};

}  // namespace stretto
