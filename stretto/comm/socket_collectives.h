#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
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

  // The collective of the program of which the next calls here are a part. Without it each call is one.
  void set_program_call(const NumberedCall& call) { program_call_ = call; }

  // The collective that the previous rank has begun here, if it waits for this rank's part in it; nullopt
  // while a call of this rank is running. Thread-safe.
  struct PeerCall {
    int rank;  // in the job
    NumberedCall call;
  };
  std::optional<PeerCall> call_of_previous_rank();

  // `look` is called several times per second, with the collective of the program, by calls that wait for
  // other ranks; an exception ends the call. REQUIRES: no call has been made.
  void set_look(std::function<void(const NumberedCall&)> look) { look_ = std::move(look); }

 private:
  class Ring;

  WorkPtr start(CollectiveOperation operation, CollectiveCall call, std::vector<at::Tensor> keep,
                std::function<void(const Ring&)> run);
  void close_connections();

  const std::shared_ptr<PeerSockets> sockets_;
  const std::chrono::milliseconds deadline_;
  const Wake abort_;
  uint64_t calls_ = 0;  // so far
  std::optional<NumberedCall> program_call_;
  std::function<void(const NumberedCall&)> look_;
  std::mutex idle_;       // is locked while the connections are used outside of a call
  uint64_t running_ = 0;  // calls that have not ended, or have failed
  WorkThread thread_;     // declared last: it must end before the members that it uses
};

}  // namespace stretto::comm
