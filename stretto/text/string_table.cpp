#include "stretto/text/string_table.h"

#include <algorithm>
#include <bit>

#include "stretto/text/utf8.h"

namespace stretto::text {
namespace {

// One multiplication per byte; the high bits choose the slot and the low ones tag it.
constexpr uint64_t hash_start = 0x51ED270B35D3F9A1;
uint64_t hash_step(uint64_t hash, char byte) {
  return (hash ^ static_cast<unsigned char>(byte)) * 0x9E3779B97F4A7C15;
}

uint64_t hash_key(std::string_view key) {
  uint64_t hash = hash_start;
  for (const char byte : key) hash = hash_step(hash, byte);
  return hash;
}

}  // namespace

StringTable::StringTable(size_t expected_keys) {
  const size_t size = std::bit_ceil(std::max<size_t>(16, 2 * expected_keys));
  slots_.resize(size);
  shift_ = 64 - std::countr_zero(size);
}

// The slot of `key`, or the free slot for it.
const StringTable::Slot& StringTable::slot_of(uint64_t hash, std::string_view key) const {
  const size_t mask = slots_.size() - 1;
  const auto tag = static_cast<uint32_t>(hash);
  for (size_t i = hash >> shift_;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.entry < 0 || (slot.tag == tag && entries_[slot.entry].key == key)) return slot;
  }
}

void StringTable::insert(std::string_view key, int32_t value) {
  if (2 * (entries_.size() + 1) > slots_.size()) grow();
  const uint64_t hash = hash_key(key);
  auto& slot = const_cast<Slot&>(slot_of(hash, key));
  if (slot.entry >= 0) {
    entries_[slot.entry].value = value;
    return;
  }
  slot = {static_cast<uint32_t>(hash), static_cast<int32_t>(entries_.size())};
  entries_.push_back({key, value});
  longest_key_ = std::max(longest_key_, key.size());
}

void StringTable::grow() {
  StringTable larger(slots_.size());
  for (const Entry& entry : entries_) larger.insert(entry.key, entry.value);
  *this = std::move(larger);
}

int32_t StringTable::find(std::string_view key) const {
  if (key.size() > longest_key_) return -1;
  const Slot& slot = slot_of(hash_key(key), key);
  return slot.entry < 0 ? -1 : entries_[slot.entry].value;
}

StringTable::Match StringTable::longest_prefix(std::string_view text) const {
  Match match;
  uint64_t hash = hash_start;
  const size_t limit = std::min(text.size(), longest_key_);
  for (size_t size = 1; size <= limit; ++size) {
    hash = hash_step(hash, text[size - 1]);
    if (size < text.size() && !is_lead_byte(text[size])) continue;  // inside a code point
    const Slot& slot = slot_of(hash, text.substr(0, size));
    if (slot.entry >= 0) match = {size, entries_[slot.entry].value};
  }
  return match;
}

}  // namespace stretto::text
