#pragma once

#include <string>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "stretto/comm/collective_call.h"
#include "stretto/comm/group.h"

namespace stretto::comm {

// Makers of c10d back ends, one per file; the build uses nccl.cpp with CUDA and no_nccl.cpp without it.
c10::intrusive_ptr<c10d::Backend> make_gloo(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            const GroupOptions& options);
c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            const GroupOptions& options);

// TCP connections between all ranks, authenticated by the job's secret.
c10::intrusive_ptr<c10d::Backend> make_tcp(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                           const GroupOptions& options);

// MPI, through libstretto_mpi.so, between ranks that mpirun has started.
c10::intrusive_ptr<c10d::Backend> make_mpi(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                           const GroupOptions& options);

c10d::ReduceOp to_c10d(ReduceOp op);

// Conversions of c10d's arguments for back ends. Both throw DistributedError for values that a Group never
// passes.
ReduceOp from_c10d(const c10d::ReduceOp& op);
Tensor only_one(const std::vector<Tensor>& tensors);

// Describes a call for messages and for comparison between ranks; the operation is left unset. `reduce`: null
// if the call reduces nothing. Throws DistributedError for a dtype that cannot be reduced.
CollectiveCall call_of(int64_t count, const Tensor& typed, int root, const c10d::ReduceOp* reduce);

// Like Group::all_reduce.
c10::intrusive_ptr<c10d::Work> all_reduce(c10d::Backend& backend, const Tensor& tensor, ReduceOp op);

}  // namespace stretto::comm
