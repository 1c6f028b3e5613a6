#pragma once

#include "stretto/nn/packed.h"

namespace stretto::nn {

// Dropout of whole columns or rows of sequences, keyed by sample like nn::dropout. x [T, C] are the rows of
// `layout`.

// Locked, or variational, dropout (Gal and Ghahramani 2016): all rows of a sequence have the same mask.
Tensor locked_dropout(const Tensor& x, double p, uint64_t site, const PackedLayout& layout,
                      const Context& context);

// Each row is 0 with probability p; the others are not scaled (Flair's word dropout).
Tensor word_dropout(const Tensor& x, double p, uint64_t site, const PackedLayout& layout,
                    const Context& context);

}  // namespace stretto::nn
