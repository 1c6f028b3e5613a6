#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "stretto/base/files.h"

namespace stretto::data {

// Token ids of many samples in one memory-mapped file: a header, where each sample begins, all ids, all token types.
// Little-endian; written once under a name that depends on its content's source, never changed.
class TokenFile {
 public:
  // Maps `path` and checks its sizes, checksum and offsets. Throws DataError for a file that is no token file or is
  // damaged.
  explicit TokenFile(const std::filesystem::path& path);

  int64_t size() const { return static_cast<int64_t>(begins_.size()) - 1; }  // samples
  uint64_t checksum() const { return checksum_; }                            // of all samples' tokens
  int32_t largest_id() const { return ids_.empty() ? -1 : *std::ranges::max_element(ids_); }
  std::span<const int32_t> ids(int64_t sample) const { return cut(ids_, sample); }
  std::span<const uint8_t> types(int64_t sample) const { return cut(types_, sample); }

  // Writes `count` samples, whole or not at all; `encode(sample, ids, types)` appends one sample's tokens.
  using Encode = std::function<void(int64_t sample, std::vector<int32_t>& ids, std::vector<uint8_t>& types)>;
  static void write(const std::filesystem::path& path, int64_t count, const Encode& encode);

 private:
  template <class T>
  std::span<const T> cut(std::span<const T> all, int64_t sample) const {
    const auto begin = static_cast<size_t>(begins_[static_cast<size_t>(sample)]);
    const auto end = static_cast<size_t>(begins_[static_cast<size_t>(sample) + 1]);
    return all.subspan(begin, end - begin);
  }

  MappedFile file_;
  uint64_t checksum_ = 0;
  std::span<const int64_t> begins_;  // [samples + 1]
  std::span<const int32_t> ids_;     // [tokens]
  std::span<const uint8_t> types_;   // [tokens]
};

}  // namespace stretto::data
