#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "stretto/comm/group.h"
#include "stretto/lite/agreement.h"
#include "stretto/tensor/autocast.h"

namespace stretto::lite {

// What a rank's batch is of the global one: backward weighs a mean over it by count / global_count.
struct BatchShare {
  int64_t count = 0;  // samples that count on this rank; 0: a stand-in, so that it has something to compute
  int64_t global_count = 0;
};

// A loader that was set up.
struct LoaderRecord {
  int64_t number = 0;  // how messages name it
  const void* source = nullptr;
  int64_t epochs = 0;   // begun
  int64_t batches = 0;  // given out in the last one
  bool divided = true;  // its batches are the same on all ranks; each has its share of them
};

// The loops of a program over its loaders: where each one stands, and what the batch at hand is.
class Loop {
 public:
  Loop(Group& group, Agreement& agreement, at::Device device);

  int rank() const { return group_.rank(); }
  int ranks() const { return group_.size(); }
  at::Device device() const { return device_; }

  // The record of a loader at this address, made when it is seen first; null: of a new one, that nobody else will hold.
  LoaderRecord& record(const void* source);
  const std::deque<LoaderRecord>& records() const { return records_; }
  // Goes on as after so many epochs of each loader, in the order they were set up in; of loaders to come too.
  void resume(const std::vector<int64_t>& epochs);

  // Batches are computed in `dtype` from here on.
  void set_autocast(at::ScalarType dtype) { autocast_dtype_ = dtype; }
  const std::optional<at::ScalarType>& autocast_dtype() const { return autocast_dtype_; }

  // The batch that was given out last; nothing outside of loops.
  const std::optional<BatchShare>& share() const { return share_; }
  // Its number in the epoch, where all ranks divide one loader's batches; else 0.
  int64_t divided_batch() const { return current_ != nullptr && current_->divided ? current_->batches : 0; }

  // --- called by loaders, in this order

  // All ranks begin an epoch together; `start` draws rank 0's random numbers, so that all shuffle alike.
  void begin_epoch(LoaderRecord& loader, const std::function<void()>& start);
  // Ranks that divide a batch must have the same one. Throws DataError naming two that have not. Collective.
  void compare_first(const LoaderRecord& loader, uint64_t checksum);
  int64_t sum_counts(const LoaderRecord& loader, int64_t count);  // over the ranks. Collective.
  void begin_batch(LoaderRecord& loader, const BatchShare& share);
  void end_epoch(LoaderRecord& loader);
  void leave();  // however the loop ended

 private:
  Group& group_;
  Agreement& agreement_;
  at::Device device_;
  std::deque<LoaderRecord> records_;  // addresses stay
  std::vector<int64_t> resumed_epochs_;
  std::optional<at::ScalarType> autocast_dtype_;
  std::optional<Autocast> autocast_;
  std::optional<BatchShare> share_;
  const LoaderRecord* current_ = nullptr;
};

// Of `count` samples those of a rank: as many as the others have, give or take one.
struct Range {
  int64_t begin;
  int64_t end;
};
inline Range share_range(int64_t count, int rank, int ranks) {
  return {count * rank / ranks, count * (rank + 1) / ranks};
}

// `before` mixed with the tensor's bytes.
uint64_t mix_checksum(uint64_t before, const Tensor& tensor);

}  // namespace stretto::lite
