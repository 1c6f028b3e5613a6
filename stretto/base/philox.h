#pragma once

#include <array>
#include <cstdint>

namespace stretto {

// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): four random words that
// are a pure function of a 128-bit counter and a 64-bit key. There is no other state.
inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint64_t key) {
  uint32_t key0 = static_cast<uint32_t>(key);
  uint32_t key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

// A pseudo-random permutation of 0 .. size-1, one value at a time in O(1): a Feistel network over Philox with
// cycle walking. The same (size, key) always gives the same order, so a position in the order needs no state.
class Permutation {
 public:
  Permutation(uint64_t size, uint64_t key);
  uint64_t operator()(uint64_t index) const;  // REQUIRES: index < size

 private:
  uint64_t round_trip(uint64_t value) const;

  uint64_t size_;
  uint64_t key_;
  int half_bits_ = 1;
};

}  // namespace stretto
