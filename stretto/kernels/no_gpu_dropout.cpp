#include "stretto/kernels/gpu_dropout.h"

namespace stretto::kernels {

Tensor gpu_dropout_words(const DropoutRows&, int64_t, uint64_t) { return {}; }

}  // namespace stretto::kernels
