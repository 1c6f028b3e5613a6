#include "stretto/base/philox.h"

namespace stretto {

Permutation::Permutation(uint64_t size, uint64_t key) : size_(size), key_(key) {
  while (half_bits_ < 32 && (uint64_t{1} << (2 * half_bits_)) < size) ++half_bits_;
}

uint64_t Permutation::operator()(uint64_t index) const {
  uint64_t value = index;
  do value = round_trip(value);
  while (value >= size_);
  return value;
}

uint64_t Permutation::round_trip(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint32_t left = static_cast<uint32_t>(value >> half_bits_);
  uint32_t right = static_cast<uint32_t>(value & mask);
  for (uint32_t round = 0; round < 4; ++round) {
    const uint32_t mixed = philox({right, round, 0, 0}, key_)[0] & static_cast<uint32_t>(mask);
    const uint32_t next = left ^ mixed;
    left = right;
    right = next;
  }
  return (uint64_t{left} << half_bits_) | right;
}

}  // namespace stretto
