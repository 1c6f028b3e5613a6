#pragma once

#include <cstddef>
#include <cstdint>

namespace stretto::kernels {

constexpr int64_t most_few_rows = 8;

// sums [m, n] = a [m, k] b [k, n] for few rows of a, as when a batch of texts gets one token each: b is read
// from memory once, which takes most of the time. Sums are in fp32.
struct FewRowsProduct {
  int64_t m = 0, n = 0, k = 0;  // m from 1 to most_few_rows
  const float* a = nullptr;     // [m, k], contiguous
  bool bf16 = false;            // type of b: bf16 or fp32
  const void* b = nullptr;
  bool tiles = false;         // by AMX; REQUIRES: has_tiles() (tiles.h), bf16
  bool b_by_columns = false;  // whether the columns of b are contiguous, else its rows are
  int64_t b_stride = 0;       // between its columns, or rows, in elements
  float* sums = nullptr;      // [m, n], contiguous
};

// Columns per unit of work: parts that threads compute begin at multiples of it.
constexpr int64_t few_rows_step = 64;

// The size in bytes of the scratch memory of few_rows_product() for `columns` columns.
size_t few_rows_scratch(const FewRowsProduct& product, int64_t columns);

// Computes columns [first, last) on the calling thread. REQUIRES: first is a multiple of few_rows_step; last
// too, or n; `scratch` is aligned to 64 bytes.
void few_rows_product(const FewRowsProduct& product, int64_t first, int64_t last, void* scratch);

}  // namespace stretto::kernels
