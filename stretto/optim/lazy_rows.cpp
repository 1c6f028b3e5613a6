#include "stretto/optim/lazy_rows.h"

#include <algorithm>
#include <numeric>

#include "stretto/base/error.h"

namespace stretto::optim {
namespace {

// All rows are updated after at most this many steps, which bounds the time that a catch-up takes.
constexpr size_t longest_past = 64;

}  // namespace

LazyRows::LazyRows(RowRule& rule, const std::vector<int64_t>& rows) : rule_(rule) {
  for (const int64_t count : rows) {
    const auto size = static_cast<size_t>(count);
    tables_.push_back({std::vector<int64_t>(size), std::vector<uint8_t>(size)});
  }
}

void LazyRows::step(const TouchedRows& touched, const StepRates& rates, double grad_scale, int64_t step) {
  if (touched.size() != tables_.size())
    throw Error("step: rows of {} tables are given; the optimizer steps {}", touched.size(), tables_.size());
  for (size_t i = 0; i < tables_.size(); ++i) {
    catch_up(i, touched[i]);
    rule_.step_rows(i, touched[i], rates, grad_scale, step);
    for (const int64_t row : touched[i]) {
      tables_[i].done[static_cast<size_t>(row)] = step;
      tables_[i].has_state[static_cast<size_t>(row)] = 1;
    }
  }
  past_.push_back({rates, step});
  if (past_.size() == longest_past) catch_up();
}

void LazyRows::stepped_all(int64_t step) {
  for (Table& table : tables_) {
    std::ranges::fill(table.done, step);
    std::ranges::fill(table.has_state, 1);
  }
}

void LazyRows::catch_up(size_t index, std::span<const int64_t> rows) {
  if (past_.empty()) return;
  Table& table = tables_.at(index);
  const int64_t newest = past_.back().step;
  std::vector<kernels::IdleRow> idle;
  for (const int64_t row : rows) {
    int64_t& done = table.done[static_cast<size_t>(row)];
    if (done >= newest) continue;
    const auto first = std::ranges::upper_bound(past_, done, {}, &PastStep::step) - past_.begin();
    idle.push_back({row, static_cast<size_t>(first), table.has_state[static_cast<size_t>(row)] != 0});
    done = newest;
  }
  if (!idle.empty()) rule_.step_idle_rows(index, idle, past_);
}

void LazyRows::catch_up() {
  for (size_t table = 0; table < tables_.size() && !past_.empty(); ++table) {
    std::vector<int64_t> rows(tables_[table].done.size());
    std::iota(rows.begin(), rows.end(), int64_t{0});
    catch_up(table, rows);
  }
  past_.clear();
}

void LazyRows::resume(int64_t steps_done) {
  past_.clear();
  for (size_t i = 0; i < tables_.size(); ++i) {
    std::ranges::fill(tables_[i].done, steps_done);
    const Tensor with_state = rule_.rows_with_state(i);
    const bool* has_state = with_state.const_data_ptr<bool>();
    std::copy_n(has_state, tables_[i].has_state.size(), tables_[i].has_state.begin());
  }
}

}  // namespace stretto::optim
