#pragma once

#include "stretto/kernels/cpu/few_rows_loops.h"

namespace stretto::kernels {

// few_rows_product() for bf16 by pairs (pair_products.h). REQUIRES: has_pair_products(), numbers of a that
// are bf16 numbers, and few_rows_pairs_scratch() bytes of scratch memory.
void few_rows_pairs(const FewRowsProduct& product, int64_t first, int64_t last, void* scratch);

size_t few_rows_pairs_scratch(const FewRowsProduct& product, int64_t columns);

// The padded lengths of a row of a, in pairs, and of a row of sums.
int64_t padded_pairs(const FewRowsProduct& product);
int64_t padded_columns(int64_t columns);

// Converts a to pairs, padded with zeros: m rows of padded_pairs(). REQUIRES: has_pair_products().
void write_pairs(const FewRowsProduct& product, uint32_t* pairs);

// Copies the sums of columns [first, last), m rows of padded_columns(), to the product. In each 32 columns
// they are in the order in which instructions interleave two rows of b.
void store_interleaved(const FewRowsProduct& product, int64_t first, int64_t last, const float* sums);

}  // namespace stretto::kernels
