#include "stretto/parallel/row_table.h"

#include <algorithm>

#include "stretto/kernels/sum_of_squares.h"

namespace stretto {
namespace {

std::span<const int64_t> span_of(const Tensor& ids) {
  return {ids.const_data_ptr<int64_t>(), static_cast<size_t>(ids.numel())};
}

}  // namespace

RowTable::RowTable(const Arena& arena, const Arena::Parameter& parameter, const Range& held, Group& group)
    : arena_(arena),
      parameter_(parameter),
      held_((held & Range{parameter.begin, parameter.end}).shifted(-parameter.begin)),
      width_(parameter.info.tensor.size(1)),
      hook_(parameter.info.row_hook),
      touched_mask_(at::zeros({parameter.info.tensor.size(0)}, at::kByte)),
      group_(group) {
  hook_->observer = this;
}

RowTable::~RowTable() {
  if (hook_->observer == this) hook_->observer = nullptr;
}

void RowTable::will_read(const Tensor& ids) {
  if (on_read_) on_read_(span_of(ids));
}

void RowTable::got_gradient(const Tensor& ids) {
  auto* mask = touched_mask_.mutable_data_ptr<uint8_t>();
  for (const int64_t row : span_of(ids)) mask[row] = 1;
}

Tensor RowTable::row_index() { return at::from_blob(rows_.data(), {std::ssize(rows_)}, at::kLong); }

void RowTable::start_reduction() {
  if (group_.size() > 1) touched_mask_work_ = group_.all_reduce(touched_mask_, ReduceOp::max);
}

// The rows are reduced as one contiguous tensor.
void RowTable::finish_reduction() {
  if (group_.size() > 1) touched_mask_work_.wait();
  rows_.clear();
  const auto* mask = touched_mask_.const_data_ptr<uint8_t>();
  for (int64_t row = 0; row < touched_mask_.numel(); ++row) {
    if (mask[row] != 0) rows_.push_back(row);
  }
  sum_of_squares_ = 0;
  if (rows_.empty()) return;
  Tensor gradient = parameter_.info.tensor.grad();
  const Tensor sums = gradient.index_select(0, row_index());
  if (group_.size() > 1) group_.all_reduce(sums).wait();
  if (is_in_place()) {
    if (group_.size() > 1) gradient.index_copy_(0, row_index(), sums);
    sum_of_squares_ = kernels::sum_of_squares(sums.view({-1}));
  } else {
    gradient.index_fill_(0, row_index(), 0);
    sum_of_squares_ = add_held(sums);
  }
}

bool RowTable::is_in_place() const {
  return held_.size() == parameter_.info.tensor.numel() && !arena_.gradients_are_sharded();
}

Tensor RowTable::held_gradients(const Range& elements) const {
  return arena_.gradients(elements.shifted(parameter_.begin));
}

// Adds what this rank holds of `sums` [rows_, width] to its gradients, and returns the sum of squares of the results. A shard
// may begin or end inside of a row.
double RowTable::add_held(const Tensor& sums) {
  if (held_.size() == 0) return 0;
  const int64_t first = (held_.begin + width_ - 1) / width_, end = std::max(first, held_.end / width_);
  return add_part_of_row({held_.begin, std::min(first * width_, held_.end)}, sums) +
         add_whole_rows(first, end, sums) + add_part_of_row({end * width_, held_.end}, sums);
}

double RowTable::add_whole_rows(int64_t first, int64_t end, const Tensor& sums) {
  const auto position = [this](int64_t row) { return std::ranges::lower_bound(rows_, row) - rows_.begin(); };
  const int64_t from = position(first), to = position(end);
  if (from == to) return 0;
  const Tensor index = row_index().slice(0, from, to) - first;
  Tensor rows = held_gradients({first * width_, end * width_}).view({-1, width_});
  rows.index_add_(0, index, sums.slice(0, from, to));
  return kernels::sum_of_squares(rows.index_select(0, index).view({-1}));
}

double RowTable::add_part_of_row(const Range& elements, const Tensor& sums) {
  if (elements.size() <= 0) return 0;
  const int64_t row = elements.begin / width_;
  const auto found = std::ranges::lower_bound(rows_, row);
  if (found == rows_.end() || *found != row) return 0;
  Tensor part = held_gradients(elements);
  part.add_(sums[found - rows_.begin()].slice(0, elements.begin - row * width_, elements.end - row * width_));
  return kernels::sum_of_squares(part);
}

void RowTable::zero_gradient() {
  if (is_in_place()) {
    parameter_.info.tensor.grad().index_fill_(0, row_index(), 0);
  } else if (held_.size() > 0) {
    held_gradients(held_).zero_();
  }
  forget_rows();
}

void RowTable::forget_rows() {
  touched_mask_.zero_();
  rows_.clear();
}

}  // namespace stretto
