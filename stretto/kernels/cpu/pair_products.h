#pragma once

#include <cstdint>

namespace stretto::kernels {

// Matmuls of pairs: two bf16 numbers in 32 bits, the first one in the lower half, whose products are added in
// fp32 by AVX512-BF16. This takes half of the instructions of the same matmul in fp32.

// c [m, n] = factor * sum over k pairs of a [m, k] b [k, n], plus c if `accumulate`. Element (i, p) of a is
// a[i * a_row + p * a_column]; rows of b and c are contiguous.
struct PairProduct {
  float* c = nullptr;
  int64_t c_row = 0;
  const uint32_t* a = nullptr;
  int64_t a_row = 0, a_column = 0;
  const uint32_t* b = nullptr;
  int64_t b_row = 0;
  int64_t m = 0, k = 0, n = 0;  // REQUIRES: n is a multiple of 16
  float factor = 1;
  bool accumulate = false;
  bool tiles = false;  // by AMX where tiles fit; REQUIRES: PairTiles(true) of this thread (pair_tiles.h)
};

// Whether this processor has the instructions of the functions below.
bool has_pair_products();

void multiply_pairs(const PairProduct& product);

// Rounds `rows` rows of `n` fp32 numbers, `stride` apart, to pairs: `along` receives pairs of neighbours in a
// row, in rows of stride / 2; `down` receives pairs of neighbours in a column, in rows of `stride`. Numbers
// after the last row or column are zeros. REQUIRES: stride is a multiple of 32.
void round_to_pairs(const float* from, int64_t rows, int64_t n, int64_t stride, uint32_t* along,
                    uint32_t* down);

}  // namespace stretto::kernels
