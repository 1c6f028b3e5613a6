#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "stretto/base/wake.h"
#include "stretto/comm/peer_sockets.h"
#include "stretto/comm/socket_transfer.h"
#include "stretto/comm/work_thread.h"

namespace stretto::comm {

// Collectives over the sockets between ranks, run one after the other on a WorkThread. Results are bitwise
// equal on all ranks and in every run.
class SocketCollectives {
 public:
  using WorkPtr = WorkThread::WorkPtr;

  SocketCollectives(std::shared_ptr<PeerSockets> sockets, std::chrono::milliseconds deadline);

  // Each call moves blocks of call.count elements of call.dtype. `data`, `in` and `out` are contiguous and
  // must not change until the work is done; `keep` holds the tensors that own them. call.operation is set
  // here.
  WorkPtr all_reduce(void* data, CollectiveCall call, std::vector<at::Tensor> keep);  // in place
  WorkPtr reduce(void* data, CollectiveCall call, std::vector<at::Tensor> keep);     // in place, at call.root
  WorkPtr broadcast(void* data, CollectiveCall call, std::vector<at::Tensor> keep);  // in place
  WorkPtr all_gather(void* out, const void* in, CollectiveCall call, std::vector<at::Tensor> keep);
  // Destroys `in`.
  WorkPtr reduce_scatter(void* out, void* in, CollectiveCall call, std::vector<at::Tensor> keep);
  WorkPtr all_to_all(void* out, const void* in, CollectiveCall call, std::vector<at::Tensor> keep);
  WorkPtr barrier();

 private:
  class Ring;

  WorkPtr start(CollectiveOperation operation, CollectiveCall call, std::vector<at::Tensor> keep,
                std::function<void(const Ring&)> run);
  void close_connections();

  const std::shared_ptr<PeerSockets> sockets_;
  const std::chrono::milliseconds deadline_;
  const Wake abort_;
  uint64_t calls_ = 0;  // the number of calls begun; used by the thread only
  WorkThread thread_;   // declared last: it must end before the members that it uses
};

}  // namespace stretto::comm
