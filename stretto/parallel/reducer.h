#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "stretto/comm/group.h"
#include "stretto/parallel/arena.h"
#include "stretto/parallel/row_table.h"

namespace stretto {

// Sums the gradients of an arena over a group while backward still runs. Synchronisation hangs on the parameters, not on a
// wrapper around forward.
//
// The gradient buffer is cut into buckets from its end, because backward fills it from there. A bucket is reduced when
// the last gradient in it is complete, and always in the same order, so that ranks whose graphs differ stay in step.
// Sparse tables follow the buckets, each by the rows that have gradients (row_table.h).
class Reducer {
 public:
  // What a reducer is doing. A step goes through idle -> accumulating -> idle for each micro-batch but the last, and
  // idle -> reducing -> awaiting -> idle for the last one.
  enum class Phase {
    idle,          // outside of backward; gradients of earlier micro-batches may be there
    accumulating,  // inside of a backward that communicates nothing
    reducing,      // inside of the last backward of a step
    awaiting       // after it: reductions may still be under way
  };

  // Hooks the arena's parameters. bucket_bytes: the largest piece reduced at once. `group` may have one rank.
  Reducer(Arena& arena, Group& group, double bucket_bytes);
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  Phase phase() const { return phase_; }

  // Adds the gradients of `loss_sum` to the buffers. On the last micro-batch before a step (`last`) buckets are reduced
  // as they complete; before, nothing is communicated. An undefined loss (a rank without a sample) only takes part.
  // After an exception the gradients are zeros on this rank, its part in the reductions is done, and the reducer is idle.
  void backward(const Tensor& loss_sum, bool last);

  // The parts of backward(), for a loss whose graph may hold parameters of several reducers. count_uses() says how often
  // the loss will add to each gradient of this one; leaves of the graph that are not its own are appended to `others`.
  // Between begin_ and end_backward autograd runs; where it throws, abort_backward() takes the place of end_backward().
  std::vector<int> count_uses(const Tensor& loss, std::vector<Tensor>* others = nullptr) const;
  void begin_backward(std::vector<int> uses, bool last);
  void end_backward();
  void abort_backward() noexcept;

  // Whether `tensor` is a parameter of the arena.
  bool holds(const Tensor& tensor) const { return index_of_.contains(tensor.unsafeGetTensorImpl()); }

  // Waits for the reductions. With `totals`: also adds up each of them over the ranks (loss, count, and whatever else all
  // ranks are to know of a step), as many on all ranks. REQUIRES: phase awaiting.
  void finish(std::span<double> totals = {});

  // Of the reduced gradients: sum of squares, and the first parameter that holds NaN or infinity, or "".
  double sum_of_squares() const;
  std::string first_nonfinite() const;

  // After a step: the gradients become zeros, or somebody has zeroed them in the same pass that used them.
  void zero_gradients();
  void gradients_were_zeroed();

  // Sparse tables, in the order of parameters, and their rows that have gradients.
  const std::vector<std::unique_ptr<RowTable>>& tables() const { return tables_; }
  optim::TouchedRows touched_rows() const;

  size_t buckets() const { return buckets_.size(); }

 private:
  class Hook;
  struct Bucket {
    Range range;
    size_t first_parameter;  // those that overlap it: [first_parameter, last_parameter]
    size_t last_parameter;
    size_t missing = 0;
  };
  void cut_buckets(int64_t bucket_elements);
  void cut_buckets(Range range, int64_t bucket_elements);
  void check_use(size_t parameter, const torch::autograd::Node& user) const;
  void on_gradient(size_t parameter);
  void on_complete(size_t parameter);
  void complete_the_rest();
  void launch_ready();
  void wait();

  Arena& arena_;
  Group& group_;
  std::vector<Bucket> buckets_;                    // in the order of reduction
  std::vector<Range> dense_;                       // what the buckets cover: all but the tables
  std::vector<std::unique_ptr<RowTable>> tables_;  // reduced after the buckets
  std::vector<size_t> parameter_of_table_;
  std::unordered_map<const c10::TensorImpl*, size_t> index_of_;
  std::vector<int> uses_left_;
  std::vector<Work> works_;
  size_t launched_ = 0;  // buckets, then tables
  Phase phase_ = Phase::idle;
};

}  // namespace stretto
