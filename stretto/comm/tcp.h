#pragma once

#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "stretto/comm/socket_collectives.h"
#include "stretto/comm/socket_messages.h"

namespace stretto::comm {

// Authenticated TCP connections as a back end of c10d.
class Tcp : public c10d::Backend {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  Tcp(std::shared_ptr<PeerSockets> sockets, std::chrono::milliseconds deadline)
      : c10d::Backend(sockets->rank(), sockets->size()),
        messages_(sockets, deadline),
        collectives_(std::move(sockets), deadline) {}

  const std::string getBackendName() const override { return "tcp"; }
  SocketCollectives& collectives() { return collectives_; }

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
  SocketMessages messages_;
  SocketCollectives collectives_;
};

}  // namespace stretto::comm
