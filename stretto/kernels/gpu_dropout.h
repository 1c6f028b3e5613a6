#pragma once

#include "stretto/kernels/dropout.h"

namespace stretto::kernels {

// The random words of the elements of masks, [R, streams, columns] int64 in [0, 2^32), by one kernel that
// libtorch compiles at its first use, instead of a hundred operators. Undefined if this build has no CUDA, or
// if the kernel cannot be compiled, which is logged once. REQUIRES: the rows are on a GPU.
Tensor gpu_dropout_words(const DropoutRows& rows, int64_t columns, uint64_t key);

}  // namespace stretto::kernels
