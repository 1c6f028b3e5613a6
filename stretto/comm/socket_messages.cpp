#include "stretto/comm/socket_messages.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <future>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "stretto/base/error.h"

namespace stretto {
namespace {

constexpr auto channel = PeerSockets::Channel::messages;

}  // namespace

struct SocketMessages::Transfer {
  int peer;
  Header header;
  Tensor tensor;
  bool sends;
  size_t moved = 0;  // bytes sent, with the header
  std::promise<void> done = {};
};

class SocketMessages::MessageWork : public c10d::Work {
 public:
  MessageWork(std::shared_ptr<Transfer> transfer, std::chrono::milliseconds deadline)
      : transfer_(std::move(transfer)), done_(transfer_->done.get_future()), deadline_(deadline) {}
  bool isCompleted() override { return done_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  bool wait(std::chrono::milliseconds) override {
    if (done_.wait_for(deadline_) == std::future_status::timeout) {
      throw DistributedError("rank {} has {} until the deadline", transfer_->peer,
                             transfer_->sends ? "not taken the message" : "sent no such message");
    }
    done_.get();
    return true;
  }

 private:
  const std::shared_ptr<Transfer> transfer_;
  const std::shared_future<void> done_;
  const std::chrono::milliseconds deadline_;
};

SocketMessages::SocketMessages(std::shared_ptr<PeerSockets> sockets, std::chrono::milliseconds deadline)
    : sockets_(std::move(sockets)),
      deadline_(deadline),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      peers_(static_cast<size_t>(sockets_->size())) {}

SocketMessages::~SocketMessages() {
  if (!thread_.joinable()) return;
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(1), [this] {
      return std::ranges::all_of(peers_, [](const Peer& peer) { return peer.sends.empty(); });
    });
    closing_ = true;
  }
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
  for (Peer& peer : peers_) end_transfers(peer, "the group was closed");
}

SocketMessages::WorkPtr SocketMessages::send(const Tensor& tensor, int destination, int tag) {
  const Header header = {tag, static_cast<int32_t>(tensor.scalar_type()), tensor.nbytes()};
  return start(std::make_shared<Transfer>(Transfer{destination, header, tensor, /*sends=*/true}));
}

SocketMessages::WorkPtr SocketMessages::receive(const Tensor& tensor, int source, int tag) {
  const Header header = {tag, static_cast<int32_t>(tensor.scalar_type()), tensor.nbytes()};
  return start(std::make_shared<Transfer>(Transfer{source, header, tensor, /*sends=*/false}));
}

SocketMessages::WorkPtr SocketMessages::start(std::shared_ptr<Transfer> transfer) {
  auto result = c10::make_intrusive<MessageWork>(transfer, deadline_);
  if (transfer->peer == sockets_->rank()) throw DistributedError("a rank cannot send to itself");
  const std::lock_guard lock(mutex_);
  Peer& peer = peers_.at(static_cast<size_t>(transfer->peer));
  if (transfer->sends) {
    peer.failure.empty() ? peer.sends.push_back(std::move(transfer)) : finish(*transfer, peer.failure);
  } else {
    const auto early =
        std::ranges::find(peer.early, transfer->header.tag, [](const auto& one) { return one.first.tag; });
    if (early != peer.early.end()) {
      const std::string wrong = difference(early->first, transfer->tensor);
      if (wrong.empty() && transfer->header.bytes > 0)
        std::memcpy(transfer->tensor.data_ptr(), early->second.const_data_ptr(), transfer->header.bytes);
      finish(*transfer, wrong);
      peer.early.erase(early);
    } else if (peer.failure.empty()) {
      peer.receives.push_back(std::move(transfer));
    } else {
      finish(*transfer, peer.failure);
    }
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  ::eventfd_write(wake_.get(), 1);
  return result;
}

std::string SocketMessages::difference(const Header& header, const Tensor& tensor) {
  if (header.bytes == tensor.nbytes() && header.dtype == static_cast<int32_t>(tensor.scalar_type()))
    return "";
  return fmt::format("a message of {} bytes arrived; expected {}", header.bytes, describe(tensor));
}

void SocketMessages::finish(Transfer& transfer, const std::string& error) {
  error.empty() ? transfer.done.set_value()
                : transfer.done.set_exception(std::make_exception_ptr(DistributedError("{}", error)));
  transfer.tensor = Tensor();
}

void SocketMessages::end_transfers(Peer& peer, const std::string& why) {
  peer.failure = why;
  for (const auto& transfer : peer.sends) finish(*transfer, why);
  for (const auto& transfer : peer.receives) finish(*transfer, why);
  if (peer.arriving) finish(*peer.arriving, why);
  peer.sends.clear();
  peer.receives.clear();
  peer.arriving = nullptr;
}

void SocketMessages::fail(int rank, Peer& peer, const std::string& why) {
  end_transfers(peer, fmt::format("rank {} {}", rank, why));
  sockets_->close(rank, channel);
}

void SocketMessages::send_some(int rank, Peer& peer) {
  while (!peer.sends.empty()) {
    Transfer& message = *peer.sends.front();
    const size_t header_sent = std::min(message.moved, sizeof(Header)),
                 content_sent = message.moved - header_sent;
    std::array<iovec, 2> parts = {
        {{reinterpret_cast<std::byte*>(&message.header) + header_sent, sizeof(Header) - header_sent},
         {static_cast<std::byte*>(message.tensor.data_ptr()) + content_sent,
          message.header.bytes - content_sent}}};
    msghdr packet{};
    packet.msg_iov = parts.data();
    packet.msg_iovlen = parts.size();
    const ssize_t sent = ::sendmsg(sockets_->fd(rank, channel), &packet, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (!cluster::would_block(errno)) fail(rank, peer, "closed the connection");
      return;
    }
    message.moved += static_cast<size_t>(sent);
    if (message.moved < sizeof(Header) + message.header.bytes) return;
    finish(message);
    peer.sends.pop_front();
    changed_.notify_all();
  }
}

// Where the content of the message goes whose header has arrived.
void SocketMessages::begin_content(Peer& peer) {
  const auto asked =
      std::ranges::find(peer.receives, peer.header.tag, [](const auto& one) { return one->header.tag; });
  peer.content_bytes = 0;
  if (asked != peer.receives.end() && difference(peer.header, (*asked)->tensor).empty()) {
    peer.arriving = *asked;
    peer.content = (*asked)->tensor;
    peer.receives.erase(asked);
  } else {
    peer.content = at::empty({static_cast<int64_t>(peer.header.bytes)}, at::kByte);
  }
}

void SocketMessages::receive_some(int rank, Peer& peer) {
  while (true) {
    const bool in_header = peer.header_bytes < sizeof peer.header;
    if (in_header || peer.content_bytes < peer.header.bytes) {
      std::byte* to = in_header ? reinterpret_cast<std::byte*>(&peer.header) + peer.header_bytes
                                : static_cast<std::byte*>(peer.content.data_ptr()) + peer.content_bytes;
      const size_t wanted =
          in_header ? sizeof peer.header - peer.header_bytes : peer.header.bytes - peer.content_bytes;
      const ssize_t received = ::recv(sockets_->fd(rank, channel), to, wanted, MSG_DONTWAIT);
      if (received < 0 && cluster::would_block(errno)) return;
      if (received <= 0) return fail(rank, peer, "closed the connection");
      (in_header ? peer.header_bytes : peer.content_bytes) += static_cast<size_t>(received);
      if (in_header && peer.header_bytes == sizeof peer.header) begin_content(peer);
      if (in_header) continue;
    }
    if (peer.content_bytes < peer.header.bytes) continue;
    peer.header_bytes = 0;
    const std::shared_ptr<Transfer> asked = std::exchange(peer.arriving, nullptr);
    const Tensor content = std::exchange(peer.content, Tensor());
    if (asked) {
      finish(*asked);
      continue;
    }
    // It may have been asked for while it arrived.
    const auto waiting =
        std::ranges::find(peer.receives, peer.header.tag, [](const auto& one) { return one->header.tag; });
    if (waiting == peer.receives.end()) {
      peer.early.emplace_back(peer.header, content);
      continue;
    }
    const std::string wrong = difference(peer.header, (*waiting)->tensor);
    if (wrong.empty() && peer.header.bytes > 0)
      std::memcpy((*waiting)->tensor.data_ptr(), content.const_data_ptr(), peer.header.bytes);
    finish(**waiting, wrong);
    peer.receives.erase(waiting);
  }
}

void SocketMessages::work() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    std::vector<pollfd> watched = {{wake_.get(), POLLIN, 0}};
    for (int rank = 0; rank < sockets_->size(); ++rank) {
      const Peer& peer = peers_[static_cast<size_t>(rank)];
      const bool open = rank != sockets_->rank() && peer.failure.empty();
      watched.push_back({open ? sockets_->fd(rank, channel) : -1,
                         static_cast<short>(POLLIN | (peer.sends.empty() ? 0 : POLLOUT)), 0});
    }
    lock.unlock();
    const int ready = ::poll(watched.data(), watched.size(), -1);
    lock.lock();
    if (ready < 0) continue;
    eventfd_t ignored;
    if (watched[0].revents != 0) ::eventfd_read(wake_.get(), &ignored);
    for (int rank = 0; rank < sockets_->size(); ++rank) {
      const short events = watched[static_cast<size_t>(rank) + 1].revents;
      Peer& peer = peers_[static_cast<size_t>(rank)];
      try {
        if ((events & POLLOUT) != 0) send_some(rank, peer);
        if ((events & (POLLIN | POLLHUP | POLLERR)) != 0 && peer.failure.empty()) receive_some(rank, peer);
      } catch (const std::exception& error) {  // there is no memory for it
        fail(rank, peer, fmt::format("sent a message that cannot be received: {}", error.what()));
      }
    }
  }
}

}  // namespace stretto
