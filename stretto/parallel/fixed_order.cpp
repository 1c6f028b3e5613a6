#include "stretto/parallel/fixed_order.h"

#include <memory>

namespace stretto::parallel {
namespace {

void sum_into_first(const Tensor& rows, int64_t begin, int64_t end) {
  if (end - begin < 2) return;
  const int64_t middle = begin + (end - begin) / 2;
  sum_into_first(rows, begin, middle);
  sum_into_first(rows, middle, end);
  rows[begin].add_(rows[middle]);
}

// The number of sums of the tree over `terms` terms that term `index` completes.
int sums_completed_by(int64_t index, int64_t terms) {
  if (terms == 1) return 0;
  const int64_t first = terms / 2, second = terms - first;
  if (index < first) return sums_completed_by(index, first);
  return sums_completed_by(index - first, second) + (index == terms - 1 ? 1 : 0);
}

}  // namespace

Tensor sum_rows_in_fixed_order(const Tensor& rows) {
  sum_into_first(rows, 0, rows.size(0));
  return rows[0];
}

// Each rank sums one part, for which the others send their terms.
Work sum_in_fixed_order(Group& group, const Tensor& values) {
  if (group.size() == 1) return {};
  const int64_t ranks = group.size(), count = values.numel(), part = (count + ranks - 1) / ranks;
  Tensor parts = values.view({count});
  if (part * ranks != count) {
    parts = at::zeros({part * ranks}, values.options());
    parts.slice(0, 0, count).copy_(values.view({count}));
  }
  const Tensor received = at::empty_like(parts);
  auto exchange = std::make_shared<Work>(group.all_to_all(received, parts));
  const auto finish = [&group, values, parts, received, exchange, ranks, part, count] {
    exchange->wait();
    group.all_gather(parts, sum_rows_in_fixed_order(received.view({ranks, part}))).wait();
    if (part * ranks != count) values.view({count}).copy_(parts.slice(0, 0, count));
  };
  return {finish, "sum in fixed order", {values}};
}

void FixedOrderSum::take() {
  const auto completed = static_cast<size_t>(sums_completed_by(taken_, terms_));
  for (size_t sum = 0; sum < completed; ++sum) buffer_.add_(sums_[--open_]);
  if (open_ == sums_.size()) sums_.push_back(at::empty_like(buffer_));
  sums_[open_++].copy_(buffer_);
  buffer_.zero_();
  ++taken_;
}

void FixedOrderSum::add_taken(const Range& range) {
  const Tensor last = buffer_.slice(0, range.begin, range.end);
  for (size_t sum = open_; sum-- > 0;) last.add_(sums_[sum].slice(0, range.begin, range.end));
}

void FixedOrderSum::restart() {
  taken_ = 0;
  open_ = 0;
}

}  // namespace stretto::parallel
