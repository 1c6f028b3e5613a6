#include "stretto/kernels/cpu/few_rows_tiles.h"

#include <algorithm>
#include <cstring>

#include "stretto/kernels/cpu/avx512_bf16.h"
#include "stretto/kernels/cpu/few_rows_pairs.h"
#include "stretto/kernels/cpu/tiles.h"

namespace stretto::kernels {
namespace {

constexpr int64_t tile_numbers = 32;             // bf16 numbers of a row of a tile
constexpr int64_t columns_each = 4 * tile_rows;  // that are computed together where columns are contiguous

}  // namespace

size_t few_rows_tiles_scratch(const FewRowsProduct& product, int64_t columns) {
  const auto pairs = static_cast<size_t>(product.m * padded_pairs(product)) * sizeof(uint32_t);
  const auto sums = static_cast<size_t>(product.m * padded_columns(columns)) * sizeof(float);
  return 4 * tile_bytes + pairs + (product.b_by_columns ? pairs : sums);
}

}  // namespace stretto::kernels

#if defined(__x86_64__)

// g++ 12 warns of the intrinsics' own undefined operands (GCC bug 105593).
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

namespace stretto::kernels {
namespace {

// --- columns of b are contiguous: 16 of them are the rows of a tile, which a's pairs multiply

// Columns [column, column + 16) of b, of which `columns` are inside, at rows [row, row + 32): in place, or
// padded with zeros in `copy`.
struct Part {
  const void* from;
  int64_t stride;  // in bytes
};

Part part_of(const FewRowsProduct& product, int64_t column, int64_t columns, int64_t row, uint16_t* copy) {
  const int64_t stride = product.b_stride, rows = std::min(tile_numbers, product.k - row);
  const auto* const b = static_cast<const uint16_t*>(product.b) + column * stride + row;
  if (columns >= tile_rows && rows == tile_numbers) return {b, 2 * stride};
  std::memset(copy, 0, tile_bytes);
  for (int64_t c = 0; c < std::min(columns, tile_rows); ++c)
    std::memcpy(copy + c * tile_numbers, b + c * stride, static_cast<size_t>(2 * rows));
  return {copy, 2 * tile_numbers};
}

// pairs: m rows; down: the same as m columns, as tiles read them.
void write_down(const FewRowsProduct& product, const uint32_t* pairs, uint32_t* down) {
  const int64_t padded = padded_pairs(product);
  for (int64_t r = 0; r < product.m; ++r)
    for (int64_t i = 0; i < padded; ++i) down[i * product.m + r] = pairs[r * padded + i];
}

STRETTO_TILES void multiply_columns(const FewRowsProduct& product, const uint32_t* down, int64_t begin,
                                    int64_t end, std::byte* buffer) {
  const int64_t m = product.m, m_bytes = 4 * m;
  TileShapes shapes;
  for (const int tile : {0, 1, 2, 3, 4}) shapes.set(tile, tile_rows, m_bytes);
  for (const int tile : {5, 6, 7}) shapes.set(tile, tile_rows);
  const Tiles tiles(shapes);
  auto* const copies = reinterpret_cast<uint16_t*>(buffer);
  auto* const sums = reinterpret_cast<float*>(buffer);  // of 64 columns
  for (int64_t column = begin; column < end; column += columns_each) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t row = 0; row < product.k; row += tile_numbers) {
      Part parts[4];
      for (int64_t i = 0; i < 4; ++i) {
        const int64_t first = column + i * tile_rows;
        uint16_t* const copy = copies + i * tile_bytes / 2;
        parts[i] = first < end ? part_of(product, first, end - first, row, copy)
                               : Part{copy, 2 * tile_numbers};  // whatever it has: these sums are not used
        const auto* const next =
            static_cast<const uint16_t*>(product.b) + (first + columns_each) * product.b_stride + row;
        for (int64_t c = 0; c < tile_rows; ++c) __builtin_prefetch(next + c * product.b_stride, 0, 2);
      }
      finish_stores();
      _tile_loadd(4, down + row / 2 * m, m_bytes);
      _tile_loadd(5, parts[0].from, parts[0].stride);
      _tile_dpbf16ps(0, 5, 4);
      _tile_loadd(6, parts[1].from, parts[1].stride);
      _tile_dpbf16ps(1, 6, 4);
      _tile_loadd(7, parts[2].from, parts[2].stride);
      _tile_dpbf16ps(2, 7, 4);
      _tile_loadd(5, parts[3].from, parts[3].stride);
      _tile_dpbf16ps(3, 5, 4);
    }
    _tile_stored(0, sums, m_bytes);
    _tile_stored(1, sums + 1 * tile_rows * m, m_bytes);
    _tile_stored(2, sums + 2 * tile_rows * m, m_bytes);
    _tile_stored(3, sums + 3 * tile_rows * m, m_bytes);
    finish_stores();
    for (int64_t c = 0; c < std::min(columns_each, end - column); ++c)
      for (int64_t r = 0; r < m; ++r) product.sums[r * product.n + column + c] = sums[c * m + r];
  }
}

// --- rows of b are contiguous: two of them are interleaved to a row of a tile

// Interleaves the rows [row, row + 32) of b, at 32 columns of which `columns` are inside, to two tiles.
STRETTO_AVX512_INLINE void interleave(const FewRowsProduct& product, int64_t row, int64_t column,
                                      int64_t columns, std::byte* to) {
  const int64_t stride = product.b_stride;
  const auto* b = static_cast<const uint16_t*>(product.b) + row * stride + column;
  const __mmask32 inside = columns >= tile_numbers ? ~__mmask32{0} : (__mmask32{1} << columns) - 1;
  for (int64_t i = 0; i < tile_rows; ++i, b += 2 * stride) {
    const int64_t rows = product.k - row - 2 * i;  // that are left
    __builtin_prefetch(b + tile_numbers * stride);
    __builtin_prefetch(b + (tile_numbers + 1) * stride);
    const __m512i one = _mm512_maskz_loadu_epi16(rows > 0 ? inside : 0, b);
    const __m512i two = _mm512_maskz_loadu_epi16(rows > 1 ? inside : 0, b + stride);
    _mm512_store_si512(to + i * 64, _mm512_unpacklo_epi16(one, two));
    _mm512_store_si512(to + tile_bytes + i * 64, _mm512_unpackhi_epi16(one, two));
  }
}

STRETTO_TILES void multiply_rows(const FewRowsProduct& product, const uint32_t* pairs, int64_t begin,
                                 int64_t end, float* sums, std::byte* buffer) {
  const int64_t m = product.m, width = padded_columns(end - begin), padded = padded_pairs(product);
  TileShapes shapes;
  for (const int tile : {0, 1, 2}) shapes.set(tile, m);
  for (const int tile : {3, 4}) shapes.set(tile, tile_rows);
  const Tiles tiles(shapes);
  std::memset(sums, 0, static_cast<size_t>(m * width) * sizeof(float));
  for (int64_t row = 0; row < product.k; row += tile_numbers) {
    _tile_loadd(2, pairs + row / 2, 4 * padded);
    for (int64_t j = 0; j < end - begin; j += tile_numbers) {
      std::byte* const pair_of_tiles = buffer + j / tile_numbers % 2 * 2 * tile_bytes;
      interleave(product, row, begin + j, end - begin - j, pair_of_tiles);
      finish_stores();
      _tile_loadd(0, sums + j, 4 * width);
      _tile_loadd(3, pair_of_tiles, 64);
      _tile_dpbf16ps(0, 2, 3);
      _tile_loadd(1, sums + j + tile_numbers / 2, 4 * width);
      _tile_loadd(4, pair_of_tiles + tile_bytes, 64);
      _tile_dpbf16ps(1, 2, 4);
      _tile_stored(0, sums + j, 4 * width);
      _tile_stored(1, sums + j + tile_numbers / 2, 4 * width);
    }
  }
  finish_stores();
  store_interleaved(product, begin, end, sums);
}

}  // namespace

void few_rows_tiles(const FewRowsProduct& product, int64_t begin, int64_t end, void* scratch) {
  auto* const buffer = static_cast<std::byte*>(scratch);
  auto* const pairs = reinterpret_cast<uint32_t*>(buffer + 4 * tile_bytes);
  uint32_t* const rest = pairs + product.m * padded_pairs(product);
  write_pairs(product, pairs);
  if (!product.b_by_columns)
    return multiply_rows(product, pairs, begin, end, reinterpret_cast<float*>(rest), buffer);
  write_down(product, pairs, rest);
  multiply_columns(product, rest, begin, end, buffer);
}

}  // namespace stretto::kernels

#pragma GCC diagnostic pop

#else

namespace stretto::kernels {

void few_rows_tiles(const FewRowsProduct&, int64_t, int64_t, void*) {}

}  // namespace stretto::kernels

#endif
