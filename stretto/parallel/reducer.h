#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/comm/group.h"
#include "stretto/parallel/arena.h"
#include "stretto/parallel/fixed_order.h"
#include "stretto/parallel/gradient_scratch.h"
#include "stretto/parallel/row_table.h"

namespace stretto::parallel {

struct ReducerOptions {
  double bucket_bytes = 25 * 1024 * 1024;  // largest bucket
  // Sums go to the rank that owns the shard; gradients of other shards become zeros. REQUIRED if gradients
  // are sharded.
  bool to_owners = false;
  // > 0: the number of micro-batches per step over all ranks, at least one per rank. Gradients are then
  // summed in an order that depends only on it (fixed_order.h). REQUIRES: no parameter is sparse, and not
  // to_owners.
  int64_t fixed_order = 0;
};

// Thrown out of autograd by a backward that no Reducer has begun, such as loss.backward().
struct BackwardOutside : Error {
  using Error::Error;
};

// Sums the gradients of an arena over a group while backward runs. It uses hooks on the parameters; forward
// needs no wrapper.
// The gradient buffer is divided into buckets starting from its end, because backward fills it in that order.
// A bucket is reduced when all gradients in it are complete. Buckets are always reduced in the same order, so
// that ranks whose graphs differ issue the same collectives. Sparse tables follow the buckets and are reduced
// by rows (row_table.h).
// If gradients are sharded, each bucket is part of one unit. On ranks other than the owner, its gradients
// have memory only from the first one to the end of the reduction (gradient_scratch.h).
class Reducer {
 public:
  // A step goes through idle -> accumulating -> idle for each micro-batch but the last, and idle -> reducing
  // -> awaiting -> idle for the last one.
  enum class Phase {
    idle,          // outside backward; may contain gradients of earlier micro-batches
    accumulating,  // in a backward without communication
    reducing,      // in the last backward of a step
    awaiting       // after it: reductions may still be running
  };

  // Registers hooks on the arena's parameters. `group` may have one rank.
  Reducer(Arena& arena, Group& group, const ReducerOptions& options = {});
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  Phase phase() const { return phase_; }

  // Adds the gradients of `loss_sum` to the buffers. On the last micro-batch before a step (`last`) buckets
  // are reduced as they complete; on others nothing is communicated. With an undefined loss (a rank without
  // samples) the rank takes part in the reductions only. After an exception the gradients on this rank are
  // zeros, its part in the reductions is done, and the reducer is idle.
  void backward(const Tensor& loss_sum, bool last);

  // With fixed_order, call it after each backward of a step except the last one.
  void set_gradients_aside();

  // The parts of backward(), for a loss whose graph may contain parameters of several reducers. count_uses()
  // returns how often the loss will add to each gradient of this reducer and appends leaves that belong to
  // others to `others`. Run autograd between begin_backward() and end_backward(); if it throws, call
  // abort_backward() instead of end_backward().
  std::vector<int> count_uses(const Tensor& loss, std::vector<Tensor>* others = nullptr) const;
  void begin_backward(std::vector<int> uses, bool last);
  void end_backward();
  // `others_wait`: they wait for this rank in the reductions only, so that its part in them is done.
  void abort_backward(bool others_wait = true) noexcept;

  // Whether `tensor` is a parameter of the arena.
  bool holds(const Tensor& tensor) const { return index_of_.contains(tensor.unsafeGetTensorImpl()); }

  // Waits for the reductions, and sums each of `totals` (loss, count, ...) over the ranks; their number must
  // be the same on all ranks. REQUIRES: phase awaiting.
  void finish(std::span<double> totals = {});

  // The elements whose reduced gradients this rank has: all, or those of its shard with to_owners.
  const Range& held() const { return held_; }
  bool sums_to_owners() const { return options_.to_owners; }
  // The sum of squares of these gradients, and the index of the first parameter whose gradient contains NaN
  // or infinity, or -1.
  double sum_of_squares() const;
  int64_t first_nonfinite() const;
  // Whether all gradients on this rank are finite, whether reduced or not.
  bool all_finite() const;

  // Ends a step: zeroes the gradients, or records that the optimizer has zeroed them in the pass that used
  // them.
  void zero_gradients();
  void gradients_were_zeroed();
  // Zeroes the gradient of one parameter, by its index. REQUIRES: phase idle.
  void zero_gradient(size_t parameter);

  // Sparse tables in the order of parameters.
  const std::vector<std::unique_ptr<RowTable>>& tables() const { return tables_; }
  // The rows with gradients of the tables whose rows this rank's optimizer steps.
  optim::TouchedRows touched_rows() const;

  size_t buckets() const { return buckets_.size(); }

 private:
  class Hook;
  struct Bucket {
    Range range;
    size_t first_parameter;  // parameters that overlap it: [first_parameter, last_parameter]
    size_t last_parameter;
    int owner = 0;         // with to_owners: the shard that contains it
    size_t unit = 0;       // if gradients are sharded: the unit that contains it
    bool is_last = false;  // the last bucket of this unit, and no table follows
    size_t missing = 0;
  };
  struct Reduction {
    Work work;
    const Bucket* bucket;  // null: not a bucket
  };
  void cut_buckets(int64_t bucket_elements);
  void cut_buckets(Range range, int64_t bucket_elements);
  bool holds_table(size_t unit) const;
  size_t unit_of(size_t table) const { return arena_.parameters()[parameter_of_table_[table]].unit; }
  void check_use(size_t parameter, const torch::autograd::Node& user) const;
  void on_gradient(size_t parameter);
  void on_complete(size_t parameter);
  void complete_the_rest();
  void launch_ready();
  Work reduce(const Bucket& bucket);
  void finish_oldest();
  void open_ahead(size_t unit);
  Tensor gradients(const Bucket& bucket) const;
  void keep_owned(const Bucket& bucket);
  void clear_foreign(Range range);
  void wait();

  Arena& arena_;
  Group& group_;
  const ReducerOptions options_;
  GradientScratch scratch_;
  std::optional<FixedOrderSum> set_aside_;  // gradients of earlier micro-batches
  Range held_;
  std::vector<Bucket> buckets_;                    // in the order of reduction
  std::vector<Range> dense_;                       // the ranges of the buckets: everything except the tables
  std::vector<std::unique_ptr<RowTable>> tables_;  // reduced after the buckets
  std::vector<size_t> parameter_of_table_;
  std::unordered_map<const c10::TensorImpl*, size_t> index_of_;
  std::vector<int> uses_left_;
  std::deque<Reduction> reductions_;  // in progress
  size_t launched_ = 0;               // the number of buckets, then of tables
  Phase phase_ = Phase::idle;
};

}  // namespace stretto::parallel
