#include "stretto/comm/backends.h"

#include "stretto/base/error.h"

namespace stretto {

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

c10::intrusive_ptr<c10d::Work> all_reduce(c10d::Backend& backend, const Tensor& tensor, ReduceOp op) {
  c10d::AllreduceOptions options;
  options.reduceOp = to_c10d(op);
  std::vector<Tensor> tensors = {tensor};
  return backend.allreduce(tensors, options);
}

}  // namespace stretto
