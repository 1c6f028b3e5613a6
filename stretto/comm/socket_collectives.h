#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "stretto/comm/peer_sockets.h"
#include "stretto/comm/socket_transfer.h"

namespace stretto {

// Collectives over the sockets between ranks, one after the other on a thread of its own, so that they proceed while the rank
// computes. Results are the same bits on all ranks and in every run. Blocks of the calls are those of comm/group.h.
class SocketCollectives {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  SocketCollectives(std::shared_ptr<PeerSockets> sockets, std::chrono::milliseconds deadline);
  // Waits up to a second for calls that were never waited for.
  ~SocketCollectives();
  SocketCollectives(const SocketCollectives&) = delete;
  SocketCollectives& operator=(const SocketCollectives&) = delete;

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
  struct Job;
  class SocketWork;
  class Ring;

  WorkPtr start(CollectiveOperation operation, CollectiveCall call, std::vector<at::Tensor> keep,
                std::function<void(const Ring&)> run);
  void work();

  const std::shared_ptr<PeerSockets> sockets_;
  const std::chrono::milliseconds deadline_;
  const Fd abort_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Job> jobs_;  // not done; the first is running
  uint64_t started_ = 0;
  bool closing_ = false;
  std::string failure_;  // after which no call can succeed
  std::thread thread_;
};

}  // namespace stretto
