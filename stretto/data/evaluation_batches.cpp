#include "stretto/data/evaluation_batches.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "stretto/base/range.h"

namespace stretto::data {
namespace {

constexpr int64_t samples_at_once = 1 << 20;

}  // namespace

EvaluationBatches::EvaluationBatches(const Dataset& dataset, int world_size, int rank, int64_t batch_size)
    : lengths_(lengths_of(dataset)),
      micro_batches_(count_micro_batches(lengths_.size, world_size, batch_size)),
      dealer_(world_size, rank) {
  for (int64_t sample = 0; sample < lengths_.size; ++sample) ++first_[lengths_.of(sample)];
  int64_t longer = 0;  // samples
  for (auto& [length, first] : first_ | std::views::reverse) longer += std::exchange(first, longer);
}

// The first index in the order that belongs to the micro-batch.
int64_t EvaluationBatches::begin_of(int64_t micro_batch) const {
  return begin_of_part(lengths_.size, micro_batches_, micro_batch);
}

// The samples [begin, end) of the order: by length, longest first, then by index.
std::vector<int64_t> EvaluationBatches::in_order(int64_t begin, int64_t end) const {
  std::vector<int64_t> samples(static_cast<size_t>(end - begin));
  std::map<int32_t, int64_t> next = first_;
  int64_t missing = end - begin;
  for (int64_t sample = 0; missing > 0; ++sample) {
    const int64_t place = next.at(lengths_.of(sample))++;
    if (place < begin || place >= end) continue;
    samples[static_cast<size_t>(place - begin)] = sample;
    --missing;
  }
  return samples;
}

std::optional<GlobalBatch> EvaluationBatches::next() {
  if (done_ == micro_batches_) return std::nullopt;
  const int64_t begin = begin_of(done_);
  int64_t end = done_ + 1;
  while (end < micro_batches_ && begin_of(end + 1) - begin <= samples_at_once) ++end;
  GlobalBatch batch;
  batch.samples = in_order(begin, begin_of(end));
  for (; done_ < end; ++done_) {
    const auto first = batch.samples.begin() + (begin_of(done_) - begin);
    const auto last = batch.samples.begin() + (begin_of(done_ + 1) - begin);
    batch.micro_batches.push_back(dealer_.deal(std::span(first, last), lengths_));
  }
  return batch;
}

}  // namespace stretto::data
