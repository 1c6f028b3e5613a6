#pragma once

#include "stretto/kernels/cpu/few_rows_loops.h"

namespace stretto::kernels {

// few_rows_product() for bf16 by pairs (pair_products.h). REQUIRES: has_pair_products(), numbers of a that
// are bf16 numbers, and few_rows_pairs_scratch() bytes of scratch memory.
void few_rows_pairs(const FewRowsProduct& product, int64_t first, int64_t last, void* scratch);

size_t few_rows_pairs_scratch(const FewRowsProduct& product, int64_t columns);

}  // namespace stretto::kernels
