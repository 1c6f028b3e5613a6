#pragma once

#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "stretto/data/global_batches.h"
#include "stretto/tensor/state.h"

namespace stretto::data {

// The position of a run in its data, that is, the next global batch. The position is saved as (order, samples
// taken), so that a run resumes at the same sample even with another world size, batch size or token budget:
// the rest of the epoch then keeps its order and is divided into this run's batches. Each sample of an epoch
// is used once. Not thread-safe.
class EpochCursor {
 public:
  // Constructs it at the start of epoch 0. `dataset` must outlive it; messages call it `name`. Throws like
  // GlobalBatches.
  EpochCursor(const Dataset& dataset, const BatchOptions& options, std::string name = "the data set");

  int64_t epoch() const { return epoch_; }  // the epoch of the next batch, from 0
  bool epoch_begins() const { return samples_taken_ == 0; }
  double epochs_done() const;

  int64_t steps_per_epoch() const { return batches_.batches(0); }
  // The number of batches until `epochs` epochs are done; a fraction of an epoch is rounded up to whole
  // batches.
  int64_t steps_left(double epochs) const;

  // The next batch; advance() moves past it.
  GlobalBatch batch() const;
  void advance();

  // Saves the position under "place" and the identity of the data under "data".
  void add_state(State& state) const;

  // Moves to the position at which `state` was saved. Throws ConfigError if it belongs to other data,
  // DataError if this data has no such position; the cursor is then unchanged.
  void resume(const State& state);

 private:
  // The rest of an epoch that was begun with other options: its samples in the old order, divided into this
  // run's batches from the sample at which the run was resumed. It needs no memory per sample.
  struct Rest {
    nlohmann::json order;              // the order of the epoch
    std::unique_ptr<Sampler> sampler;  // the sampler of that order
    int64_t batches = 0;               // batches of this run
  };

  void require_same_data(const nlohmann::json& saved) const;
  Rest rest_of_epoch(const nlohmann::json& order, int64_t epoch, int64_t samples_taken) const;
  int64_t batches_now() const;  // of the current epoch
  std::vector<int64_t> next_samples() const;

  GlobalBatches batches_;
  std::string name_;
  int64_t epoch_ = 0;
  int64_t batch_ = 0;          // in the epoch, or in the rest of it
  int64_t samples_taken_ = 0;  // in the epoch
  std::optional<Rest> rest_;
};

}  // namespace stretto::data
