#include "stretto/nn/summed_product.h"

#include <algorithm>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/comm/group.h"
#include "stretto/kernels/matmul/matmul.h"
#include "stretto/nn/matmul.h"

namespace stretto::nn {
namespace {

using kernels::MatmulRole;
using kernels::multiply;

// The sum of `partial`, or this rank's rows of it, at once.
Tensor summed(const Tensor& partial, Group& ranks, bool divides_rows) {
  if (!divides_rows) {
    ranks.all_reduce(partial).wait();
    return partial;
  }
  const Tensor own = at::empty({partial.size(0) / ranks.size(), partial.size(1)}, partial.options());
  ranks.reduce_scatter(own, partial).wait();
  return own;
}

}  // namespace

Tensor summed_product(const Tensor& x, const Tensor& weight, Group& ranks, bool divides_rows,
                      int64_t bytes_at_once) {
  const int64_t parts = divides_rows ? ranks.size() : 1, rows = x.size(0), own_rows = rows / parts,
                width = weight.size(0);
  if (rows % parts != 0)
    throw ShapeError("{} rows cannot be divided evenly among {} ranks (tp)", rows, parts);
  const int64_t row_bytes = parts * width * static_cast<int64_t>(x.element_size());
  const int64_t at_once = std::max<int64_t>(1, bytes_at_once / std::max<int64_t>(1, row_bytes));
  if (!x.is_cpu() || x.scalar_type() != weight.scalar_type() || own_rows < 2 * at_once)
    return summed(product(x, weight, {}, &ranks), ranks, divides_rows);

  // The parts of the ranks' rows that are summed together lie together.
  const Tensor partial = ranks.scratch({rows, width}, x.scalar_type());
  const Tensor own = divides_rows ? at::empty({own_rows, width}, x.options()) : partial;
  std::vector<Work> sums;
  for (int64_t begin = 0; begin < own_rows; begin += at_once) {
    const int64_t count = std::min(at_once, own_rows - begin);
    const Tensor some = partial.slice(0, parts * begin, parts * (begin + count));
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t first = part * own_rows + begin;
      multiply(MatmulRole::forward, some.slice(0, part * count, (part + 1) * count),
               x.slice(0, first, first + count), weight.t());
    }
    sums.push_back(divides_rows ? ranks.reduce_scatter(own.slice(0, begin, begin + count), some)
                                : ranks.all_reduce(some));
  }
  for (Work& sum : sums) sum.wait();
  return own;
}

}  // namespace stretto::nn
