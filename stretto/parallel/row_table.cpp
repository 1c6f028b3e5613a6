#include "stretto/parallel/row_table.h"

#include <algorithm>

#include "stretto/kernels/sum_of_squares.h"

namespace stretto::parallel {
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

Tensor RowTable::row_index() const {
  return at::from_blob(const_cast<int64_t*>(rows_.data()), {std::ssize(rows_)}, at::kLong);
}

void RowTable::find_rows() {
  rows_.clear();
  const auto* mask = touched_mask_.const_data_ptr<uint8_t>();
  for (int64_t row = 0; row < touched_mask_.numel(); ++row) {
    if (mask[row] != 0) rows_.push_back(row);
  }
}

void RowTable::start_reduction() {
  if (group_.size() > 1) touched_mask_work_ = group_.all_reduce(touched_mask_, ReduceOp::max);
}

// The rows are reduced as one contiguous tensor.
void RowTable::finish_reduction() {
  if (group_.size() > 1) touched_mask_work_.wait();
  find_rows();
  if (rows_.empty() || (group_.size() == 1 && is_in_place())) return;
  Tensor gradient = parameter_.info.tensor.grad();
  const Tensor sums = gradient.index_select(0, row_index());
  if (group_.size() > 1) group_.all_reduce(sums).wait();
  if (is_in_place()) {
    gradient.index_copy_(0, row_index(), sums);
    return;
  }
  gradient.index_fill_(0, row_index(), 0);
  for (HeldRows& held : held_rows()) {
    const Tensor of_held = sums.slice(0, held.rows.begin, held.rows.end);
    held.gradients.index_add_(0, held.index, of_held.slice(1, held.columns.begin, held.columns.end));
  }
}

bool RowTable::is_in_place() const {
  return held_.size() == parameter_.info.tensor.numel() && !arena_.gradients_are_sharded();
}

// Returns whole rows, and the parts of rows in which the shard begins and ends.
std::vector<RowTable::HeldRows> RowTable::held_rows() const {
  std::vector<HeldRows> parts;
  const auto position = [this](int64_t row) { return std::ranges::lower_bound(rows_, row) - rows_.begin(); };
  const auto add = [&](const Range& elements) {
    if (elements.size() <= 0) return;
    const int64_t first = elements.begin / width_, end = (elements.end + width_ - 1) / width_;
    const Range rows = {position(first), position(end)};
    if (rows.size() == 0) return;
    const int64_t column = elements.begin % width_, columns = elements.size() / (end - first);
    parts.push_back(
        {.gradients = arena_.gradients(elements.shifted(parameter_.begin)).view({end - first, columns}),
         .index = row_index().slice(0, rows.begin, rows.end) - first,
         .rows = rows,
         .columns = {column, column + columns}});
  };
  const int64_t first = (held_.begin + width_ - 1) / width_, end = std::max(first, held_.end / width_);
  add({held_.begin, std::min(first * width_, held_.end)});
  add({first * width_, end * width_});
  add({end * width_, held_.end});
  return parts;
}

double RowTable::sum_of_squares() const {
  double sum = 0;
  for (const HeldRows& held : held_rows())
    sum += kernels::sum_of_squares(held.gradients.index_select(0, held.index).view({-1}));
  return sum;
}

// A backward that was not reduced has touched rows that rows() does not contain.
void RowTable::zero_gradient() {
  find_rows();
  if (!arena_.gradients_are_sharded()) {
    parameter_.info.tensor.grad().index_fill_(0, row_index(), 0);
  } else if (held_.size() > 0) {
    arena_.gradients(held_.shifted(parameter_.begin)).zero_();
  }
  forget_rows();
}

void RowTable::forget_rows() {
  touched_mask_.zero_();
  rows_.clear();
}

}  // namespace stretto::parallel
