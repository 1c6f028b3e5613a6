#include "stretto/kernels/embedding.h"

#include "stretto/kernels/cpu/embedding_loops.h"
#include "stretto/kernels/cpu/tensor_loops.h"

namespace stretto::kernels {

Tensor row_sum(const std::vector<Lookup>& lookups) {
  const Tensor& first = lookups.at(0).table;
  if (is_fp16(first)) {  // the rows are widened, not the tables
    Tensor sum;
    for (const auto& [ids, table] : lookups) {
      const Tensor rows = widen_fp16(table.index_select(0, ids));
      sum = sum.defined() ? sum.add_(rows) : rows;
    }
    return sum.to(at::kHalf);
  }
  const Tensor out = at::empty({lookups[0].ids.numel(), first.size(1)}, first.options().requires_grad(false));
  with_loop_type(first.scalar_type(), [&](auto number) {
    using T = decltype(number);
    std::vector<const T*> tables;
    std::vector<const int64_t*> ids;
    for (const Lookup& lookup : lookups) {
      tables.push_back(memory_of<T>(lookup.table));
      ids.push_back(memory_of<int64_t>(lookup.ids));
    }
    row_sum_loop(RowSumCall<T>{tables.data(), ids.data(), std::ssize(tables), out.size(0), out.size(1),
                               memory_of<T>(out)});
  });
  return out;
}

void add_rows(const Tensor& grad, const Tensor& ids, const Tensor& sums) {
  if (is_fp16(grad)) return add_rows(widen_fp16(grad), ids, sums);
  with_loop_type(grad.scalar_type(), [&](auto number) {
    using T = decltype(number);
    row_add_loop(RowAddCall<T>{memory_of<T>(grad), memory_of<int64_t>(ids), grad.size(0), grad.size(1),
                               memory_of<Real<T>>(sums)});
  });
}

Tensor row_sum_reference(const std::vector<Lookup>& lookups) {
  Tensor sum;
  for (const auto& [ids, table] : lookups) {
    const Tensor rows = table.index_select(0, ids);
    sum = sum.defined() ? sum + rows : rows;
  }
  return sum;
}

}  // namespace stretto::kernels
