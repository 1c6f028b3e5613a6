#include "stretto/parallel/reducer.h"

#include <algorithm>
#include <cmath>

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "stretto/base/error.h"
#include "stretto/kernels/sum_of_squares.h"
#include "stretto/parallel/gradient_uses.h"
#include "stretto/parallel/phase.h"

namespace stretto::parallel {
namespace {

constexpr size_t most_unreleased = 2;  // buckets in scratch memory that are reduced or being reduced

}  // namespace

class Reducer::Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(Reducer& reducer, size_t parameter) : reducer_(reducer), parameter_(parameter) {}
  void operator()(const torch::autograd::Variable&) override { reducer_.on_gradient(parameter_); }

 private:
  Reducer& reducer_;
  size_t parameter_;
};

Reducer::Reducer(Arena& arena, Group& group, const ReducerOptions& options)
    : arena_(arena),
      group_(group),
      options_(options),
      scratch_(arena, group.allocator()),
      held_(options.to_owners ? arena.owned() : Range{0, arena.elements()}) {
  const auto element_bytes = static_cast<double>(arena.buffers().grad.element_size());
  cut_buckets(std::max<int64_t>(1, static_cast<int64_t>(options.bucket_bytes / element_bytes)));
  for (size_t i = 0; i < arena.parameters().size(); ++i) {
    const Tensor& tensor = arena.parameters()[i].info.tensor;
    index_of_[tensor.unsafeGetTensorImpl()] = i;
    torch::autograd::impl::set_post_acc_grad_hooks(tensor, std::make_unique<Hook>(*this, i));
  }
  uses_left_.resize(arena.parameters().size(), 0);
  if (options.fixed_order > 0)
    set_aside_.emplace(arena.buffers().grad, options.fixed_order, group.size(), group.rank());
}

Reducer::~Reducer() {
  for (const auto& parameter : arena_.parameters()) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameter.info.tensor, nullptr);
  }
}

void Reducer::cut_buckets(int64_t bucket_elements) {
  const auto& parameters = arena_.parameters();
  int64_t end = arena_.elements();
  for (size_t i = parameters.size(); i-- > 0;) {
    if (!parameters[i].info.sparse) continue;
    const int64_t after = i + 1 < parameters.size() ? parameters[i + 1].begin : arena_.elements();
    cut_buckets({after, end}, bucket_elements);
    end = parameters[i].begin;
    tables_.push_back(std::make_unique<RowTable>(arena_, parameters[i], held_, group_));
    parameter_of_table_.push_back(i);
  }
  cut_buckets({0, end}, bucket_elements);
  std::ranges::reverse(tables_);
  std::ranges::reverse(parameter_of_table_);
}

void Reducer::cut_buckets(Range range, int64_t bucket_elements) {
  if (range.size() == 0) return;
  dense_.push_back(range);
  const auto& parameters = arena_.parameters();
  size_t last = parameters.size() - 1, owner = options_.to_owners ? arena_.shards().size() - 1 : 0;
  size_t unit = arena_.units().size() - 1;
  while (range.size() > 0) {
    int64_t begin = std::max(range.begin, range.end - bucket_elements);
    if (options_.to_owners) {
      while (arena_.shards()[owner].begin >= range.end) --owner;
      begin = std::max(begin, arena_.shards()[owner].begin);
    }
    if (arena_.gradients_are_sharded()) {
      while (arena_.units()[unit].elements.begin >= range.end) --unit;
      begin = std::max(begin, arena_.units()[unit].elements.begin);
    }
    while (parameters[last].begin >= range.end) --last;
    size_t first = last;
    while (first > 0 && parameters[first].begin > begin) --first;
    // Only its padding overlaps. Its end is the same on all ranks with parts of the tensor, which must reduce
    // their buckets at the same point of backward: they wait for each other in both.
    if (parameters[first].begin + parameters[first].info.layout.slot() <= begin && first < last) ++first;
    buckets_.push_back({.range = {begin, range.end},
                        .first_parameter = first,
                        .last_parameter = last,
                        .owner = static_cast<int>(owner),
                        .unit = unit,
                        .is_last = begin == arena_.units()[unit].elements.begin && !holds_table(unit)});
    range.end = begin;
  }
}

bool Reducer::holds_table(size_t unit) const {
  const Arena::Unit& of = arena_.units()[unit];
  return std::any_of(arena_.parameters().begin() + of.first_parameter,
                     arena_.parameters().begin() + of.end_parameter,
                     [](const Arena::Parameter& parameter) { return parameter.info.sparse; });
}

void Reducer::backward(const Tensor& loss_sum, bool last) {
  begin_backward(loss_sum.defined() ? count_uses(loss_sum) : std::vector<int>(uses_left_.size(), 0), last);
  if (loss_sum.defined()) {
    try {
      loss_sum.backward();
    } catch (...) {
      abort_backward();
      throw;
    }
  }
  end_backward();
}

std::vector<int> Reducer::count_uses(const Tensor& loss, std::vector<Tensor>* others) const {
  const auto check = [this](size_t parameter, const torch::autograd::Node& user) {
    check_use(parameter, user);
  };
  return count_gradient_uses(loss, index_of_, uses_left_.size(), others,
                             tables_.empty() ? CheckUse() : CheckUse(check));
}

void Reducer::check_use(size_t parameter, const torch::autograd::Node& user) const {
  const NamedParameter& info = arena_.parameters()[parameter].info;
  if (!info.sparse || nn::notifies_of_rows(user, *info.row_hook)) return;
  throw Error(
      "{} is used by {}, but it is a sparse table, which supports lookup only; construct the Embedding (or the BertModel) without sparse tables",
      info.name, user.name());
}

void Reducer::begin_backward(std::vector<int> uses, bool last) {
  if (phase_ == Phase::awaiting)
    throw Error("backward: the gradients of the last backward were not used yet; call step first");
  if (phase_ != Phase::idle) throw Error("backward: called inside of another backward");
  phase_ = last ? Phase::reducing : Phase::accumulating;
  if (!last) return scratch_.open_all();
  uses_left_ = std::move(uses);
  for (Bucket& bucket : buckets_) {
    bucket.missing = 0;
    for (size_t i = bucket.first_parameter; i <= bucket.last_parameter; ++i)
      bucket.missing += uses_left_[i] > 0;
  }
  launched_ = 0;
  launch_ready();
  open_ahead(arena_.units().size() - 1);
}

// Opens the unit that backward reaches next.
void Reducer::open_ahead(size_t unit) {
  if (!arena_.gradients_are_sharded()) return;
  scratch_.open(unit);
  if (unit > 0 && uses_left_[arena_.units()[unit - 1].first_parameter] > 0) scratch_.open(unit - 1);
}

void Reducer::end_backward() {
  if (phase_ == Phase::accumulating) {
    phase_ = Phase::idle;
    return;
  }
  complete_the_rest();
  phase_ = Phase::awaiting;
}

// Other ranks may already wait for this rank's part of the reductions. Without it they, and this rank's next
// collective, would hang. Further errors are ignored: the caller rethrows the original exception.
void Reducer::abort_backward(bool others_wait) noexcept {
  try {
    if (!others_wait) {
      reductions_.clear();
    } else if (phase_ == Phase::reducing) {
      complete_the_rest();
      wait();
    }
  } catch (const std::exception&) {
    reductions_.clear();
  }
  phase_ = Phase::idle;
  arena_.buffers().grad.zero_();
  if (set_aside_) set_aside_->restart();
  scratch_.close_all();
  gradients_were_zeroed();
}

void Reducer::set_gradients_aside() {
  if (set_aside_) set_aside_->take();
}

void Reducer::complete_the_rest() {
  for (size_t i = 0; i < uses_left_.size(); ++i) {
    if (uses_left_[i] > 0) on_complete(i);  // a block with activation checkpointing did not use it
    uses_left_[i] = 0;
  }
  launch_ready();
}

void Reducer::on_gradient(size_t parameter) {
  const std::string& name = arena_.parameters()[parameter].info.name;
  if (phase_ == Phase::idle || phase_ == Phase::awaiting) {
    throw BackwardOutside(
        "the gradient of {} was computed outside of stretto's backward, so ranks would diverge; instead of loss.backward(), return the loss from training_step, or call backward(loss) of ManualOptimization or Lite",
        name);
  }
  if (phase_ != Phase::reducing) return;
  if (uses_left_[parameter] == 0) {
    throw Error(
        "the gradient of {} was added to after it had been reduced; if a block with activation checkpointing uses it, list it in that block's parameters",
        name);
  }
  open_ahead(arena_.parameters()[parameter].unit);
  if (--uses_left_[parameter] == 0) {
    on_complete(parameter);
    launch_ready();
  }
}

void Reducer::on_complete(size_t parameter) {
  for (Bucket& bucket : buckets_) {
    if (bucket.first_parameter <= parameter && parameter <= bucket.last_parameter) --bucket.missing;
  }
}

void Reducer::launch_ready() {
  for (; launched_ < buckets_.size() && buckets_[launched_].missing == 0; ++launched_) {
    const Bucket& bucket = buckets_[launched_];
    if (group_.size() == 1) {
      if (set_aside_) set_aside_->roots(bucket.range);
      continue;
    }
    RECORD_USER_SCOPE(phase::reduce);
    scratch_.open(bucket.unit);  // not yet open if this rank does not use it
    reductions_.push_back({reduce(bucket), &bucket});
    while (arena_.gradients_are_sharded() && reductions_.size() > most_unreleased) finish_oldest();
  }
  for (; launched_ >= buckets_.size() && launched_ < buckets_.size() + tables_.size(); ++launched_) {
    const size_t table = launched_ - buckets_.size();
    if (uses_left_[parameter_of_table_[table]] > 0) break;
    RECORD_USER_SCOPE(phase::reduce);
    scratch_.open(unit_of(table));
    tables_[table]->start_reduction();
  }
}

Work Reducer::reduce(const Bucket& bucket) {
  if (set_aside_) return sum_in_fixed_order(group_, options_.fixed_order, set_aside_->roots(bucket.range));
  if (options_.to_owners) return group_.reduce(gradients(bucket), bucket.owner);
  return group_.all_reduce(gradients(bucket));
}

void Reducer::finish_oldest() {
  Reduction reduction = std::move(reductions_.front());
  reductions_.pop_front();
  reduction.work.wait();
  if (reduction.bucket == nullptr) return;
  arena_.gradients_are_sharded() ? keep_owned(*reduction.bucket) : clear_foreign(reduction.bucket->range);
}

Tensor Reducer::gradients(const Bucket& bucket) const {
  if (!arena_.gradients_are_sharded()) return arena_.gradients(bucket.range);
  const Arena::Unit& unit = arena_.units()[bucket.unit];
  const int64_t first = unit.elements.begin;
  return unit.gradients.slice(0, bucket.range.begin - first, bucket.range.end - first);
}

// Adds the sums of a bucket in scratch memory that this rank owns to its shard.
void Reducer::keep_owned(const Bucket& bucket) {
  if (!scratch_.serves(bucket.unit)) return;
  if ((bucket.range & held_).size() > 0) arena_.gradients(bucket.range).add_(gradients(bucket));
  bucket.is_last ? scratch_.close(bucket.unit) : scratch_.release(bucket.unit, bucket.range);
}

// Zeroes the parts of `range` that other ranks own.
void Reducer::clear_foreign(Range range) {
  for (const Range& foreign : {range & Range{0, held_.begin}, range & Range{held_.end, arena_.elements()}}) {
    if (foreign.size() == 0) continue;
    arena_.gradients(foreign).zero_();
  }
}

void Reducer::wait() {
  while (!reductions_.empty()) finish_oldest();
  for (const auto& table : tables_) table->finish_reduction();
  for (size_t table = 0; table < tables_.size(); ++table) scratch_.close(unit_of(table));
}

void Reducer::finish(std::span<double> totals) {
  if (phase_ != Phase::awaiting) throw Error("step before backward: there are no gradients");
  phase_ = Phase::idle;
  if (set_aside_) set_aside_->restart();
  if (group_.size() == 1 || totals.empty()) return wait();
  Tensor sums = at::tensor(at::ArrayRef<double>(totals.data(), totals.size()), at::kDouble)
                    .to(arena_.buffers().grad.device());
  reductions_.push_back({group_.all_reduce(sums), nullptr});
  wait();
  sums = sums.to(at::kCPU);
  std::copy_n(sums.const_data_ptr<double>(), totals.size(), totals.begin());
}

double Reducer::sum_of_squares() const {
  double sum = 0;
  if (set_aside_) {  // the rest of the layout depends on the ranks
    for (const auto& parameter : arena_.parameters())
      sum += kernels::sum_of_squares(arena_.gradients({parameter.begin, parameter.end}));
    return sum;
  }
  for (const Range& range : dense_) {
    if (const Range part = range & held_; part.size() > 0)
      sum += kernels::sum_of_squares(arena_.gradients(part));
  }
  for (const auto& table : tables_) sum += table->sum_of_squares();
  return sum;
}

void Reducer::zero_gradients() {
  for (const Range& range : dense_) {
    if (const Range part = range & arena_.gradient_range(); part.size() > 0) arena_.gradients(part).zero_();
  }
  scratch_.close_all();
  for (const auto& table : tables_) table->zero_gradient();
}

void Reducer::zero_gradient(size_t parameter) {
  const auto table = std::ranges::find(parameter_of_table_, parameter);
  if (table != parameter_of_table_.end())
    return tables_[static_cast<size_t>(table - parameter_of_table_.begin())]->zero_gradient();
  const Arena::Parameter& of = arena_.parameters()[parameter];
  const Range part = Range{of.begin, of.end} & arena_.gradient_range();
  if (part.size() > 0) arena_.gradients(part).zero_();
}

void Reducer::gradients_were_zeroed() {
  for (const auto& table : tables_) table->forget_rows();
}

optim::TouchedRows Reducer::touched_rows() const {
  optim::TouchedRows rows;
  for (size_t table = 0; table < tables_.size(); ++table) {
    const Arena::Parameter& parameter = arena_.parameters()[parameter_of_table_[table]];
    const bool is_stepped_here = (arena_.owned() & Range{parameter.begin, parameter.end}).size() > 0;
    if (parameter.info.steps_rows && is_stepped_here) rows.push_back(tables_[table]->rows());
  }
  return rows;
}

int64_t Reducer::first_nonfinite() const {
  for (size_t i = 0; i < arena_.parameters().size(); ++i) {
    const auto& parameter = arena_.parameters()[i];
    const Range part = Range{parameter.begin, parameter.end} & held_;
    if (part.size() > 0 && !std::isfinite(kernels::sum_of_squares(arena_.gradients(part))))
      return static_cast<int64_t>(i);
  }
  return -1;
}

bool Reducer::all_finite() const {
  bool finite = std::isfinite(kernels::sum_of_squares(arena_.buffers().grad));
  for (const Arena::Unit& unit : arena_.units())
    finite = finite && (!unit.gradients.defined() || std::isfinite(kernels::sum_of_squares(unit.gradients)));
  return finite;
}

}  // namespace stretto::parallel
