#pragma once

#include "stretto/kernels/cpu/few_rows_loops.h"

namespace stretto::kernels {

// Whether this processor has AMX's matmuls of bf16 tiles and the system lets this process use them.
bool has_tiles();

// few_rows_product() for bf16 by tiles: a takes the time of one row whatever number it has. REQUIRES:
// has_tiles(), numbers of a that are bf16 numbers, and few_rows_tiles_scratch() bytes of scratch memory,
// aligned to 64 bytes.
void few_rows_tiles(const FewRowsProduct& product, int64_t first, int64_t last, void* scratch);

size_t few_rows_tiles_scratch(const FewRowsProduct& product, int64_t columns);

}  // namespace stretto::kernels
