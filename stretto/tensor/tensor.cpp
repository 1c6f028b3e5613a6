#include "stretto/tensor/tensor.h"

#include <c10/core/ScalarType.h>

#include "stretto/base/error.h"

namespace stretto {

at::ScalarType compute_dtype(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return at::kFloat;
    case Precision::bf16:
      return at::kBFloat16;
    case Precision::fp16:
      return at::kHalf;
    case Precision::fp64:
      return at::kDouble;
  }
  throw ConfigError("unknown precision");
}

at::ScalarType master_dtype(Precision precision) {
  return precision == Precision::fp64 ? at::kDouble : at::kFloat;
}

std::string describe(at::IntArrayRef shape) {
  return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", "));
}

std::string describe(const Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  return describe(tensor.sizes()) + " " + c10::toString(tensor.scalar_type());
}

}  // namespace stretto
