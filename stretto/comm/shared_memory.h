#pragma once

#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "stretto/comm/group.h"
#include "stretto/comm/shared_collectives.h"
#include "stretto/comm/shared_messages.h"
#include "stretto/tensor/memory.h"

namespace stretto::comm {

// State that a group and its works share.
struct SharedExchange {
  SharedExchange(std::unique_ptr<HostTeam> team, HostRail rail, std::chrono::milliseconds deadline)
      : collectives(std::move(team), std::move(rail)), messages(collectives.team()), deadline(deadline) {
    collectives.set_idle_work([this] { return messages.flush(); });
  }
  // The messages are destroyed first, and the collectives may then still wait for other ranks.
  ~SharedExchange() { collectives.set_idle_work({}); }
  SharedExchange(const SharedExchange&) = delete;
  SharedExchange& operator=(const SharedExchange&) = delete;

  SharedCollectives collectives;
  SharedMessages messages;
  std::chrono::milliseconds deadline;
};

// Shared memory as a back end of c10d. With several hosts, all_reduce uses shared memory within a host and
// `rail` between hosts, and all other calls use `network`, which is null on a single host.
class SharedMemory : public c10d::Backend {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  SharedMemory(std::unique_ptr<HostTeam> team, std::chrono::milliseconds deadline);
  SharedMemory(std::unique_ptr<HostTeam> team, std::chrono::milliseconds deadline, HostRail rail,
               c10::intrusive_ptr<Tcp> network);

  // Allocates tensors that collectives read and write in place.
  Allocator allocator() const;

  // The same for tensors of short life, which are not zeroed.
  Tensor scratch(int64_t elements, at::ScalarType dtype) const {
    return exchange_->collectives.team().segment()->allocate_scratch(elements, dtype);
  }

  bool on_one_host() const { return !network_; }

  // Zeroed memory of the first rank that every rank reads and writes; valid for the lifetime of the group.
  // Collective. REQUIRES: on_one_host().
  Tensor common(int64_t elements, at::ScalarType dtype);

  // Waits for all calls that this rank has begun.
  void waitForPendingWorks() override { exchange_->collectives.wait_for_all(exchange_->deadline); }

  const std::string getBackendName() const override { return "shm"; }
  WorkPtr allreduce(std::vector<Tensor>& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr reduce(std::vector<Tensor>& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr broadcast(std::vector<Tensor>& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr _allgather_base(Tensor& output, Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPtr _reduce_scatter_base(Tensor& output, Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(Tensor& output, Tensor& input, std::vector<int64_t>& output_sizes,
                        std::vector<int64_t>& input_sizes, const c10d::AllToAllOptions& options) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;
  WorkPtr send(std::vector<Tensor>& tensors, int destination, int tag) override;
  WorkPtr recv(std::vector<Tensor>& tensors, int source, int tag) override;

 private:
  NumberedCall next_call(CollectiveOperation operation, CollectiveCall call);
  WorkPtr start(const NumberedCall& call, const Tensor& shown, const Tensor& taken);

  c10d::Backend* fallback(const NumberedCall& call);
  WorkPtr driven(WorkPtr message);

  std::shared_ptr<SharedExchange> exchange_;
  c10::intrusive_ptr<Tcp> network_;
  uint64_t calls_ = 0;  // collectives so far
};

// The back end of a group of ranks on CPUs.
struct CpuTransport {
  c10::intrusive_ptr<c10d::Backend> backend;
  c10::intrusive_ptr<SharedMemory> shared;  // the same object if it is shared memory; else null
  std::string description;                  // "shared memory, 2 ranks on this host"
};

// Makes shared memory between the ranks of a host and TCP between hosts; TCP alone if each host has one rank
// or if shared memory is unavailable, with the reason in the description. Throws what the store throws, and
// DistributedError. Collective.
CpuTransport make_cpu_transport(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                const GroupOptions& options);

}  // namespace stretto::comm
