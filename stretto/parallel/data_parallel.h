#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "stretto/comm/group.h"
#include "stretto/parallel/arena.h"
#include "stretto/parallel/row_table.h"
#include "stretto/tensor/batch.h"

namespace stretto {

// Replicated data parallelism: every rank owns all of every buffer; gradients are reduced as sums while backward still
// runs. Synchronisation hangs on the parameters, not on a wrapper around forward.
//
// The gradient buffer is cut into buckets from its end, because backward fills it from there. A bucket is reduced when
// the last gradient in it is complete, and always in the same order, so that ranks whose graphs differ stay in step.
// Sparse tables follow the buckets, each by the rows that have gradients (row_table.h).
class DataParallel {
 public:
  // Hooks the arena's parameters. bucket_bytes: the largest piece reduced at once. `group` may have one rank.
  DataParallel(Arena& arena, Group& group, double bucket_bytes);
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  // Gives every rank rank 0's master weights, where they differ, and `constant` tensors (frozen parameters, buffers).
  // Throws DistributedError naming a rank that differs even then. Collective.
  void synchronise_start(const std::vector<std::pair<std::string, Tensor>>& constant);

  // Adds the gradients of `loss_sum` to the buffers. On the last micro-batch before a step (`last`) buckets are reduced
  // as they complete; before, nothing is communicated. An undefined loss (a rank without a sample) only takes part.
  void backward(const Tensor& loss_sum, bool last);

  // The parts of backward(), for a loss whose graph may hold parameters of several engines. count_uses() says how often
  // the loss will add to each gradient of this engine; leaves of the graph that are not its own are appended to
  // `others`. Between begin_ and end_backward autograd runs; where it throws, abort_backward() takes the place of
  // end_backward().
  std::vector<int> count_uses(const Tensor& loss, std::vector<Tensor>* others = nullptr) const;
  void begin_backward(std::vector<int> uses, bool last);
  void end_backward(bool last);
  void abort_backward() { in_backward_ = false; }

  // Whether `tensor` is a parameter of this engine.
  bool holds(const Tensor& tensor) const { return index_of_.contains(tensor.unsafeGetTensorImpl()); }

  // Throws DistributedError naming ranks whose master weights are not those of rank 0, to the bit. Collective.
  void compare_replicas() const;

  // Waits for the reductions. REQUIRES: backward(..., last = true) went before.
  void wait();

  // As wait(), and adds up each of `totals` over the ranks: loss, count, and whatever else all ranks are to know of a
  // step. REQUIRES: backward(..., last = true) went before; as many totals on all ranks.
  void finish(std::span<double> totals);

  // Global L2 norm of the reduced gradient buffer, not yet divided by the count.
  double gradient_norm() const;

  // After a step: the gradients become zeros, or somebody has zeroed them in the same pass that used them.
  void zero_gradients();
  void gradients_were_taken();

  // Sparse tables, in the order of parameters, and their rows that have gradients.
  const std::vector<std::unique_ptr<RowTable>>& tables() const { return tables_; }
  optim::TouchedRows touched_rows() const;

  // The first parameter whose gradient holds NaN or infinity, or "".
  std::string first_nonfinite() const;

  size_t buckets() const { return buckets_.size(); }

 private:
  class Hook;
  struct Bucket {
    int64_t begin;
    int64_t end;
    size_t first_parameter;  // those that overlap it: [first_parameter, last_parameter]
    size_t last_parameter;
    size_t missing = 0;
  };
  void cut_buckets(int64_t bucket_elements);
  void cut_buckets(int64_t begin, int64_t end, int64_t bucket_elements);
  void check_use(size_t parameter, const torch::autograd::Node& user) const;
  void on_gradient(size_t parameter);
  void on_complete(size_t parameter);
  void launch_ready();
  std::optional<size_t> first_other_replica() const;  // collective

  Arena& arena_;
  Group& group_;
  std::vector<Bucket> buckets_;                     // in the order of reduction
  std::vector<std::pair<int64_t, int64_t>> dense_;  // what the buckets cover: all but the tables
  std::vector<std::unique_ptr<RowTable>> tables_;   // reduced after the buckets
  std::vector<size_t> parameter_of_table_;
  std::unordered_map<const c10::TensorImpl*, size_t> index_of_;
  std::vector<int> uses_left_;
  std::vector<Work> works_;
  size_t launched_ = 0;  // buckets, then tables
  bool in_backward_ = false;
  bool reducing_ = false;
  bool reduced_ = false;
};

// Hash of a tensor's bytes.
uint64_t checksum(const Tensor& tensor);

}  // namespace stretto
