#pragma once

#include <climits>
#include <map>
#include <mutex>
#include <vector>

#include <mpi.h>

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "stretto/comm/mpi/communicator.h"

// Conversions of c10d's arguments to MPI's types. All throw std::runtime_error for values without a
// counterpart.
namespace stretto::mpi {

// The MPI type of an element.
inline MPI_Datatype number_type(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return MPI_DOUBLE;
    case at::kFloat:
      return MPI_FLOAT;
    case at::kLong:
      return MPI_INT64_T;
    case at::kInt:
      return MPI_INT32_T;
    case at::kShort:
      return MPI_INT16_T;
    case at::kChar:
      return MPI_INT8_T;
    case at::kByte:
      return MPI_UINT8_T;
    default:
      fail(std::string("there is no reduction of ") + c10::toString(dtype) + " tensors");
  }
}

inline MPI_Datatype byte_type(size_t bytes) {
  static std::mutex mutex;
  static std::map<size_t, MPI_Datatype> types;
  const std::lock_guard lock(mutex);
  const auto [found, fresh] = types.try_emplace(bytes, MPI_DATATYPE_NULL);
  if (fresh) {
    check(MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &found->second), "MPI_Type_contiguous");
    check(MPI_Type_commit(&found->second), "MPI_Type_commit");
  }
  return found->second;
}

inline MPI_Datatype byte_type(const at::Tensor& tensor) { return byte_type(tensor.element_size()); }

inline MPI_Op operation(const c10d::ReduceOp& op) {
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
      return MPI_SUM;
    case c10d::ReduceOp::PRODUCT:
      return MPI_PROD;
    case c10d::ReduceOp::MIN:
      return MPI_MIN;
    case c10d::ReduceOp::MAX:
      return MPI_MAX;
    default:
      fail("this reduction is not one of sum, product, min, max");
  }
}

inline int count_of(int64_t elements) {
  if (elements > INT_MAX) fail("MPI moves at most 2^31 - 1 elements at a time");
  return static_cast<int>(elements);
}

inline const at::Tensor& only_one(const std::vector<at::Tensor>& tensors) {
  if (tensors.size() != 1) fail("a collective takes one tensor per rank");
  return tensors[0];
}

inline bool is_narrow(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBFloat16 || tensor.scalar_type() == at::kHalf;
}

// An fp32 copy of a tensor whose dtype MPI lacks; else the tensor itself.
inline at::Tensor widened(const at::Tensor& tensor) {
  return is_narrow(tensor) ? tensor.to(at::kFloat) : tensor;
}

}  // namespace stretto::mpi
