#pragma once

#include <string>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "stretto/comm/collective_call.h"
#include "stretto/comm/group.h"

namespace stretto {

// c10d back ends, each made in a file of its own; nccl.cpp or no_nccl.cpp is built by whether CUDA is there.
c10::intrusive_ptr<c10d::Backend> make_gloo(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            const GroupOptions& options);
c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            const GroupOptions& options);

// TCP connections between all ranks, which prove to each other that they know the job's secret.
c10::intrusive_ptr<c10d::Backend> make_tcp(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                           const GroupOptions& options);

// MPI between ranks that it has started, by libstretto_mpi.so.
c10::intrusive_ptr<c10d::Backend> make_mpi(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                           const GroupOptions& options);

c10d::ReduceOp to_c10d(ReduceOp op);

// For back ends: what c10d passes to them. Both throw DistributedError where it is not what a Group passes.
ReduceOp from_c10d(const c10d::ReduceOp& op);
Tensor only_one(const std::vector<Tensor>& tensors);

// The call for messages and comparison: its operation is not set. `reduce`: null where nothing is reduced; a dtype that can
// be. Throws DistributedError for others.
CollectiveCall call_of(int64_t count, const Tensor& typed, int root, const c10d::ReduceOp* reduce);

// As Group::all_reduce.
c10::intrusive_ptr<c10d::Work> all_reduce(c10d::Backend& backend, const Tensor& tensor, ReduceOp op);

}  // namespace stretto
