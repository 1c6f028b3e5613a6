#include "stretto/optim/elementwise.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/optim/lazy_rows.h"
#include "stretto/optim/parameter_piece.h"
#include "stretto/tensor/file_memory.h"
#include "stretto/tensor/memory.h"

namespace stretto::optim {
namespace {

StepRates with_factor(StepRates rates, double lr_factor) {
  rates.lr *= lr_factor;
  return rates;
}

}  // namespace

ElementwiseOptimizer::ElementwiseOptimizer(const StepRates& base) : Optimizer(base) {}
ElementwiseOptimizer::~ElementwiseOptimizer() = default;

RowRule& ElementwiseOptimizer::row_rule() { throw Error("{}: has no rule for rows of tables", name()); }

void ElementwiseOptimizer::make_state(const Allocator& allocator) {
  const Tensor& master = buffers().master;
  for (size_t i = 0; i < state_names().size(); ++i)
    state_.push_back(allocator(master.numel(), master.scalar_type(), master.device()));
  make_ranges();
  for (const Range& range : ranges_) init_state(range);
  if (tables_.empty()) return;
  std::vector<int64_t> rows;
  for (const Range& table : tables_) {
    for (const Tensor& state : table.state) use_small_pages(state);
    rows.push_back(table.buffers.master.numel() / table.row_width);
  }
  lazy_rows_ = std::make_unique<LazyRows>(row_rule(), rows);
}

// Neighbours with the same settings become one range; the padding between them is stepped with them. Larger
// gaps have parameters of another optimizer, or follow a part that is shorter than those of other ranks.
void ElementwiseOptimizer::make_ranges() {
  const bool lazy = steps_rows() && buffers().master.device().is_cpu();
  const ParameterPiece* open = nullptr;  // the first piece of the range that is being extended
  int64_t end = 0;
  for (const ParameterPiece& piece : pieces()) {
    const bool is_table = lazy && piece.row_width > 0;
    const bool joins = open != nullptr && !is_table && piece.begin - end <= most_padding &&
                       open->weight_decay == piece.weight_decay && open->lr_factor == piece.lr_factor;
    if (open != nullptr && !joins) add_range(open->begin, end, *open, ranges_);
    if (!joins) open = is_table ? nullptr : &piece;
    if (is_table) add_range(piece.begin, piece.end, piece, tables_);
    end = piece.end;
  }
  if (open != nullptr) add_range(open->begin, end, *open, ranges_);
}

void ElementwiseOptimizer::add_range(int64_t begin, int64_t end, const ParameterPiece& piece,
                                     std::vector<Range>& ranges) const {
  const int64_t most = in_files().any() && &ranges == &ranges_ ? in_files().at_once : end - begin;
  for (int64_t first = begin; first < end; first += most) {
    const int64_t last = std::min(end, first + most);
    Range range = {slice(buffers(), first, last), {}, piece.weight_decay, piece.lr_factor, piece.row_width};
    for (const Tensor& state : state_) range.state.push_back(state.slice(0, first, last));
    ranges.push_back(std::move(range));
  }
}

// Memory in files is resident for the range that is stepped and for the next one only.
void ElementwiseOptimizer::step_ranges(const StepRates& rates, double grad_scale, int64_t step) {
  const auto each_in_files = [&](const Range& range, void (*use)(const Tensor&)) {
    if (in_files().state) std::ranges::for_each(range.state, use);
    if (!in_files().parameters) return;
    use(range.buffers.master);
    if (range.buffers.compute.defined()) use(range.buffers.compute);
  };
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const Range& range = ranges_[i];
    if (i + 1 < ranges_.size()) each_in_files(ranges_[i + 1], read_ahead);
    step_range(range, with_factor(rates, range.lr_factor), grad_scale, step);
    each_in_files(range, leave_to_file);
  }
}

void ElementwiseOptimizer::update(const StepRates& rates, double grad_scale, int64_t step,
                                  const TouchedRows& touched) {
  begin_step(rates, step);
  const bool by_rows = lazy_rows_ != nullptr && !touched.empty();
  if (by_rows) {
    lazy_rows_->step(touched, rates, grad_scale, step);
  } else if (lazy_rows_ != nullptr) {
    catch_up();
    for (const Range& table : tables_)
      step_range(table, with_factor(rates, table.lr_factor), grad_scale, step);
    lazy_rows_->stepped_all(step);
  }
  step_ranges(rates, grad_scale, step);
  end_step(rates);
}

void ElementwiseOptimizer::catch_up(size_t table, std::span<const int64_t> rows) {
  if (lazy_rows_ != nullptr) lazy_rows_->catch_up(table, rows);
}

void ElementwiseOptimizer::catch_up() {
  if (lazy_rows_ != nullptr) lazy_rows_->catch_up();
}

void ElementwiseOptimizer::add_piece_state(State& state, const std::string& prefix,
                                           const ParameterPiece& piece) const {
  const std::vector<std::string> names = state_names();
  for (size_t i = 0; i < names.size(); ++i) {
    state.tensors.push_back(piece_entry(fmt::format("{}.{}.{}", prefix, names[i], piece.name), piece,
                                        state_[i].slice(0, piece.begin, piece.end)));
  }
}

void ElementwiseOptimizer::on_resume() {
  if (lazy_rows_ != nullptr) lazy_rows_->resume(steps_done());
}

int64_t ElementwiseOptimizer::state_bytes() const {
  int64_t bytes = 0;
  for (const Tensor& state : state_) bytes += static_cast<int64_t>(state.nbytes());
  return bytes;
}

}  // namespace stretto::optim
