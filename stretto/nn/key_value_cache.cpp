#include "stretto/nn/key_value_cache.h"

#include <algorithm>

#include "stretto/base/error.h"

namespace stretto::nn {
namespace {

constexpr int64_t least_capacity = 64;

// Returns a tensor of `capacity` rows with the shape of `rows`, which begins with the rows of `before` if
// that is defined.
Tensor grown(const Tensor& before, const Tensor& rows, int64_t capacity) {
  const Tensor result = at::empty({capacity, rows.size(1), rows.size(2)}, rows.options());
  if (before.defined()) result.slice(0, 0, before.size(0)).copy_(before);
  return result;
}

}  // namespace

KeyValueCache::Rows KeyValueCache::take(int64_t count) {
  while (std::ssize(free_) < count) {
    free_.push_back(std::ssize(users_));
    users_.push_back(0);
  }
  const Rows taken(free_.end() - count, free_.end());
  free_.resize(free_.size() - static_cast<size_t>(count));
  share(taken);
  return taken;
}

void KeyValueCache::share(std::span<const int64_t> rows) {
  for (const int64_t row : rows) ++users_[static_cast<size_t>(row)];
}

void KeyValueCache::release(std::span<const int64_t> rows) {
  for (const int64_t row : rows)
    if (--users_[static_cast<size_t>(row)] == 0) free_.push_back(row);
}

void KeyValueCache::begin_pass(std::span<const Sequence> sequences) {
  Rows written, rows, bounds = {0};
  longest_ = 0;
  for (const auto& sequence : sequences) {
    longest_ = std::max(longest_, std::ssize(sequence.rows));
    rows.insert(rows.end(), sequence.rows.begin(), sequence.rows.end());
    const auto unread = sequence.rows.subspan(sequence.read);
    written.insert(written.end(), unread.begin(), unread.end());
    bounds.push_back(std::ssize(rows));
  }
  written_ = at::tensor(written);
  rows_ = at::tensor(rows);
  bounds_ = at::tensor(bounds);
}

CachedKeys KeyValueCache::append(uint64_t layer, const Tensor& keys, const Tensor& values) {
  const int64_t count = written_.defined() ? written_.numel() : 0;
  if (count == 0 || keys.size(0) < count) {
    throw ShapeError("cache of keys and values: the pass reads {} tokens, but the keys are {}", count,
                     describe(keys));
  }
  Layer& held = layers_[layer];
  const int64_t needed = std::ssize(users_), capacity = held.keys.defined() ? held.keys.size(0) : 0;
  if (capacity < needed) {
    const int64_t larger = std::max({needed, 2 * capacity, least_capacity});
    held = {grown(held.keys, keys, larger), grown(held.values, values, larger)};
  }
  // The first layer of a pass moves the indices to the device.
  const auto device = keys.device();
  written_ = written_.to(device), rows_ = rows_.to(device), bounds_ = bounds_.to(device);
  held.keys.index_copy_(0, written_, keys.slice(0, 0, count));
  held.values.index_copy_(0, written_, values.slice(0, 0, count));
  return {held.keys, held.values, rows_, bounds_, longest_};
}

}  // namespace stretto::nn
