#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace stretto::text {

// A map from strings to numbers >= 0 that finds the longest key that is a prefix of a text: one pass over the
// bytes computes the hash of every prefix. Keys are UTF-8 and are not copied: their bytes must outlive the
// table.
class StringTable {
 public:
  explicit StringTable(size_t expected_keys);

  // Adds a key, or changes the value of an existing one.
  void insert(std::string_view key, int32_t value);

  // The value of `key`, or -1.
  int32_t find(std::string_view key) const;

  size_t size() const { return entries_.size(); }

  struct Match {
    size_t size = 0;  // bytes; 0 if nothing matches
    int32_t value = -1;
  };
  // The longest nonempty key that is a prefix of `text`.
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
