#pragma once

#include <string>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "stretto/comm/group.h"

namespace stretto {

// c10d back ends, each made in a file of its own; nccl.cpp or no_nccl.cpp is built by whether CUDA is there.
c10::intrusive_ptr<c10d::Backend> make_gloo(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            const GroupOptions& options);
c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            const GroupOptions& options);

c10d::ReduceOp to_c10d(ReduceOp op);

// As Group::all_reduce.
c10::intrusive_ptr<c10d::Work> all_reduce(c10d::Backend& backend, const Tensor& tensor, ReduceOp op);

}  // namespace stretto
