#include "stretto/parallel/row_table.h"

#include "stretto/kernels/sum_of_squares.h"

namespace stretto {
namespace {

std::span<const int64_t> span_of(const Tensor& ids) {
  return {ids.const_data_ptr<int64_t>(), static_cast<size_t>(ids.numel())};
}

}  // namespace

RowTable::RowTable(const Arena::Parameter& parameter, const optim::Buffers& buffers, Group& group)
    : hook_(parameter.info.row_hook),
      grad_(buffers.grad.slice(0, parameter.begin, parameter.end).view(parameter.info.tensor.sizes())),
      marks_(at::zeros({grad_.size(0)}, at::kByte)),
      group_(group) {
  hook_->observer = this;
}

RowTable::~RowTable() {
  if (hook_->observer == this) hook_->observer = nullptr;
}

void RowTable::will_read(const Tensor& ids) {
  if (tell_read_) tell_read_(span_of(ids));
}

void RowTable::got_gradient(const Tensor& ids) {
  auto* marks = marks_.mutable_data_ptr<uint8_t>();
  for (const int64_t row : span_of(ids)) marks[row] = 1;
}

Tensor RowTable::row_index() { return at::from_blob(rows_.data(), {std::ssize(rows_)}, at::kLong); }

void RowTable::start_reduction() {
  if (group_.size() > 1) marks_on_their_way_ = group_.all_reduce(marks_, ReduceOp::max);
}

// The rows travel as one tensor without those between them.
void RowTable::finish_reduction() {
  if (group_.size() > 1) marks_on_their_way_.wait();
  rows_.clear();
  const auto* marks = marks_.const_data_ptr<uint8_t>();
  for (int64_t row = 0; row < marks_.numel(); ++row) {
    if (marks[row] != 0) rows_.push_back(row);
  }
  together_ = grad_.index_select(0, row_index());
  if (group_.size() == 1 || rows_.empty()) return;
  group_.all_reduce(together_).wait();
  grad_.index_copy_(0, row_index(), together_);
}

double RowTable::sum_of_squares() const { return kernels::sum_of_squares(together_.view({-1})); }

void RowTable::zero_gradient() {
  grad_.index_fill_(0, row_index(), 0);
  forget_rows();
}

void RowTable::forget_rows() {
  marks_.zero_();
  rows_.clear();
  together_ = Tensor();
}

}  // namespace stretto
