#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "stretto/base/wake.h"
#include "stretto/comm/peer_sockets.h"
#include "stretto/comm/socket_transfer.h"
#include "stretto/comm/work_thread.h"

namespace stretto {

// Collectives over the sockets between ranks, one after the other on a WorkThread. Results are the same bits on all ranks and in every
// run. Blocks of the calls are those of comm/group.h.
class SocketCollectives {
 public:
  using WorkPtr = WorkThread::WorkPtr;

  SocketCollectives(std::shared_ptr<PeerSockets> sockets, std::chrono::milliseconds deadline);

  // Each moves blocks of call.count elements of call.dtype; `data`, `in` and `out` are contiguous and stay as they are until the
  // work is done, and so do the tensors of `keep`. call.operation is set here.
  WorkPtr all_reduce(void* data, CollectiveCall call, std::vector<at::Tensor> keep);  // in place
  WorkPtr reduce(void* data, CollectiveCall call, std::vector<at::Tensor> keep);     // in place, at call.root
  WorkPtr broadcast(void* data, CollectiveCall call, std::vector<at::Tensor> keep);  // in place
  WorkPtr all_gather(void* out, const void* in, CollectiveCall call, std::vector<at::Tensor> keep);
  WorkPtr reduce_scatter(void* out, void* in, CollectiveCall call,
                         std::vector<at::Tensor> keep);  // destroys `in`
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
  uint64_t calls_ = 0;  // that have begun; the thread's
  WorkThread thread_;   // ends before what it uses
};

}  // namespace stretto
