#include "stretto/parallel/data_parallel.h"

#include <algorithm>
#include <cmath>

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/kernels/sum_of_squares.h"
#include "stretto/parallel/gradient_uses.h"
#include "stretto/parallel/phase.h"

namespace stretto {

class DataParallel::Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(DataParallel& engine, size_t parameter) : engine_(engine), parameter_(parameter) {}
  void operator()(const torch::autograd::Variable&) override { engine_.on_gradient(parameter_); }

 private:
  DataParallel& engine_;
  size_t parameter_;
};

DataParallel::DataParallel(Arena& arena, Group& group, double bucket_bytes) : arena_(arena), group_(group) {
  const auto element_bytes = static_cast<double>(arena.buffers().grad.element_size());
  cut_buckets(std::max<int64_t>(1, static_cast<int64_t>(bucket_bytes / element_bytes)));
  for (size_t i = 0; i < arena.parameters().size(); ++i) {
    const Tensor& tensor = arena.parameters()[i].info.tensor;
    index_of_[tensor.unsafeGetTensorImpl()] = i;
    torch::autograd::impl::set_post_acc_grad_hooks(tensor, std::make_unique<Hook>(*this, i));
  }
  uses_left_.resize(arena.parameters().size(), 0);
}

DataParallel::~DataParallel() {
  for (const auto& parameter : arena_.parameters()) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameter.info.tensor, nullptr);
  }
}

void DataParallel::cut_buckets(int64_t bucket_elements) {
  const auto& parameters = arena_.parameters();
  int64_t end = arena_.elements();
  for (size_t i = parameters.size(); i-- > 0;) {
    if (!parameters[i].info.sparse) continue;
    const int64_t after = i + 1 < parameters.size() ? parameters[i + 1].begin : arena_.elements();
    cut_buckets(after, end, bucket_elements);
    end = parameters[i].begin;
    tables_.push_back(std::make_unique<RowTable>(parameters[i], arena_.buffers(), group_));
    parameter_of_table_.push_back(i);
  }
  cut_buckets(0, end, bucket_elements);
  std::ranges::reverse(tables_);
  std::ranges::reverse(parameter_of_table_);
}

void DataParallel::cut_buckets(int64_t begin_of_all, int64_t end, int64_t bucket_elements) {
  if (begin_of_all == end) return;
  dense_.emplace_back(begin_of_all, end);
  const auto& parameters = arena_.parameters();
  size_t last = parameters.size() - 1;
  while (end > begin_of_all) {
    const int64_t begin = std::max(begin_of_all, end - bucket_elements);
    while (parameters[last].begin >= end) --last;
    size_t first = last;
    while (first > 0 && parameters[first].begin > begin) --first;
    if (parameters[first].end <= begin && first < last) ++first;  // only its padding reaches in
    buckets_.push_back({begin, end, first, last});
    end = begin;
  }
}

void DataParallel::synchronise_start(const std::vector<std::pair<std::string, Tensor>>& constant) {
  if (group_.size() == 1) return;
  // Ranks that drew from one seed or read one file agree already: a hash tells that sooner than a copy makes it so.
  if (first_other_replica()) {
    group_.broadcast(arena_.buffers().master, 0).wait();
    arena_.refresh_compute();
    compare_replicas();
  }
  for (const auto& [name, tensor] : constant) {
    Tensor values = tensor.detach().contiguous();
    group_.broadcast(values, 0).wait();
    at::NoGradGuard no_grad;
    tensor.detach().copy_(values);
  }
}

std::optional<size_t> DataParallel::first_other_replica() const {
  const auto sums = group_.all_gather_bytes(std::to_string(checksum(arena_.buffers().master)));
  for (size_t rank = 1; rank < sums.size(); ++rank) {
    if (sums[rank] != sums[0]) return rank;
  }
  return std::nullopt;
}

void DataParallel::compare_replicas() const {
  if (group_.size() == 1) return;
  if (const auto rank = first_other_replica()) {
    throw DistributedError(
        "rank {} holds other parameters than rank 0 although both had the same gradients; the network or memory of its host is at fault",
        *rank);
  }
}

void DataParallel::backward(const Tensor& loss_sum, bool last) {
  begin_backward(loss_sum.defined() ? count_uses(loss_sum) : std::vector<int>(uses_left_.size(), 0), last);
  if (loss_sum.defined()) {
    try {
      loss_sum.backward();
    } catch (...) {
      abort_backward();
      throw;
    }
  }
  end_backward(last);
}

std::vector<int> DataParallel::count_uses(const Tensor& loss, std::vector<Tensor>* others) const {
  const auto check = [this](size_t parameter, const torch::autograd::Node& user) {
    check_use(parameter, user);
  };
  return count_gradient_uses(loss, index_of_, uses_left_.size(), others,
                             tables_.empty() ? CheckUse() : CheckUse(check));
}

void DataParallel::check_use(size_t parameter, const torch::autograd::Node& user) const {
  const NamedParameter& info = arena_.parameters()[parameter].info;
  if (!info.sparse || nn::notifies_of_rows(user, *info.row_hook)) return;
  throw Error(
      "{} is used by {}, but its layer says that rows of it are looked up and nothing else: construct the Embedding (or the BertModel) without sparse tables",
      info.name, user.name());
}

void DataParallel::begin_backward(std::vector<int> uses, bool last) {
  if (last) {
    if (reduced_ || !works_.empty())
      throw Error("backward: the last step's gradients were not yet taken; step first");
    uses_left_ = std::move(uses);
    for (Bucket& bucket : buckets_) {
      bucket.missing = 0;
      for (size_t i = bucket.first_parameter; i <= bucket.last_parameter; ++i)
        bucket.missing += uses_left_[i] > 0;
    }
    launched_ = 0;
    reducing_ = reduced_ = true;
    launch_ready();
  }
  in_backward_ = true;
}

void DataParallel::end_backward(bool last) {
  in_backward_ = false;
  if (!last) return;
  for (size_t i = 0; i < uses_left_.size(); ++i) {
    if (uses_left_[i] > 0) on_complete(i);  // a checkpointed block that did not use it this time
    uses_left_[i] = 0;
  }
  launch_ready();
  reducing_ = false;
}

void DataParallel::on_gradient(size_t parameter) {
  const std::string& name = arena_.parameters()[parameter].info.name;
  if (!in_backward_) {
    throw Error(
        "the gradient of {} was computed outside of stretto's backward, so ranks would drift apart; call backward of the trainer or of Lite in place of loss.backward()",
        name);
  }
  if (!reducing_) return;
  if (uses_left_[parameter] == 0) {
    throw Error(
        "the gradient of {} was added to after it had been reduced; if a checkpointed block uses it, name it in that block's parameters",
        name);
  }
  if (--uses_left_[parameter] == 0) {
    on_complete(parameter);
    launch_ready();
  }
}

void DataParallel::on_complete(size_t parameter) {
  for (Bucket& bucket : buckets_) {
    if (bucket.first_parameter <= parameter && parameter <= bucket.last_parameter) --bucket.missing;
  }
}

void DataParallel::launch_ready() {
  for (; launched_ < buckets_.size() && buckets_[launched_].missing == 0; ++launched_) {
    if (group_.size() == 1) continue;
    RECORD_USER_SCOPE(phase::reduce);
    const Bucket& bucket = buckets_[launched_];
    works_.push_back(group_.all_reduce(arena_.buffers().grad.slice(0, bucket.begin, bucket.end)));
  }
  for (; launched_ >= buckets_.size() && launched_ < buckets_.size() + tables_.size(); ++launched_) {
    const size_t table = launched_ - buckets_.size();
    if (uses_left_[parameter_of_table_[table]] > 0) break;
    RECORD_USER_SCOPE(phase::reduce);
    tables_[table]->start_reduction();
  }
}

void DataParallel::wait() {
  if (!reduced_) throw Error("step before backward: there are no gradients");
  for (Work& work : works_) work.wait();
  works_.clear();
  for (const auto& table : tables_) table->finish_reduction();
  reduced_ = false;
}

void DataParallel::finish(std::span<double> totals) {
  if (!reduced_) throw Error("step before backward: there are no gradients");
  if (group_.size() == 1) return wait();
  Tensor sums = at::tensor(at::ArrayRef<double>(totals.data(), totals.size()), at::kDouble)
                    .to(arena_.buffers().grad.device());
  works_.push_back(group_.all_reduce(sums));
  wait();
  sums = sums.to(at::kCPU);
  std::copy_n(sums.const_data_ptr<double>(), totals.size(), totals.begin());
}

double DataParallel::gradient_norm() const {
  double sum = 0;
  for (const auto& [begin, end] : dense_)
    sum += kernels::sum_of_squares(arena_.buffers().grad.slice(0, begin, end));
  for (const auto& table : tables_) sum += table->sum_of_squares();
  return std::sqrt(sum);
}

void DataParallel::zero_gradients() {
  for (const auto& [begin, end] : dense_) arena_.buffers().grad.slice(0, begin, end).zero_();
  for (const auto& table : tables_) table->zero_gradient();
}

void DataParallel::gradients_were_taken() {
  for (const auto& table : tables_) table->forget_rows();
}

optim::TouchedRows DataParallel::touched_rows() const {
  optim::TouchedRows rows;
  for (const auto& table : tables_) rows.push_back(table->rows());
  return rows;
}

std::string DataParallel::first_nonfinite() const {
  for (const auto& parameter : arena_.parameters()) {
    const Tensor grad = arena_.buffers().grad.slice(0, parameter.begin, parameter.end);
    if (!std::isfinite(kernels::sum_of_squares(grad))) return parameter.info.name;
  }
  return "";
}

uint64_t checksum(const Tensor& tensor) {
  const Tensor plain = tensor.detach().to(at::kCPU).contiguous();
  return hash64({static_cast<const char*>(plain.const_data_ptr()), plain.nbytes()});
}

}  // namespace stretto
