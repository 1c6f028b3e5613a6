#pragma once

#include <string>
#include <vector>

#include "stretto/data/dataset.h"

namespace stretto::data {

// Some samples of another dataset, in a given order. Batches keep the samples' ids in that dataset. A sample
// may be selected several times: its copies in one batch have different dropout masks, like rows in
// transformers; copies in different batches of an epoch have the same masks.
class Subset : public Dataset {
 public:
  // Sample i is sample samples[i] of `whole`, which must outlive this object. Throws ConfigError for an index
  // out of range.
  Subset(const Dataset& whole, std::vector<int64_t> samples);

  int64_t size() const override { return std::ssize(samples_); }
  int32_t length_of(int64_t index) const override {
    return whole_.length_of(samples_.at(static_cast<size_t>(index)));
  }
  std::string fingerprint() const override;
  bool pads() const override { return whole_.pads(); }
  bool is_ordered() const override { return whole_.is_ordered(); }
  Batch pack(std::span<const int64_t> samples) const override { return whole_.pack(in_whole(samples)); }
  Batch pack_with(std::span<const int64_t> samples, const Collate& collate) const override {
    return whole_.pack_with(in_whole(samples), collate);
  }

 private:
  std::vector<int64_t> in_whole(std::span<const int64_t> samples) const;

  const Dataset& whole_;
  std::vector<int64_t> samples_;
};

// `count` of `size` indices at equal distances, ascending, so that a part of a sorted file resembles the
// whole. All indices if count >= size.
std::vector<int64_t> evenly_spaced(int64_t size, int64_t count);

}  // namespace stretto::data
