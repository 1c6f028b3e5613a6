#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace stretto::text {

// A map from strings to numbers >= 0, made to find the longest key that begins a text: the hash of every
// prefix comes out of one pass over the bytes. Keys are UTF-8 and are not copied: their bytes must outlive
// the table.
class StringTable {
 public:
  explicit StringTable(size_t expected_keys);

  // Adds a key, or gives one that is there a new value.
  void insert(std::string_view key, int32_t value);

  // The value of `key`, or -1.
  int32_t find(std::string_view key) const;

  size_t size() const { return entries_.size(); }

  struct Match {
    size_t size = 0;  // bytes; 0 when nothing matches
    int32_t value = -1;
  };
  // The longest non-empty key that `text` begins with.
  Match longest_prefix(std::string_view text) const;

 private:
  struct Slot {
    uint32_t tag = 0;
    int32_t entry = -1;
  };
  struct Entry {
    std::string_view key;
    int32_t value;
  };

  const Slot& slot_of(uint64_t hash, std::string_view key) const;
  void grow();

  std::vector<Slot> slots_;  // a power of two, at most half full; open addressing
  std::vector<Entry> entries_;
  int shift_ = 0;
  size_t longest_key_ = 0;
};

}  // namespace stretto::text
