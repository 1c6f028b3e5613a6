#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "stretto/comm/group.h"
#include "stretto/config/recipe.h"
#include "stretto/data/dataset.h"
#include "stretto/track/tracker.h"
#include "stretto/trainer/callback.h"
#include "stretto/trainer/module.h"

namespace stretto {

struct FitResult {
  int64_t steps = 0;
  int64_t samples = 0;
  double seconds = 0;
  std::optional<Metrics> best;  // metrics of the epoch whose model was kept
  int64_t best_epoch = 0;
  int64_t resumed_after = 0;  // the step that a checkpoint had reached; 0: began anew
  bool stopped = false;       // by a signal, before the last step; a checkpoint holds the state
  bool was_finished = false;  // the resumed run had taken all its steps: nothing was trained or written
  std::string ended_by;       // why a callback ended the run before its last step; else empty
};

// Trains a module as a recipe says: epochs of steps, evaluation, the best model kept, checkpoints, progress and metrics
// written to the run folder; resumes where the recipe says to. Every rank calls fit with the same recipe and data.
class Trainer {
 public:
  Trainer(const Recipe& recipe, Group& group, at::Device device)
      : recipe_(recipe), group_(group), device_(device) {}

  // Before fit(). Callbacks are told in the order they are added; every rank must add the same ones. Trackers come after
  // those of the recipe and are used at rank 0 only.
  void add(std::shared_ptr<Callback> callback) { callbacks_.push_back(std::move(callback)); }
  void add(std::shared_ptr<Tracker> tracker) { trackers_.push_back(std::move(tracker)); }

  // `validation` may be null. Afterwards <output>/model holds the best model by checkpoint.monitor, or the last one
  // where nothing is evaluated.
  FitResult fit(Module& module, const data::Dataset& train, const data::Dataset* validation);

 private:
  const Recipe& recipe_;
  Group& group_;
  at::Device device_;
  std::vector<std::shared_ptr<Callback>> callbacks_;
  std::vector<std::shared_ptr<Tracker>> trackers_;
};

}  // namespace stretto
