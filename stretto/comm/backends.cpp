#include "stretto/comm/backends.h"

#include "stretto/base/error.h"
#include "stretto/kernels/reduce.h"

namespace stretto::comm {

c10d::ReduceOp to_c10d(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return c10d::ReduceOp::SUM;
    case ReduceOp::product:
      return c10d::ReduceOp::PRODUCT;
    case ReduceOp::min:
      return c10d::ReduceOp::MIN;
    case ReduceOp::max:
      return c10d::ReduceOp::MAX;
  }
  throw Error("unknown reduction");
}

ReduceOp from_c10d(const c10d::ReduceOp& op) {
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
      return ReduceOp::sum;
    case c10d::ReduceOp::PRODUCT:
      return ReduceOp::product;
    case c10d::ReduceOp::MIN:
      return ReduceOp::min;
    case c10d::ReduceOp::MAX:
      return ReduceOp::max;
    default:
      throw DistributedError("this reduction is not one of sum, product, min, max");
  }
}

Tensor only_one(const std::vector<Tensor>& tensors) {
  if (tensors.size() != 1)
    throw DistributedError("a collective takes one tensor per rank, not {}", tensors.size());
  return tensors[0];
}

CollectiveCall call_of(int64_t count, const Tensor& typed, int root, const c10d::ReduceOp* reduce) {
  const at::ScalarType dtype = typed.defined() ? typed.scalar_type() : at::kByte;
  if (reduce != nullptr && !kernels::can_reduce(dtype))
    throw DistributedError("there is no reduction of {} tensors", c10::toString(dtype));
  return {.operation = 0,
          .dtype = static_cast<int32_t>(dtype),
          .reduce = reduce == nullptr ? 0 : static_cast<int32_t>(from_c10d(*reduce)),
          .root = root,
          .count = count};
}

c10::intrusive_ptr<c10d::Work> all_reduce(c10d::Backend& backend, const Tensor& tensor, ReduceOp op) {
  c10d::AllreduceOptions options;
  options.reduceOp = to_c10d(op);
  std::vector<Tensor> tensors = {tensor};
  return backend.allreduce(tensors, options);
}

}  // namespace stretto::comm
