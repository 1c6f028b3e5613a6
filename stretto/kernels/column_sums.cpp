#include "stretto/kernels/column_sums.h"

#include "stretto/kernels/cpu/column_sums_loops.h"
#include "stretto/kernels/cpu/tensor_loops.h"

namespace stretto::kernels {

void add_column_sums(const Tensor& rows, const Tensor& sums) {
  if (rows.dim() != 2) throw ShapeError("column sums: found {}; expected rows [T, C]", describe(rows));
  require_sizes("column sums: the sums", sums, {rows.size(1)});
  with_loop_type(rows.scalar_type(), [&](auto number) {
    using T = decltype(number);
    column_sums_loop(memory_of<T>(rows), rows.size(0), rows.size(1), memory_of<Real<T>>(sums));
  });
}

}  // namespace stretto::kernels
