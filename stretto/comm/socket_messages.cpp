#include "stretto/comm/socket_messages.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <future>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "stretto/base/error.h"
#include "stretto/cluster/pause_watch.h"

namespace stretto::comm {
namespace {

constexpr auto channel = PeerSockets::Channel::messages;

// The number of packets that one connection may send or receive before the others are served.
constexpr int packets_per_turn = 64;

}  // namespace

struct SocketMessages::Transfer {
  int peer;
  Frame frame;
  Tensor tensor;
  bool sends;
  uint64_t number = 0;  // the index of a send among all to this peer
  std::promise<void> done = {};
};

class SocketMessages::MessageWork : public c10d::Work {
 public:
  // `shown_peer`: the number in the job of transfer->peer.
  MessageWork(TransferPtr transfer, int shown_peer, std::chrono::milliseconds deadline)
      : transfer_(std::move(transfer)),
        shown_peer_(shown_peer),
        done_(transfer_->done.get_future()),
        deadline_(deadline) {}
  bool isCompleted() override { return done_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  bool wait(std::chrono::milliseconds) override {
    using cluster::PauseWatch;
    using Clock = PauseWatch::Clock;
    PauseWatch pauses;
    auto until = Clock::now() + deadline_;
    while (done_.wait_until(std::min(until, Clock::now() + PauseWatch::longest_sleep)) ==
           std::future_status::timeout) {
      until += pauses.look();
      if (Clock::now() < until) continue;
      throw DistributedError("rank {} has {} until the deadline", shown_peer_,
                             transfer_->sends ? "not taken the message" : "sent no such message");
    }
    done_.get();
    return true;
  }

 private:
  const TransferPtr transfer_;
  const int shown_peer_;
  const std::shared_future<void> done_;
  const std::chrono::milliseconds deadline_;
};

SocketMessages::SocketMessages(std::shared_ptr<PeerSockets> sockets, std::chrono::milliseconds deadline)
    : sockets_(std::move(sockets)),
      deadline_(deadline),
      dropped_(size_t{64} << 10),
      peers_(static_cast<size_t>(sockets_->size())),
      thread_([this] { work(); }) {}

// A connection that is closed with unread data in it loses the data that it has yet to deliver, and
// announcements arrive at any time. So this rank shuts down its own direction and keeps reading until the
// others, which read everything and then close, have closed theirs.
SocketMessages::~SocketMessages() {
  {
    std::unique_lock lock(mutex_);
    leaving_ = true;
    wake_.wake();
    changed_.wait_for(lock, std::chrono::seconds(1), [this] {
      const auto gone = std::ranges::count_if(peers_, [](const Peer& peer) { return !peer.failure.empty(); });
      return gone == std::ssize(peers_) - 1;
    });
    closing_ = true;
  }
  wake_.wake();
  thread_.join();
  for (Peer& peer : peers_) end_transfers(peer, "the group was closed");
}

SocketMessages::WorkPtr SocketMessages::send(const Tensor& tensor, int destination, int tag) {
  return start(
      std::make_shared<Transfer>(Transfer{destination, frame_of(tensor, tag), tensor, /*sends=*/true}));
}

SocketMessages::WorkPtr SocketMessages::receive(const Tensor& tensor, int source, int tag) {
  return start(std::make_shared<Transfer>(Transfer{source, frame_of(tensor, tag), tensor, /*sends=*/false}));
}

SocketMessages::Frame SocketMessages::frame_of(const Tensor& tensor, int tag) {
  return {.kind = Frame::Kind::message,
          .tag = tag,
          .dtype = static_cast<int32_t>(tensor.scalar_type()),
          .zero = 0,
          .size = tensor.nbytes()};
}

SocketMessages::WorkPtr SocketMessages::start(TransferPtr transfer) {
  const int rank = transfer->peer;
  auto result = c10::make_intrusive<MessageWork>(transfer, sockets_->shown_rank(rank), deadline_);
  if (rank == sockets_->rank()) throw DistributedError("a rank cannot send to itself");
  const std::lock_guard lock(mutex_);
  Peer& peer = peers_.at(static_cast<size_t>(rank));
  if (!transfer->sends) {
    start_receive(peer, std::move(transfer));
  } else if (peer.failure.empty()) {
    transfer->number = sends_++;
    peer.sends[transfer->frame.tag].push_back(std::move(transfer));
  } else {
    finish(*transfer, peer.failure);
  }
  // Most messages are sent at once, without a change of threads; the thread handles errors.
  if (peer.failure.empty()) send_some(rank, peer);
  if (has_output(peer)) wake_.wake();
  return result;
}

// Takes the message from memory if it has arrived.
void SocketMessages::start_receive(Peer& peer, TransferPtr transfer) {
  const int tag = transfer->frame.tag;
  if (peer.failure.empty()) announce(peer, tag);
  const auto early = std::ranges::find(peer.early, tag, [](const auto& one) { return one.first.tag; });
  if (early != peer.early.end()) {
    const auto [frame, content] = std::move(*early);
    peer.early.erase(early);
    take_early(peer, frame, content, *transfer);
  } else if (peer.failure.empty()) {
    peer.receives.push_back(std::move(transfer));
    peer.announce = true;
  } else {
    finish(*transfer, peer.failure);
  }
}

void SocketMessages::take_early(Peer& peer, const Frame& frame, const Tensor& content, Transfer& receive) {
  const std::string wrong = difference(frame, receive.tensor);
  if (wrong.empty() && frame.size > 0)
    std::memcpy(receive.tensor.data_ptr(), content.const_data_ptr(), frame.size);
  peer.early_cost -= SendWindow::cost(frame.size);
  peer.taken += SendWindow::cost(frame.size);
  peer.announce |= !peer.announcements.empty() && peer.taken >= SendWindow::batch;
  finish(receive, wrong);
}

std::string SocketMessages::difference(const Frame& frame, const Tensor& tensor) {
  if (frame.size == tensor.nbytes() && frame.dtype == static_cast<int32_t>(tensor.scalar_type())) return "";
  return fmt::format("a message of {} bytes arrived; expected {}", frame.size, stretto::describe(tensor));
}

void SocketMessages::finish(Transfer& transfer, const std::string& error) {
  error.empty() ? transfer.done.set_value()
                : transfer.done.set_exception(std::make_exception_ptr(DistributedError("{}", error)));
  transfer.tensor = Tensor();
}

void SocketMessages::end_transfers(Peer& peer, const std::string& why) {
  peer.failure = why;
  if (peer.outgoing && peer.outgoing->message) finish(*peer.outgoing->message, why);
  for (const auto& [tag, transfers] : peer.sends)
    for (const TransferPtr& transfer : transfers) finish(*transfer, why);
  for (const TransferPtr& transfer : peer.receives) finish(*transfer, why);
  if (peer.incoming.asked) finish(*peer.incoming.asked, why);
  peer.outgoing.reset();
  peer.sends.clear();
  peer.announcements.clear();
  peer.announce = false;
  peer.receives.clear();
  peer.incoming = {};
}

void SocketMessages::fail(int rank, Peer& peer, const std::string& why) {
  end_transfers(peer, fmt::format("rank {} {}", sockets_->shown_rank(rank), why));
  sockets_->close(rank, channel);
  changed_.notify_all();
}

// The first send, in the order of the calls, that the window allows.
SocketMessages::Sends::iterator SocketMessages::next_send(Peer& peer) {
  auto next = peer.sends.end();
  for (auto one = peer.sends.begin(); one != peer.sends.end(); ++one) {
    const Transfer& message = *one->second.front();
    const bool sooner = next == peer.sends.end() || message.number < next->second.front()->number;
    if (sooner && peer.window.allows(one->first, message.frame.size)) next = one;
  }
  return next;
}

bool SocketMessages::has_output(Peer& peer) {
  return peer.outgoing || peer.announce || next_send(peer) != peer.sends.end();
}

void SocketMessages::announce(Peer& peer, int tag) {
  const bool more = !peer.announcements.empty() && peer.announcements.back().tag == tag &&
                    peer.announcements.back().receives < SendWindow::most_receives;
  if (!more) peer.announcements.push_back({tag, 0});
  ++peer.announcements.back().receives;
}

// Announcements go first: the other side may wait for them before it sends.
bool SocketMessages::begin_frame(Peer& peer) {
  if (peer.announce) {
    const auto [tag, receives] = peer.announcements.front();
    const Frame asked = {.kind = Frame::Kind::asked, .tag = tag, .dtype = 0, .zero = 0, .size = receives};
    peer.outgoing = {.frame = asked, .message = nullptr};
    peer.announcements.pop_front();
    peer.announce = !peer.announcements.empty();
    if (!peer.announce) peer.taken = 0;
    return true;
  }
  const auto next = next_send(peer);
  if (next == peer.sends.end()) return false;
  const TransferPtr message = next->second.front();
  next->second.pop_front();
  if (next->second.empty()) peer.sends.erase(next);
  peer.window.add(message->frame.tag, message->frame.size);
  peer.outgoing = {.frame = message->frame, .message = message};
  return true;
}

// Returns whether the connection may still be written.
bool SocketMessages::send_some(int rank, Peer& peer) {
  for (int packets = 0; packets < packets_per_turn && (peer.outgoing || begin_frame(peer)); ++packets) {
    Outgoing& outgoing = *peer.outgoing;
    const size_t frame_sent = std::min(outgoing.moved, sizeof(Frame)),
                 content_sent = outgoing.moved - frame_sent;
    std::array<iovec, 2> parts = {
        {{reinterpret_cast<std::byte*>(&outgoing.frame) + frame_sent, sizeof(Frame) - frame_sent}, {}}};
    const size_t content = outgoing.message ? outgoing.frame.size : 0;
    if (content > 0) {
      parts[1] = {static_cast<std::byte*>(outgoing.message->tensor.data_ptr()) + content_sent,
                  content - content_sent};
    }
    msghdr packet{};
    packet.msg_iov = parts.data();
    packet.msg_iovlen = parts.size();
    const ssize_t sent = ::sendmsg(sockets_->fd(rank, channel), &packet, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return cluster::would_block(errno);
    outgoing.moved += static_cast<size_t>(sent);
    if (outgoing.moved < sizeof(Frame) + content) return true;
    if (outgoing.message) finish(*outgoing.message);
    peer.outgoing.reset();
  }
  return true;
}

// Data that the other side sent before it closed the connection are received first.
void SocketMessages::end_connection(int rank, Peer& peer) {
  while (receive_some(rank, peer)) {
  }
  if (peer.failure.empty()) fail(rank, peer, "closed the connection");
}

// Returns false when nothing has arrived, or the connection has ended.
bool SocketMessages::receive(int rank, Peer& peer, std::byte* to, size_t wanted, size_t& received) {
  const ssize_t got = ::recv(sockets_->fd(rank, channel), to, wanted, MSG_DONTWAIT);
  if (got < 0 && cluster::would_block(errno)) return false;
  if (got <= 0) {
    fail(rank, peer, "closed the connection");
    return false;
  }
  received += static_cast<size_t>(got);
  return true;
}

// Returns whether more may have arrived.
bool SocketMessages::receive_some(int rank, Peer& peer) {
  Incoming& in = peer.incoming;
  for (int packets = 0; packets < packets_per_turn; ++packets) {
    if (in.frame_bytes < sizeof in.frame) {
      std::byte* to = reinterpret_cast<std::byte*>(&in.frame) + in.frame_bytes;
      if (!receive(rank, peer, to, sizeof in.frame - in.frame_bytes, in.frame_bytes)) return false;
      if (in.frame_bytes < sizeof in.frame) continue;
      take_frame(peer);
    } else {
      const size_t rest = in.frame.size - in.content_bytes;
      std::byte* to = in.content.defined() ? static_cast<std::byte*>(in.content.data_ptr()) + in.content_bytes
                                           : dropped_.data();
      const size_t wanted = in.content.defined() ? rest : std::min(rest, dropped_.size());
      if (!receive(rank, peer, to, wanted, in.content_bytes)) return false;
    }
    if (in.frame_bytes == sizeof in.frame && in.content_bytes == in.frame.size) end_message(peer);
  }
  return true;
}

// Handles an announcement, or chooses where the content of the message that begins goes.
void SocketMessages::take_frame(Peer& peer) {
  Incoming& in = peer.incoming;
  const bool announces =
      in.frame.kind == Frame::Kind::asked && in.frame.size > 0 && in.frame.size <= SendWindow::most_receives;
  if (announces) {
    peer.window.asked(in.frame.tag, in.frame.size);
    in = {};
    return;
  }
  if (in.frame.kind != Frame::Kind::message) {
    throw DistributedError("it has kind {} and size {}; all ranks must run the same version of stretto",
                           static_cast<int32_t>(in.frame.kind), in.frame.size);
  }
  const auto asked = find_receive(peer, in.frame.tag);
  if (asked == peer.receives.end()) {
    if (!SendWindow::fits(peer.early_cost, in.frame.size)) {
      throw DistributedError(
          "it has {} bytes and was not asked for, nor were others of {} bytes; at most {} may wait",
          in.frame.size, peer.early_cost, SendWindow::limit);
    }
    peer.early_cost += SendWindow::cost(in.frame.size);
    in.content = at::empty({static_cast<int64_t>(in.frame.size)}, at::kByte);
    return;
  }
  const TransferPtr receive = std::move(*asked);
  peer.receives.erase(asked);
  const std::string wrong = difference(in.frame, receive->tensor);
  if (!wrong.empty()) return finish(*receive, wrong);  // the content is dropped
  in.asked = receive;
  in.content = receive->tensor;
}

void SocketMessages::end_message(Peer& peer) {
  const Incoming in = std::exchange(peer.incoming, {});
  if (in.asked) return finish(*in.asked);
  if (!in.content.defined()) return;
  const auto asked = find_receive(peer, in.frame.tag);  // while it arrived
  if (asked == peer.receives.end()) {
    peer.early.emplace_back(in.frame, in.content);
    return;
  }
  const TransferPtr receive = std::move(*asked);
  peer.receives.erase(asked);
  take_early(peer, in.frame, in.content, *receive);
}

SocketMessages::Receives::iterator SocketMessages::find_receive(Peer& peer, int tag) {
  return std::ranges::find(peer.receives, tag, [](const auto& one) { return one->frame.tag; });
}

void SocketMessages::work() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    std::vector<pollfd> watched = {{wake_.fd(), POLLIN, 0}};
    for (int rank = 0; rank < sockets_->size(); ++rank) {
      Peer& peer = peers_[static_cast<size_t>(rank)];
      const bool open = rank != sockets_->rank() && peer.failure.empty(), output = open && has_output(peer);
      const int fd = open ? sockets_->fd(rank, channel) : -1;
      if (leaving_ && open && !output && peer.sends.empty()) ::shutdown(fd, SHUT_WR);
      watched.push_back({fd, static_cast<short>(POLLIN | (output ? POLLOUT : 0)), 0});
    }
    lock.unlock();
    const int ready = ::poll(watched.data(), watched.size(), -1);
    lock.lock();
    if (ready < 0) continue;
    if (watched[0].revents != 0) wake_.drain();
    for (int rank = 0; rank < sockets_->size(); ++rank) {
      const short events = watched[static_cast<size_t>(rank) + 1].revents;
      Peer& peer = peers_[static_cast<size_t>(rank)];
      try {
        if ((events & ~POLLOUT) != 0) receive_some(rank, peer);
        if (events != 0 && peer.failure.empty() && !send_some(rank, peer)) end_connection(rank, peer);
      } catch (const std::exception& error) {
        fail(rank, peer, fmt::format("sent a message that cannot be received: {}", error.what()));
      }
    }
  }
}

}  // namespace stretto::comm
