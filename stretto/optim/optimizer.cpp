#include "stretto/optim/optimizer.h"

#include <algorithm>
#include <numeric>

#include "stretto/base/error.h"
#include "stretto/kernels/optimizer.h"

namespace stretto::optim {
namespace {

// Rows are caught up after so many steps at the latest, so that no step waits long for it.
constexpr size_t longest_past = 64;

Tensor slice(const Tensor& buffer, const Range& range) {
  return buffer.defined() ? buffer.slice(0, range.begin, range.end) : buffer;
}

class Adamw : public Optimizer {
 public:
  explicit Adamw(const AdamwOptions& options) : Optimizer(options.lr), options_(options) {}
  std::string name() const override { return "AdamW"; }
  std::vector<std::string> slot_names() const override { return {"exp_avg", "exp_avg_sq"}; }
  bool steps_rows() const override { return options_.eps > 0; }

 private:
  void step_range(const Buffers& part, const std::vector<Tensor>& slots, bool decay, double lr,
                  double grad_scale, int64_t step) const override {
    kernels::adamw({part.master, part.grad, part.compute}, slots[0], slots[1],
                   settings(decay, lr, grad_scale, step));
  }
  void step_rows(const Range& table, const Buffers& part, const std::vector<Tensor>& slots,
                 std::span<const int64_t> rows, double lr, double grad_scale, int64_t step) const override {
    kernels::adamw_rows({part.master, part.grad, part.compute}, slots[0], slots[1], table.row_width, rows,
                        settings(table.decay, lr, grad_scale, step));
  }
  void step_still_rows(const Range& table, const Buffers& part, const std::vector<Tensor>& slots,
                       std::span<const kernels::StillRow> rows,
                       std::span<const PastStep> steps) const override {
    std::vector<kernels::AdamwStep> each;
    for (const auto& [lr_factor, step] : steps)
      each.push_back(settings(table.decay, base_lr() * lr_factor * table.lr_factor, /*grad_scale=*/1, step));
    kernels::adamw_still_rows({part.master, part.grad, part.compute}, slots[0], slots[1], table.row_width,
                              rows, each);
  }
  kernels::AdamwStep settings(bool decay, double lr, double grad_scale, int64_t step) const {
    return {lr,  options_.beta1, options_.beta2, options_.eps, decay ? options_.weight_decay : 0, grad_scale,
            step};
  }
  AdamwOptions options_;
};

class Sgd : public Optimizer {
 public:
  explicit Sgd(const SgdOptions& options) : Optimizer(options.lr), options_(options) {
    if (options.nesterov && (options.momentum <= 0 || options.dampening != 0)) {
      throw ConfigError(
          "SGD: nesterov needs momentum above 0 and dampening 0, found momentum {} and dampening {}",
          options.momentum, options.dampening);
    }
  }
  std::string name() const override { return "SGD"; }
  std::vector<std::string> slot_names() const override {
    return options_.momentum > 0 ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{};
  }

 private:
  void step_range(const Buffers& part, const std::vector<Tensor>& slots, bool decay, double lr,
                  double grad_scale, int64_t step) const override {
    kernels::sgd({part.master, part.grad, part.compute}, slots.empty() ? Tensor() : slots[0],
                 {lr, options_.momentum, options_.dampening, decay ? options_.weight_decay : 0,
                  options_.nesterov, grad_scale, step});
  }
  SgdOptions options_;
};

}  // namespace

void Optimizer::bind(const Buffers& buffers, std::vector<Range> ranges, const Allocator& allocator) {
  if (buffers_.master.defined()) throw Error("{}: bound twice", name());
  buffers_ = buffers;
  ranges_ = std::move(ranges);
  for (size_t i = 0; i < slot_names().size(); ++i) {
    slots_.push_back(
        allocator(buffers.master.numel(), buffers.master.scalar_type(), buffers.master.device()));
  }
  if (!steps_rows() || !buffers.master.device().is_cpu()) return;
  for (size_t i = 0; i < ranges_.size(); ++i) {
    if (ranges_[i].row_width == 0) continue;
    for (const Tensor& slot : slots_of(ranges_[i])) use_small_pages(slot);
    const auto rows = static_cast<size_t>((ranges_[i].end - ranges_[i].begin) / ranges_[i].row_width);
    tables_.push_back({i, std::vector<int64_t>(rows), std::vector<uint8_t>(rows)});
  }
}

Buffers Optimizer::part(const Range& range) const {
  return {slice(buffers_.master, range), slice(buffers_.grad, range), slice(buffers_.compute, range)};
}

std::vector<Tensor> Optimizer::slots_of(const Range& range) const {
  std::vector<Tensor> slots;
  for (const Tensor& slot : slots_) slots.push_back(slice(slot, range));
  return slots;
}

void Optimizer::step_rows(const Range&, const Buffers&, const std::vector<Tensor>&, std::span<const int64_t>,
                          double, double, int64_t) const {
  throw Error("{}: steps no single rows", name());
}

void Optimizer::step_still_rows(const Range&, const Buffers&, const std::vector<Tensor>&,
                                std::span<const kernels::StillRow>, std::span<const PastStep>) const {
  throw Error("{}: steps no single rows", name());
}

void Optimizer::step(double lr_factor, double grad_scale, const TouchedRows& touched) {
  if (!buffers_.master.defined())
    throw Error("{}: step before bind; let the trainer or Lite set it up", name());
  const bool by_rows = !tables_.empty() && !touched.empty();
  if (by_rows && touched.size() != tables_.size())
    throw Error("{}: rows of {} tables for {}", name(), touched.size(), tables_.size());
  if (!by_rows) catch_up();
  for (size_t table = 0; by_rows && table < tables_.size(); ++table) catch_up(table, touched[table]);
  ++steps_done_;
  for (const Range& range : ranges_) {
    if (by_rows && range.row_width > 0) continue;
    step_range(part(range), slots_of(range), range.decay, base_lr_ * lr_factor * range.lr_factor, grad_scale,
               steps_done_);
  }
  if (!by_rows) {
    for (Table& table : tables_) {
      std::ranges::fill(table.done, steps_done_);
      std::ranges::fill(table.has_moments, 1);
    }
    return;
  }
  for (size_t i = 0; i < tables_.size(); ++i) {
    const Range& range = ranges_[tables_[i].range];
    step_rows(range, part(range), slots_of(range), touched[i], base_lr_ * lr_factor * range.lr_factor,
              grad_scale, steps_done_);
    for (const int64_t row : touched[i]) {
      tables_[i].done[static_cast<size_t>(row)] = steps_done_;
      tables_[i].has_moments[static_cast<size_t>(row)] = 1;
    }
  }
  past_.push_back({lr_factor, steps_done_});
  if (past_.size() == longest_past) catch_up();
}

void Optimizer::catch_up(size_t index, std::span<const int64_t> rows) {
  if (past_.empty()) return;
  Table& table = tables_.at(index);
  std::vector<kernels::StillRow> still;
  for (const int64_t row : rows) {
    int64_t& done = table.done[static_cast<size_t>(row)];
    if (done == steps_done_) continue;
    const auto first = std::ranges::upper_bound(past_, done, {}, &PastStep::step) - past_.begin();
    done = steps_done_;
    if (static_cast<size_t>(first) == past_.size()) continue;
    still.push_back({row, static_cast<size_t>(first), table.has_moments[static_cast<size_t>(row)] != 0});
  }
  if (still.empty()) return;
  const Range& range = ranges_[table.range];
  step_still_rows(range, part(range), slots_of(range), still, past_);
}

void Optimizer::catch_up() {
  for (size_t table = 0; table < tables_.size() && !past_.empty(); ++table) {
    std::vector<int64_t> rows(tables_[table].done.size());
    std::iota(rows.begin(), rows.end(), int64_t{0});
    catch_up(table, rows);
  }
  past_.clear();
}

void Optimizer::resume(int64_t steps_done) {
  steps_done_ = steps_done;
  past_.clear();
  find_moments();
}

// After slots have been written from outside.
void Optimizer::find_moments() {
  for (Table& table : tables_) {
    const Range& range = ranges_[table.range];
    std::ranges::fill(table.done, steps_done_);
    std::ranges::fill(table.has_moments, 0);
    for (const Tensor& slot : slots_of(range)) {
      const Tensor any = slot.view({-1, range.row_width}).ne(0).any(1);
      for (size_t row = 0; row < table.has_moments.size(); ++row)
        table.has_moments[row] |= static_cast<uint8_t>(any.const_data_ptr<bool>()[row]);
    }
  }
}

std::unique_ptr<Optimizer> adamw(const AdamwOptions& options) { return std::make_unique<Adamw>(options); }
std::unique_ptr<Optimizer> sgd(const SgdOptions& options) { return std::make_unique<Sgd>(options); }

}  // namespace stretto::optim
