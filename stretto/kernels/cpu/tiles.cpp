#include "stretto/kernels/cpu/tiles.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stretto/kernels/cpu/pair_products.h"

namespace stretto::kernels {
namespace {

// Linux saves the tiles of a thread only for processes that have asked for it.
bool ask_for_tiles() {
  constexpr long request_permission = 0x1023, tile_data = 18;  // arch/x86/include/uapi/asm/prctl.h
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned amx_bf16 = 1U << 22, amx_tile = 1U << 24;
  return (d & amx_bf16) != 0 && (d & amx_tile) != 0 && has_pair_products() &&
         syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

STRETTO_TILES void store(TileShapes& shapes) { _tile_storeconfig(&shapes); }

STRETTO_TILES void load(const TileShapes& shapes) {
  if (shapes.palette == 0) return _tile_release();
  _tile_loadconfig(&shapes);
}

}  // namespace

bool has_tiles() {
  static const bool allowed = ask_for_tiles();
  return allowed;
}

Tiles::Tiles(const TileShapes& shapes) {
  store(before_);
  load(shapes);
}

Tiles::~Tiles() { load(before_); }

}  // namespace stretto::kernels

#else

namespace stretto::kernels {

bool has_tiles() { return false; }

}  // namespace stretto::kernels

#endif
