#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "stretto/kernels/optimizer.h"
#include "stretto/tensor/memory.h"

namespace stretto::optim {

// The flat buffers an optimizer works on. compute is undefined where the model computes in the master's type.
struct Buffers {
  Tensor master;   // [N] fp32 or fp64
  Tensor grad;     // [N] of master's type; zeroed by each step
  Tensor compute;  // [N] bf16, rewritten by each step
};

// Elements [begin, end) of the buffers that are stepped with the same settings.
struct Range {
  int64_t begin;
  int64_t end;
  bool decay;  // weight decay applies
  double lr_factor = 1;
  int64_t row_width =
      0;  // above 0: a table of rows so wide, of which a step may have gradients for some only

  bool same_settings(const Range& other) const {
    return decay == other.decay && lr_factor == other.lr_factor && row_width == 0 && other.row_width == 0;
  }
};

// The rows that have gradients, ascending, for each range with a row_width, in order.
using TouchedRows = std::vector<std::span<const int64_t>>;

// A step that rows may not have been through yet.
struct PastStep {
  double lr_factor;
  int64_t step;  // 1 at the first
};

// An update rule over ranges of memory. It knows nothing of modules, ranks or files.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Takes the memory it will step, and its own state from `allocator`. Once, before the first step.
  void bind(const Buffers& buffers, std::vector<Range> ranges, const Allocator& allocator);

  // One step with gradients multiplied by `grad_scale` (1 / global count, clipping) at learning rate base_lr() * lr_factor,
  // times each range's own.
  void step(double lr_factor, double grad_scale) { step(lr_factor, grad_scale, {}); }

  // The same, where only `touched` rows of the tables have gradients. An optimizer that can leaves the others for later:
  // catch_up() takes them through the steps they have missed, to the same bits, and must come before they are read.
  void step(double lr_factor, double grad_scale, const TouchedRows& touched);
  void catch_up(size_t table, std::span<const int64_t> rows);
  void catch_up();  // all rows of all tables

  // Counts a step that is not taken.
  void skip_step() { ++steps_done_; }

  double base_lr() const { return base_lr_; }
  int64_t steps_done() const { return steps_done_; }
  // State tensors in the order of slot_names(), each as long as the buffers.
  const std::vector<Tensor>& slots() const { return slots_; }
  // Goes on as after so many steps: the slots have been written from outside.
  void resume(int64_t steps_done);
  virtual std::string name() const = 0;
  virtual std::vector<std::string> slot_names() const = 0;  // state tensors, each as large as the buffers
  // Whether it can leave rows without gradients for later.
  virtual bool steps_rows() const { return false; }

 protected:
  explicit Optimizer(double base_lr) : base_lr_(base_lr) {}
  // Steps one range; `slots` are in the order of slot_names(). `step` is 1 at the first.
  virtual void step_range(const Buffers& part, const std::vector<Tensor>& slots, bool decay, double lr,
                          double grad_scale, int64_t step) const = 0;

  // For optimizers that step rows of a table by themselves. `part` and `slots` are the whole table's.
  virtual void step_rows(const Range& table, const Buffers& part, const std::vector<Tensor>& slots,
                         std::span<const int64_t> rows, double lr, double grad_scale, int64_t step) const;
  virtual void step_still_rows(const Range& table, const Buffers& part, const std::vector<Tensor>& slots,
                               std::span<const kernels::StillRow> rows,
                               std::span<const PastStep> steps) const;

 private:
  // What is known of each row of a table.
  struct Table {
    size_t range;
    std::vector<int64_t> done;         // steps it has been through
    std::vector<uint8_t> has_moments;  // 0: its slots are zeros
  };
  Buffers part(const Range& range) const;
  std::vector<Tensor> slots_of(const Range& range) const;
  void find_moments();

  double base_lr_;
  int64_t steps_done_ = 0;
  Buffers buffers_;
  std::vector<Range> ranges_;
  std::vector<Tensor> slots_;
  std::vector<Table> tables_;   // of the ranges with a row_width, where steps_rows()
  std::vector<PastStep> past_;  // since all rows were last caught up
};

// Defaults are torch.optim's.
struct AdamwOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
};
std::unique_ptr<Optimizer> adamw(const AdamwOptions& options);

struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
};
std::unique_ptr<Optimizer> sgd(const SgdOptions& options);

}  // namespace stretto::optim
