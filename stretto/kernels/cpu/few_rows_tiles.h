#pragma once

#include "stretto/kernels/cpu/few_rows_loops.h"

namespace stretto::kernels {

// few_rows_product() for bf16 by tiles (tiles.h): a takes the time of one row whatever number it has.
// REQUIRES: has_tiles(), numbers of a that are bf16 numbers, and few_rows_tiles_scratch() bytes of scratch
// memory, aligned to 64 bytes.
void few_rows_tiles(const FewRowsProduct& product, int64_t first, int64_t last, void* scratch);

size_t few_rows_tiles_scratch(const FewRowsProduct& product, int64_t columns);

}  // namespace stretto::kernels
