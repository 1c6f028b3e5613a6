#include "stretto/kernels/cpu/pair_tiles.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

#if defined(__x86_64__)

// g++ 12 warns of the intrinsics' own undefined operands (GCC bug 105593).
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <immintrin.h>

namespace stretto::kernels {
namespace {

constexpr int64_t side = tile_rows, half = side / 2;  // of a tile, in rows and in units of 4 bytes
constexpr int64_t longest_column = 2 * side;          // of a, in pairs: attention's tiles have 64 queries

// The tiles: 0 to 3 are sums, 4 and 5 the operands, 6 and 7 those of the last 8 pairs.
TileShapes shapes_of_pairs() {
  TileShapes shapes;
  for (const int tile : {0, 1, 2, 3, 4, 5}) shapes.set(tile, tile_rows);
  shapes.set(6, tile_rows, half * 4);
  shapes.set(7, half);
  return shapes;
}

// The 16 rows of a from `i` on, by rows.
struct Left {
  const uint32_t* memory;
  int64_t stride;
};

// Copies columns [0, 16) of `rows` rows to rows that are longest_column apart.
STRETTO_TILES void transpose(const uint32_t* from, int64_t rows, int64_t stride, uint32_t* to) {
  __m512i r[side], t[side];
  for (int64_t i = 0; i < side; ++i)
    r[i] = i < rows ? _mm512_loadu_si512(from + i * stride) : _mm512_setzero_si512();
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {  // of 128 bits: four rows of a column
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  constexpr int even = 0x88, odd = 0xdd;  // parts of 128 bits
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i upper_even = _mm512_shuffle_i32x4(r[c], r[4 + c], even),
                  lower_even = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], even),
                  upper_odd = _mm512_shuffle_i32x4(r[c], r[4 + c], odd),
                  lower_odd = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], odd);
    _mm512_store_si512(to + c * longest_column, _mm512_shuffle_i32x4(upper_even, lower_even, even));
    _mm512_store_si512(to + (4 + c) * longest_column, _mm512_shuffle_i32x4(upper_odd, lower_odd, even));
    _mm512_store_si512(to + (8 + c) * longest_column, _mm512_shuffle_i32x4(upper_even, lower_even, odd));
    _mm512_store_si512(to + (12 + c) * longest_column, _mm512_shuffle_i32x4(upper_odd, lower_odd, odd));
  }
}

STRETTO_TILES void multiply_by_factor(float* c, int64_t c_row, int64_t columns, float factor) {
  const __m512 all = _mm512_set1_ps(factor);
  for (int64_t i = 0; i < side; ++i)
    for (int64_t j = 0; j < columns; j += side)
      _mm512_storeu_ps(c + i * c_row + j, _mm512_mul_ps(_mm512_loadu_ps(c + i * c_row + j), all));
}

// 16 rows of c and `count` times 16 of its columns.
template <int count>
STRETTO_TILES void multiply_tiles(const PairProduct& product, const Left& left, int64_t i, int64_t j) {
  const uint32_t* const b = product.b + j;
  const int64_t b_bytes = 4 * product.b_row, c_bytes = 4 * product.c_row;
  float* const c = product.c + i * product.c_row + j;
  if (product.accumulate) {
    _tile_loadd(0, c, c_bytes);
    if constexpr (count > 1) _tile_loadd(1, c + side, c_bytes);
    if constexpr (count > 2) _tile_loadd(2, c + 2 * side, c_bytes);
    if constexpr (count > 3) _tile_loadd(3, c + 3 * side, c_bytes);
  } else {
    _tile_zero(0);
    if constexpr (count > 1) _tile_zero(1);
    if constexpr (count > 2) _tile_zero(2);
    if constexpr (count > 3) _tile_zero(3);
  }
  int64_t p = 0;
  for (; p + side <= product.k; p += side) {
    const uint32_t* const rows = b + p * product.b_row;
    _tile_loadd(4, left.memory + p, 4 * left.stride);
    _tile_loadd(5, rows, b_bytes);
    _tile_dpbf16ps(0, 4, 5);
    if constexpr (count > 1) {
      _tile_loadd(5, rows + side, b_bytes);
      _tile_dpbf16ps(1, 4, 5);
    }
    if constexpr (count > 2) {
      _tile_loadd(5, rows + 2 * side, b_bytes);
      _tile_dpbf16ps(2, 4, 5);
    }
    if constexpr (count > 3) {
      _tile_loadd(5, rows + 3 * side, b_bytes);
      _tile_dpbf16ps(3, 4, 5);
    }
  }
  if (p < product.k) {  // the same by smaller tiles: instructions name tiles by literals
    const uint32_t* const rows = b + p * product.b_row;
    _tile_loadd(6, left.memory + p, 4 * left.stride);
    _tile_loadd(7, rows, b_bytes);
    _tile_dpbf16ps(0, 6, 7);
    if constexpr (count > 1) {
      _tile_loadd(7, rows + side, b_bytes);
      _tile_dpbf16ps(1, 6, 7);
    }
    if constexpr (count > 2) {
      _tile_loadd(7, rows + 2 * side, b_bytes);
      _tile_dpbf16ps(2, 6, 7);
    }
    if constexpr (count > 3) {
      _tile_loadd(7, rows + 3 * side, b_bytes);
      _tile_dpbf16ps(3, 6, 7);
    }
  }
  _tile_stored(0, c, c_bytes);
  if constexpr (count > 1) _tile_stored(1, c + side, c_bytes);
  if constexpr (count > 2) _tile_stored(2, c + 2 * side, c_bytes);
  if constexpr (count > 3) _tile_stored(3, c + 3 * side, c_bytes);
  finish_stores();
  if (product.factor != 1) multiply_by_factor(c, product.c_row, count * side, product.factor);
}

// Tiles read a by rows; columns are transposed unless they are longer than attention's.
bool fits(const PairProduct& product) {
  return product.k % half == 0 && product.k > 0 && !(product.accumulate && product.factor != 1) &&
         (product.a_column == 1 || (product.a_row == 1 && product.k <= longest_column));
}

using Clock = std::chrono::steady_clock;

// The least time of a product of attention's size.
double seconds_of_product(bool tiles) {
  constexpr int64_t m = 16, k = 32, n = 64;
  std::array<float, m* n> c = {};
  std::array<uint32_t, m* k> a = {};
  std::array<uint32_t, k* n> b = {};
  const PairTiles shapes(tiles);
  PairProduct product = {c.data(), n, a.data(), k, 1, b.data(), n, m, k, n};
  product.tiles = tiles;
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 10; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < 20; ++i) multiply_pairs(product);
    least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return least;
}

}  // namespace

bool tiles_multiply_pairs() {
  static const bool are_faster = has_tiles() && seconds_of_product(true) < seconds_of_product(false);
  return are_faster;
}

PairTiles::PairTiles(bool use) {
  if (use) tiles_.emplace(shapes_of_pairs());
}

int64_t multiply_pairs_by_tiles(const PairProduct& product) {
  if (!fits(product)) return 0;
  alignas(64) uint32_t rows[side * longest_column];
  int64_t i = 0;
  for (; i + side <= product.m; i += side) {
    Left left = {product.a + i * product.a_row, product.a_row};
    if (product.a_column != 1) {
      for (int64_t p = 0; p < product.k; p += side) {
        const uint32_t* const from = left.memory + p * product.a_column;
        transpose(from, product.k - p, product.a_column, rows + p);
      }
      left = {rows, longest_column};
    }
    finish_stores();
    int64_t j = 0;
    for (; j + 4 * side <= product.n; j += 4 * side) multiply_tiles<4>(product, left, i, j);
    if (product.n - j == 3 * side) multiply_tiles<3>(product, left, i, j);
    if (product.n - j == 2 * side) multiply_tiles<2>(product, left, i, j);
    if (product.n - j == side) multiply_tiles<1>(product, left, i, j);
  }
  return i;
}

}  // namespace stretto::kernels

#pragma GCC diagnostic pop

#else

namespace stretto::kernels {

bool tiles_multiply_pairs() { return false; }
PairTiles::PairTiles(bool) {}
int64_t multiply_pairs_by_tiles(const PairProduct&) { return 0; }

}  // namespace stretto::kernels

#endif
