#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "stretto/base/files.h"

namespace stretto::data {

// Samples in memory, each with several rows of integers of any length (token ids, offsets, ...), in the order
// of their items.
class FeatureRows {
 public:
  void add(std::initializer_list<std::span<const int32_t>> rows);

 private:
  friend class FeatureFile;
  std::vector<int64_t> lengths_;
  std::vector<int32_t> values_;
};

// Samples in a memory-mapped file with a checksum. The file is little-endian; it is written once, under a
// name derived from its source, and never modified.
class FeatureFile {
 public:
  // Maps `path` and checks its sizes and checksum. Throws DataError if the samples do not have `rows` rows,
  // or if the file is damaged.
  FeatureFile(const std::filesystem::path& path, int64_t rows);

  using Encode = std::function<void(int64_t item, FeatureRows& samples)>;
  struct Source {
    std::string name;   // the source of the items: "reviews.tsv"
    std::string items;  // the noun for the items: "texts"
  };

  // Returns the samples of `items` items: maps the file at `path` if an earlier run wrote it; otherwise
  // write() creates it first, with a progress bar.
  static FeatureFile cached(const std::filesystem::path& path, int64_t rows, int64_t items,
                            const Source& source, const Encode& encode);

  int64_t size() const { return samples_; }
  uint64_t checksum() const { return checksum_; }
  std::span<const int32_t> row(int64_t sample, int64_t index) const {
    const auto at = static_cast<size_t>(sample * rows_ + index);
    return values_.subspan(static_cast<size_t>(begins_[at]),
                           static_cast<size_t>(begins_[at + 1] - begins_[at]));
  }

  // Atomically writes the samples of `items` items; an item has any number of samples of `rows` rows.
  // `encode` is called on all processors of the host; samples keep the order of their items. Rethrows the
  // exception of `encode` for the first failing item.
  static void write(const std::filesystem::path& path, int64_t rows, int64_t items, const Encode& encode);

 private:
  MappedFile file_;
  int64_t rows_, samples_ = 0;
  uint64_t checksum_ = 0;
  std::span<const int64_t> begins_;  // [samples * rows + 1]
  std::span<const int32_t> values_;
};

}  // namespace stretto::data
