#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "stretto/tensor/tensor.h"

namespace stretto {
class Autocast;
class Mesh;
}  // namespace stretto

namespace stretto::lite {

class Agreement;

// This rank's share of the global batch: backward weights a mean over it by count / global_count.
struct BatchShare {
  int64_t count = 0;  // samples on this rank; 0: a dummy batch, so that the rank takes part in backward
  int64_t global_count = 0;
};

// A loader that was set up.
struct LoaderRecord {
  int64_t number = 0;  // in messages
  const void* source = nullptr;
  int64_t epochs = 0;   // begun
  int64_t batches = 0;  // yielded in the current epoch
  bool divided = true;  // Distribute::split
};

// The loops of a program over its loaders: the position of each, and the current batch.
class Loop {
 public:
  Loop(const Mesh& mesh, Agreement& agreement, at::Device device);
  ~Loop();

  // This rank among those that share each batch (Axes::data), and their number.
  int data_rank() const;
  int data_ranks() const;
  at::Device device() const { return device_; }

  // The record of the loader at this address, created on first use; null: a new record.
  LoaderRecord& record(const void* source);
  const std::deque<LoaderRecord>& records() const { return records_; }
  // Sets the number of epochs of each loader, in the order of setup, including loaders that are set up later.
  void resume(const std::vector<int64_t>& epochs);

  // Enables autocast to `dtype` for the following batches.
  void set_autocast(at::ScalarType dtype) { autocast_dtype_ = dtype; }
  const std::optional<at::ScalarType>& autocast_dtype() const { return autocast_dtype_; }

  // This rank's share of the current batch; nullopt outside loops.
  const std::optional<BatchShare>& share() const { return share_; }
  // The number of the current batch in the epoch under Distribute::split; else 0.
  int64_t divided_batch() const { return current_ != nullptr && current_->divided ? current_->batches : 0; }

  // --- called by loaders, in this order

  // All ranks begin an epoch together. `start` runs with rank 0's generator state, so that all ranks shuffle
  // the same way.
  void begin_epoch(LoaderRecord& loader, const std::function<void()>& start);
  // The number of ranks that must read the same batches: all, or with Distribute::per_rank those with parts
  // of the same layers.
  int readers(const LoaderRecord& loader) const;
  // Checks that these ranks have the same first batch. Throws DataError naming a rank whose batch differs.
  // Collective.
  void compare_first(const LoaderRecord& loader, uint64_t checksum);
  int64_t sum_counts(const LoaderRecord& loader, int64_t count);  // over the ranks. Collective.
  void begin_batch(LoaderRecord& loader, const BatchShare& share);
  void end_epoch(LoaderRecord& loader);
  void leave();  // at the end of the loop, also by break or an exception

 private:
  const Mesh& mesh_;
  Agreement& agreement_;
  at::Device device_;
  std::deque<LoaderRecord> records_;  // stable addresses
  std::vector<int64_t> resumed_epochs_;
  std::optional<at::ScalarType> autocast_dtype_;
  std::unique_ptr<Autocast> autocast_;  // of the current batch
  std::optional<BatchShare> share_;
  const LoaderRecord* current_ = nullptr;
};

// Samples [begin, end) of a batch.
struct Range {
  int64_t begin;
  int64_t end;
};
// The samples of one rank out of `count`; the sizes of any two ranks differ by at most one.
inline Range share_range(int64_t count, int data_rank, int data_ranks) {
  return {count * data_rank / data_ranks, count * (data_rank + 1) / data_ranks};
}

// The hash of `before` and the bytes of a tensor of any shape.
uint64_t mix_checksum(uint64_t before, const Tensor& tensor);

}  // namespace stretto::lite
