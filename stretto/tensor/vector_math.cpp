#include "stretto/tensor/vector_math.h"

#include <ATen/ops/exp.h>
#include <ATen/ops/zeros.h>

namespace stretto {

void prepare_vector_math() {
  [[maybe_unused]] static const bool prepared = [] {
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) at::exp(at::zeros({64}, dtype));
    return true;
  }();
}

}  // namespace stretto
