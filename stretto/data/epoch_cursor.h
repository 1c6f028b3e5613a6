#pragma once

#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "stretto/data/global_batches.h"
#include "stretto/tensor/state.h"

namespace stretto::data {

// The position of a run in its data: which global batch is next. The position is saved as (order, samples taken), so that
// a run is resumed at the same sample, with another world size, batch size or token budget too: the rest of the
// epoch is then taken in the order that was begun and cut into this run's batches. Each sample of an epoch is used
// once. Not thread-safe.
class EpochCursor {
 public:
  // At the start of epoch 0. `dataset` must outlive it. Throws as GlobalBatches.
  EpochCursor(const Dataset& dataset, const BatchOptions& options);

  int64_t epoch() const { return epoch_; }  // of the next batch; 0 is the first
  bool epoch_begins() const { return samples_taken_ == 0; }
  double epochs_done() const;

  int64_t steps_per_epoch() const { return batches_.batches(0); }
  // Batches from here until `epochs` epochs are done; of a last part of an epoch, rounded up to whole batches.
  int64_t steps_left(double epochs) const;

  // The next batch; advance() moves past it.
  GlobalBatch batch() const;
  void advance();

  // Saves the position under "place", and what identifies the data under "data".
  void add_state(State& state) const;

  // Moves to where `state` was saved. Throws ConfigError where it is of other data than this, called `name`, DataError where the position is
  // none of this data; the cursor is then as before.
  void resume(const State& state, const std::string& name = "the data set");

 private:
  // What is left of an epoch that other options began, as this run's batches: the samples of the order that
  // was begun, cut from where the run was resumed, so that nothing is kept per sample.
  struct Rest {
    nlohmann::json order;              // the order that was begun
    std::unique_ptr<Sampler> sampler;  // of that order
    int64_t batches = 0;               // of this run
  };

  void require_same_data(const nlohmann::json& saved, const std::string& name) const;
  Rest rest_of_epoch(const nlohmann::json& order, int64_t epoch, int64_t samples_taken) const;
  int64_t batches_now() const;  // of the epoch under way
  std::vector<int64_t> next_samples() const;

  GlobalBatches batches_;
  int64_t epoch_ = 0;
  int64_t batch_ = 0;          // of the epoch, or of its rest
  int64_t samples_taken_ = 0;  // of the epoch
  std::optional<Rest> rest_;
};

}  // namespace stretto::data
