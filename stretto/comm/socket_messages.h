#pragma once

#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "stretto/comm/peer_sockets.h"
#include "stretto/tensor/tensor.h"

namespace stretto {

// Messages between two ranks of a group, by sockets of their own, so that they overtake collectives. Those with one sender and one
// tag arrive in their order. A thread moves them, from the first message on. One that arrives before it is asked for is kept in
// memory.
class SocketMessages {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  SocketMessages(std::shared_ptr<PeerSockets> sockets, std::chrono::milliseconds deadline);
  // Waits up to a second for messages that are being sent.
  ~SocketMessages();
  SocketMessages(const SocketMessages&) = delete;
  SocketMessages& operator=(const SocketMessages&) = delete;

  // Done when the tensor may be changed.
  WorkPtr send(const Tensor& tensor, int destination, int tag);
  // Throws DistributedError, when it is waited for, if the message is of another size or type.
  WorkPtr receive(const Tensor& tensor, int source, int tag);

 private:
  struct Header {
    int32_t tag;
    int32_t dtype;
    uint64_t bytes;
  };
  struct Transfer;
  class MessageWork;
  struct Peer {
    std::list<std::shared_ptr<Transfer>> sends;     // the first is being sent
    std::list<std::shared_ptr<Transfer>> receives;  // asked for and not begun
    std::deque<std::pair<Header, Tensor>> early;    // arrived and not asked for
    Header header{};                                // of the message that is arriving
    size_t header_bytes = 0;                        // of these, received
    std::shared_ptr<Transfer> arriving = {};        // null: it has not been asked for, or is not whole
    Tensor content = {};                            // of that message
    size_t content_bytes = 0;
    std::string failure = {};
  };

  WorkPtr start(std::shared_ptr<Transfer> transfer);
  void work();
  void send_some(int rank, Peer& peer);
  void receive_some(int rank, Peer& peer);
  void begin_content(Peer& peer);
  void finish(Transfer& transfer, const std::string& error = "");
  void end_transfers(Peer& peer, const std::string& why);
  void fail(int rank, Peer& peer, const std::string& why);
  static std::string difference(const Header& header, const Tensor& tensor);

  const std::shared_ptr<PeerSockets> sockets_;
  const std::chrono::milliseconds deadline_;
  const Fd wake_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Peer> peers_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace stretto
