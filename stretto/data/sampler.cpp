#include "stretto/data/sampler.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/philox.h"

namespace stretto::data {
namespace {

uint64_t order_key(uint64_t seed, int64_t epoch) {
  return hash64(std::array{seed, static_cast<uint64_t>(epoch)});
}

uint64_t window_key(uint64_t seed, int64_t epoch, int64_t window) {
  return hash64(std::array{seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(window)});
}

// Division and multiplication without overflow, since users choose the numbers.
int64_t ceil_divide(int64_t a, int64_t b) { return a / b + (a % b != 0); }
int64_t product_at_most(int64_t a, int64_t b, int64_t most) { return a > most / b ? most : a * b; }

}  // namespace

BatchCutter::BatchCutter(const SamplerOptions& options)
    : most_samples_(options.max_tokens > 0 ? INT64_MAX : options.global_batch_size),
      most_tokens_(options.max_tokens > 0 ? options.max_tokens : INT64_MAX) {}

bool BatchCutter::cuts_before(int64_t length) {
  const bool full = samples_ == most_samples_ || tokens_ > most_tokens_ - length;
  const bool cuts = full && samples_ > 0;
  if (cuts) samples_ = tokens_ = 0;
  ++samples_;
  tokens_ += length;
  return cuts;
}

Sampler::Sampler(SampleLengths lengths, const SamplerOptions& options)
    : lengths_(std::move(lengths)), options_(options) {
  if (options_.max_tokens < 0)
    throw ConfigError("a batch of at most {} tokens is not possible", options_.max_tokens);
  if (options_.max_tokens == 0 && options_.global_batch_size < 1) {
    throw ConfigError("a global batch of {} samples is not possible; it needs at least 1",
                      options_.global_batch_size);
  }
  if (options_.window < 1)
    throw ConfigError("a window of {} batches is not possible; it needs at least 1", options_.window);
  int64_t batch_size = options_.global_batch_size;
  if (options_.max_tokens > 0) {
    check_budget();
    const int64_t mean_length = std::max<int64_t>(1, lengths_.total() / std::max<int64_t>(1, size()));
    batch_size = std::max<int64_t>(1, options_.max_tokens / mean_length);
  }
  window_size_ = product_at_most(batch_size, options_.window, std::max(batch_size, size()));
  windows_ = ceil_divide(size(), window_size_);
}

void Sampler::check_budget() {
  for (int64_t sample = 0; sample < size(); ++sample) {
    if (length(sample) <= options_.max_tokens) continue;
    throw DataError(
        "sample {} (counted from 0) has {} tokens, more than a whole batch may have (max_tokens = {}); truncate samples or raise the budget",
        sample, length(sample), options_.max_tokens);
  }
}

// The samples of a window in the order in which batches are cut from them.
std::vector<int64_t> Sampler::window_samples(int64_t epoch, int64_t number) const {
  const int64_t begin = number * window_size_;
  const int64_t end = std::min(size(), begin + window_size_);
  std::vector<int64_t> samples(static_cast<size_t>(end - begin));
  std::iota(samples.begin(), samples.end(), begin);
  if (!options_.shuffle) return samples;
  const Permutation order(static_cast<uint64_t>(size()), order_key(options_.seed, epoch));
  for (int64_t& sample : samples) sample = static_cast<int64_t>(order(static_cast<uint64_t>(sample)));
  if (options_.group_by_length) {
    std::stable_sort(samples.begin(), samples.end(),
                     [&](int64_t a, int64_t b) { return length(a) < length(b); });
  }
  return samples;
}

Sampler::Batches Sampler::cut(const std::vector<int64_t>& samples) const {
  BatchCutter cutter(options_);
  Batches batches;
  for (const int64_t sample : samples) {
    if (cutter.cuts_before(length(sample)) || batches.empty()) batches.emplace_back();
    batches.back().push_back(sample);
  }
  return batches;
}

void Sampler::shuffle_batches(int64_t epoch, int64_t number, Batches& batches) const {
  const bool by_count = options_.max_tokens == 0;
  const bool last_is_short = by_count && std::ssize(batches.back()) < options_.global_batch_size;
  const size_t moving = batches.size() - last_is_short;
  Batches shuffled(batches.size());
  const Permutation order(moving, window_key(options_.seed, epoch, number));
  for (size_t i = 0; i < moving; ++i) shuffled[i] = std::move(batches[order(i)]);
  if (last_is_short) shuffled.back() = std::move(batches.back());
  batches = std::move(shuffled);
}

// REQUIRES: mutex_ is held.
const Sampler::Batches& Sampler::window_batches(int64_t epoch, int64_t number) const {
  if (window_.epoch != epoch || window_.number != number) {
    Batches batches = cut(window_samples(epoch, number));
    if (options_.shuffle && options_.group_by_length) shuffle_batches(epoch, number, batches);
    window_ = {epoch, number, std::move(batches)};
  }
  return window_.batches;
}

// REQUIRES: mutex_ is held and a token budget is set.
const std::vector<int64_t>& Sampler::first_batches(int64_t epoch) const {
  if (table_.epoch != epoch) {
    std::vector<int64_t> first_batch{0};
    for (int64_t number = 0; number < windows_; ++number) {
      first_batch.push_back(first_batch.back() + std::ssize(cut(window_samples(epoch, number))));
    }
    table_ = {epoch, std::move(first_batch)};
  }
  return table_.first_batch;
}

int64_t Sampler::batches(int64_t epoch) const {
  if (epoch < 0) throw Error("there is no epoch {}; epochs are counted from 0", epoch);
  if (options_.max_tokens == 0) return ceil_divide(size(), options_.global_batch_size);
  const std::lock_guard lock(mutex_);
  return first_batches(epoch).back();
}

std::vector<int64_t> Sampler::batch(int64_t epoch, int64_t index) const {
  const int64_t count = batches(epoch);
  if (index < 0 || index >= count)
    throw Error("epoch {} has batches 0 to {}, not {}", epoch, count - 1, index);
  const std::lock_guard lock(mutex_);
  int64_t number = index / options_.window;
  int64_t first = number * options_.window;
  if (options_.max_tokens > 0) {
    const auto& starts = first_batches(epoch);
    number = std::upper_bound(starts.begin(), starts.end(), index) - starts.begin() - 1;
    first = starts[static_cast<size_t>(number)];
  }
  return window_batches(epoch, number)[static_cast<size_t>(index - first)];
}

Sampler::Found Sampler::find(int64_t epoch, int64_t sample) const {
  if (options_.max_tokens == 0) {
    const int64_t batch = sample / options_.global_batch_size;
    return {batch, batch * options_.global_batch_size};
  }
  if (size() == 0) return {};
  const std::lock_guard lock(mutex_);
  const int64_t number = sample / window_size_;
  Found found = {first_batches(epoch)[static_cast<size_t>(number)], number * window_size_};
  for (const auto& batch : window_batches(epoch, number)) {
    if (found.samples_before + std::ssize(batch) > sample) break;
    found.samples_before += std::ssize(batch);
    ++found.batch;
  }
  return found;
}

void Sampler::each_from(int64_t epoch, int64_t sample, const std::function<bool(int64_t)>& take) const {
  const Found start = find(epoch, sample);
  const int64_t end = batches(epoch);
  int64_t before = sample - start.samples_before;  // samples of the first batch to skip
  for (int64_t index = start.batch; index < end; ++index, before = 0) {
    const std::vector<int64_t> samples = batch(epoch, index);
    for (auto next = samples.begin() + before; next != samples.end(); ++next) {
      if (!take(*next)) return;
    }
  }
}

}  // namespace stretto::data
