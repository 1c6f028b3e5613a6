#include "stretto/data/subset.h"

#include <algorithm>
#include <numeric>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"

namespace stretto::data {

Subset::Subset(const Dataset& whole, std::vector<int64_t> samples)
    : whole_(whole), samples_(std::move(samples)) {
  for (const int64_t sample : samples_) {
    if (sample >= 0 && sample < whole.size()) continue;
    throw ConfigError("subset: sample {} of {} samples; expected an index below that", sample, whole.size());
  }
}

std::string Subset::fingerprint() const {
  const auto* bytes = reinterpret_cast<const char*>(samples_.data());
  return fmt::format("{}/{:016x}", whole_.fingerprint(), hash64({bytes, samples_.size() * sizeof(int64_t)}));
}

std::vector<int64_t> Subset::in_whole(std::span<const int64_t> samples) const {
  std::vector<int64_t> indices;
  indices.reserve(samples.size());
  for (const int64_t sample : samples) indices.push_back(samples_.at(static_cast<size_t>(sample)));
  return indices;
}

std::vector<int64_t> evenly_spaced(int64_t size, int64_t count) {
  count = std::min(count, size);
  std::vector<int64_t> indices(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) indices[static_cast<size_t>(i)] = i * size / count;
  return indices;
}

}  // namespace stretto::data
