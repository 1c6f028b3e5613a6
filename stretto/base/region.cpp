#include "stretto/base/region.h"

#include <algorithm>

#include "stretto/base/error.h"

namespace stretto {

std::optional<int64_t> checked_elements(const std::vector<int64_t>& shape) {
  int64_t stride = 1;
  bool is_empty = false;
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(stride, std::max<int64_t>(size, 1), &stride)) return std::nullopt;
    is_empty |= size == 0;
  }
  return is_empty ? 0 : stride;
}

int64_t count_elements(const std::vector<int64_t>& shape) {
  const auto elements = checked_elements(shape);
  if (!elements) throw DataError("[{}] is not the shape of a tensor", fmt::join(shape, ", "));
  return *elements;
}

Region whole_region(const std::vector<int64_t>& shape) {
  return flat_region(shape, 0, count_elements(shape));
}

Region flat_region(const std::vector<int64_t>& shape, int64_t flat_begin, int64_t flat_end) {
  return {std::vector<int64_t>(shape.size(), 0), shape, flat_begin, flat_end};
}

}  // namespace stretto
