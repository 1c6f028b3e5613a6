#pragma once

#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "stretto/base/wake.h"
#include "stretto/comm/peer_sockets.h"
#include "stretto/comm/send_window.h"
#include "stretto/tensor/tensor.h"

namespace stretto::comm {

// Messages between two ranks of a group, on separate sockets, so that they overtake collectives. Messages
// with one sender and one tag arrive in order. A message is moved by the call that begins it, or by a thread
// if that call cannot. Messages that arrive before they are asked for are kept in memory, up to
// SendWindow::limit per sender; others stay with the sender until they are asked for.
class SocketMessages {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  // The unit of the protocol: a message, followed by its bytes, or an announcement of receives.
  struct Frame {
    enum class Kind : int32_t { message = 1, asked };

    Kind kind = Kind::message;
    int32_t tag;
    int32_t dtype;  // of a message; else 0
    int32_t zero;
    uint64_t size;  // of a message, in bytes; or the number of receives
  };

  SocketMessages(std::shared_ptr<PeerSockets> sockets, std::chrono::milliseconds deadline);
  // Waits up to a second until the others have received the messages that were sent.
  ~SocketMessages();
  SocketMessages(const SocketMessages&) = delete;
  SocketMessages& operator=(const SocketMessages&) = delete;

  // The work is done when the tensor may change, possibly not before the destination asks for the message.
  WorkPtr send(const Tensor& tensor, int destination, int tag);
  // Its wait() throws DistributedError if the message has another size or dtype.
  WorkPtr receive(const Tensor& tensor, int source, int tag);

 private:
  struct Transfer;
  class MessageWork;
  using TransferPtr = std::shared_ptr<Transfer>;
  using Sends = std::map<int, std::deque<TransferPtr>>;  // by tag; none is empty
  using Receives = std::list<TransferPtr>;

  struct Outgoing {
    Frame frame;
    TransferPtr message;  // null: an announcement
    size_t moved = 0;     // bytes, with the frame
  };
  struct Incoming {
    Frame frame{};
    size_t frame_bytes = 0, content_bytes = 0;  // of these, received
    TransferPtr asked = {};                     // null: no receive was waiting for the message when it began
    Tensor content = {};                        // undefined: the content is dropped
  };
  struct Announcement {
    int tag;
    uint64_t receives;
  };
  struct Peer {
    Sends sends = {};        // sends that have not begun
    SendWindow window = {};  // the flow control of `sends`
    std::deque<Announcement> announcements = {};
    bool announce = false;                       // announcements are due now
    uint64_t taken = 0;                          // costs of messages whose receives are not announced yet
    std::optional<Outgoing> outgoing = {};       // is being sent
    Receives receives = {};                      // receives that wait for a message
    std::deque<std::pair<Frame, Tensor>> early;  // messages that arrived before their receive
    uint64_t early_cost = 0;  // the cost of `early`, including a message that is still arriving
    Incoming incoming = {};   // is arriving
    std::string failure = {};
  };

  WorkPtr start(TransferPtr transfer);
  static void start_receive(Peer& peer, TransferPtr transfer);
  void work();
  static bool has_output(Peer& peer);
  static Sends::iterator next_send(Peer& peer);
  static void announce(Peer& peer, int tag);
  static bool begin_frame(Peer& peer);
  bool send_some(int rank, Peer& peer);
  void end_connection(int rank, Peer& peer);
  bool receive_some(int rank, Peer& peer);
  bool receive(int rank, Peer& peer, std::byte* to, size_t wanted, size_t& received);
  static void take_frame(Peer& peer);
  static void end_message(Peer& peer);
  static void take_early(Peer& peer, const Frame& frame, const Tensor& content, Transfer& receive);
  static Receives::iterator find_receive(Peer& peer, int tag);
  static void finish(Transfer& transfer, const std::string& error = "");
  static void end_transfers(Peer& peer, const std::string& why);
  void fail(int rank, Peer& peer, const std::string& why);
  static Frame frame_of(const Tensor& tensor, int tag);
  static std::string difference(const Frame& frame, const Tensor& tensor);

  const std::shared_ptr<PeerSockets> sockets_;
  const std::chrono::milliseconds deadline_;
  const Wake wake_;
  std::vector<std::byte> dropped_;  // receives the bytes of messages that do not fit; used by the thread only

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Peer> peers_;
  uint64_t sends_ = 0;  // so far
  bool leaving_ = false, closing_ = false;
  std::thread thread_;
};

}  // namespace stretto::comm
