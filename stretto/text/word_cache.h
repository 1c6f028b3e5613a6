#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace stretto::text {

// Caches the ids of words. Each word has one slot, which the latest word overwrites; most of a text consists
// of few words. Long words, and words of many tokens, are not cached.
class WordCache {
 public:
  WordCache() : slots_(size_t{1} << slot_bits) {}

  // Appends the ids of `word`; if they are not cached, calls look_up(word, ids), which must append them.
  template <class LookUp>
  void append(std::string_view word, std::vector<int32_t>& ids, const LookUp& look_up) {
    if (word.size() > longest) return look_up(word, ids);
    const Key key = key_of(word);
    Slot& slot = slots_[hash(key) >> (64 - slot_bits)];
    if (slot.key == key) {
      ids.insert(ids.end(), slot.ids.begin(), slot.ids.begin() + slot.count);
      return;
    }
    const size_t before = ids.size();
    look_up(word, ids);
    const size_t count = ids.size() - before;
    if (count > most_ids) return;
    slot.key = key;
    slot.count = static_cast<uint32_t>(count);
    std::copy(ids.begin() + static_cast<ptrdiff_t>(before), ids.end(), slot.ids.begin());
  }

 private:
  static constexpr int slot_bits = 16;
  static constexpr size_t longest = 23;
  static constexpr size_t most_ids = 9;

  // The bytes of a word, padding zeros, and its size in the last byte: keys of different words differ, and
  // none is all zeros.
  struct Key {
    uint64_t first = 0, second = 0, third = 0;
    bool operator==(const Key& other) const {
      return ((first ^ other.first) | (second ^ other.second) | (third ^ other.third)) == 0;
    }
  };
  struct Slot {
    Key key;
    uint32_t count = 0;
    std::array<int32_t, most_ids> ids{};
  };
  static_assert(sizeof(Slot) == 64);

  template <class Value>
  static uint64_t load(const char* bytes) {
    Value value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  // Loads up to 7 bytes. Two overlapping loads are faster than a copy of that size.
  static uint64_t load_rest(const char* bytes, size_t size) {
    if (size >= 4) return load<uint32_t>(bytes) | load<uint32_t>(bytes + size - 4) << 8 * (size - 4);
    if (size >= 2) return load<uint16_t>(bytes) | load<uint16_t>(bytes + size - 2) << 8 * (size - 2);
    return size == 1 ? load<uint8_t>(bytes) : 0;
  }

  static Key key_of(std::string_view word) {
    const char* const bytes = word.data();
    const size_t size = word.size();
    Key key;
    if (size < 8) {
      key.first = load_rest(bytes, size);
    } else if (size < 16) {
      key.first = load<uint64_t>(bytes);
      key.second = load_rest(bytes + 8, size - 8);
    } else {
      key.first = load<uint64_t>(bytes);
      key.second = load<uint64_t>(bytes + 8);
      key.third = load_rest(bytes + 16, size - 16);
    }
    key.third |= static_cast<uint64_t>(size) << 56;
    return key;
  }
  static uint64_t hash(const Key& key) {
    const uint64_t mixed =
        (key.first ^ key.third * 0x9E3779B97F4A7C15) * 0xC2B2AE3D27D4EB4F ^ key.second * 0x165667B19E3779F9;
    return (mixed ^ mixed >> 29) * 0x9E3779B97F4A7C15;
  }

  std::vector<Slot> slots_;
};

}  // namespace stretto::text
