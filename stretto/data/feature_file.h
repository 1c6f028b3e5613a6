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

// Samples that consist of several rows of integers of any length (token ids, offsets, ...), in the order of their items.
class FeatureRows {
 public:
  void add(std::initializer_list<std::span<const int32_t>> rows);

 private:
  friend class FeatureFile;
  std::vector<int64_t> lengths_;
  std::vector<int32_t> values_;
};

// Such samples in one memory-mapped file, with a checksum. Little-endian; written once under a name that depends on its
// content's source, never changed.
class FeatureFile {
 public:
  // Maps `path` and checks its sizes and checksum. Throws DataError for a file that does not hold samples of `rows` rows,
  // or is damaged.
  FeatureFile(const std::filesystem::path& path, int64_t rows);

  using Encode = std::function<void(int64_t item, FeatureRows& samples)>;
  struct Source {
    std::string name;   // of the file that the items are from: "reviews.tsv"
    std::string items;  // what they are: "texts"
  };

  // The samples of `items` items: the file at `path`, which an earlier run wrote, or else write() now does, with a progress bar.
  static FeatureFile cached(const std::filesystem::path& path, int64_t rows, int64_t items,
                            const Source& source, const Encode& encode);

  int64_t size() const { return samples_; }
  uint64_t checksum() const { return checksum_; }
  std::span<const int32_t> row(int64_t sample, int64_t index) const {
    const auto at = static_cast<size_t>(sample * rows_ + index);
    return values_.subspan(static_cast<size_t>(begins_[at]),
                           static_cast<size_t>(begins_[at + 1] - begins_[at]));
  }

  // Writes the samples of `items` items, each any number of samples of `rows` rows, whole or not at all. `encode` is called on
  // all processors of the host; samples keep the order of their items. Rethrows what encode throws for the first item.
  static void write(const std::filesystem::path& path, int64_t rows, int64_t items, const Encode& encode);

 private:
  MappedFile file_;
  int64_t rows_, samples_ = 0;
  uint64_t checksum_ = 0;
  std::span<const int64_t> begins_;  // [samples * rows + 1]
  std::span<const int32_t> values_;
};

}  // namespace stretto::data
