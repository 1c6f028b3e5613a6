#pragma once

#include <optional>

#include "stretto/kernels/cpu/pair_products.h"
#include "stretto/kernels/cpu/tiles.h"

namespace stretto::kernels {

// Whether tiles multiplied pairs faster than vectors when this process first asked: it measures both.
bool tiles_multiply_pairs();

// While it exists, products of this thread may have PairProduct::tiles if `use` is true. REQUIRES:
// has_tiles(), if `use`.
class PairTiles {
 public:
  explicit PairTiles(bool use);

 private:
#if defined(__x86_64__)
  std::optional<Tiles> tiles_;
#endif
};

// Computes the first rows of c by tiles and returns their number: a multiple of 16, or 0 for a product that
// tiles do not fit.
int64_t multiply_pairs_by_tiles(const PairProduct& product);

}  // namespace stretto::kernels
