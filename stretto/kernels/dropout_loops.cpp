#include <algorithm>

#include "stretto/kernels/loops.h"
#include "stretto/kernels/multiarch.h"

namespace stretto::kernels {
namespace {

constexpr int lanes = 16;  // counters advanced together, so that the rounds vectorise

constexpr uint32_t philox_m0 = 0xD2511F53, philox_m1 = 0xCD9E8D57;
constexpr uint32_t philox_w0 = 0x9E3779B9, philox_w1 = 0xBB67AE85;

}  // namespace

// One row of the mask: words[4 * lane + w] of counter block `lane` decides column 4 * block + w.
STRETTO_MULTIARCH void fill_dropout_row(float* out, int64_t columns, RowCounter row, uint64_t key,
                                        uint32_t threshold, float scale) {
  for (int64_t first = 0; first < columns; first += 4 * lanes) {
    uint32_t c0[lanes], c1[lanes], c2[lanes], c3[lanes];
    for (int lane = 0; lane < lanes; ++lane) {
      c0[lane] = static_cast<uint32_t>(first / 4) + static_cast<uint32_t>(lane);
      c1[lane] = row.position;
      c2[lane] = row.sample_low;
      c3[lane] = row.sample_high_and_stream;
    }
    uint32_t key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int lane = 0; lane < lanes; ++lane) {
        const uint64_t product0 = uint64_t{philox_m0} * c0[lane];
        const uint64_t product1 = uint64_t{philox_m1} * c2[lane];
        c0[lane] = static_cast<uint32_t>(product1 >> 32) ^ c1[lane] ^ key0;
        c1[lane] = static_cast<uint32_t>(product1);
        c2[lane] = static_cast<uint32_t>(product0 >> 32) ^ c3[lane] ^ key1;
        c3[lane] = static_cast<uint32_t>(product0);
      }
      key0 += philox_w0;
      key1 += philox_w1;
    }
    float kept[4 * lanes];
    for (int lane = 0; lane < lanes; ++lane) {
      kept[4 * lane] = c0[lane] >= threshold ? scale : 0.0f;
      kept[4 * lane + 1] = c1[lane] >= threshold ? scale : 0.0f;
      kept[4 * lane + 2] = c2[lane] >= threshold ? scale : 0.0f;
      kept[4 * lane + 3] = c3[lane] >= threshold ? scale : 0.0f;
    }
    std::copy_n(kept, std::min<int64_t>(4 * lanes, columns - first), out + first);
  }
}

}  // namespace stretto::kernels
