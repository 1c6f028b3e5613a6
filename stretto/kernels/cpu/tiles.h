#pragma once

#include <cstdint>

// AMX: matmuls of tiles of bf16 numbers. A tile has up to 16 rows of 64 bytes: 16 sums, or 16 pairs of bf16
// numbers (pair_products.h). Tile c [16, 16] += a [16, 16 pairs] b [16 pairs, 16] takes 16 cycles.
namespace stretto::kernels {

constexpr int64_t tile_rows = 16, tile_row_bytes = 64, tile_bytes = tile_rows * tile_row_bytes;

// Whether this processor multiplies bf16 tiles and the system lets this process use them.
bool has_tiles();

#if defined(__x86_64__)

// Marks functions that use tiles; only for calls where has_tiles() is true.
#define STRETTO_TILES __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16")))

// The shapes of the tiles 0 to 7, as the processor reads them.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  void set(int tile, int64_t number_of_rows, int64_t bytes_of_row = tile_row_bytes) {
    rows[tile] = static_cast<uint8_t>(number_of_rows);
    row_bytes[tile] = static_cast<uint16_t>(bytes_of_row);
  }
};

// Sets the shapes of this thread's tiles, and at the end restores those that a library had set.
class Tiles {
 public:
  explicit Tiles(const TileShapes& shapes);
  ~Tiles();
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

 private:
  TileShapes before_;
};

// Before tiles are loaded from memory that the program has just written, and before it reads what tiles have
// stored: the compiler does not know that these instructions access memory.
inline void finish_stores() { asm volatile("" ::: "memory"); }

#endif

}  // namespace stretto::kernels
