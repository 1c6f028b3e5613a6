#include "stretto/comm/socket_transfer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "stretto/base/error.h"
#include "stretto/kernels/reduce.h"

namespace stretto::comm {
namespace {

constexpr auto look_pause = std::chrono::milliseconds(250);

struct Header {
  NumberedCall program, transfer;
};

[[noreturn]] void throw_closed(const Neighbour& peer, int error) {
  throw DistributedError("rank {} closed the connection{}", peer.rank,
                         error == 0 || error == EPIPE || error == ECONNRESET
                             ? std::string()
                             : fmt::format(": {}", std::strerror(error)));
}

// The bytes of a list of parts, in order.
template <class Part>
class Cursor {
 public:
  explicit Cursor(const std::vector<Part>& parts) : parts_(parts) { skip_empty(); }
  bool at_end() const { return part_ == parts_.size(); }
  const Part& part() const { return parts_[part_]; }
  auto* data() const { return part().data + offset_; }
  size_t left() const { return part().bytes - offset_; }  // of the part
  void advance(size_t bytes) {
    while (bytes > 0) {
      const size_t here = std::min(bytes, left());
      offset_ += here;
      bytes -= here;
      skip_empty();
    }
  }
  // The bytes as buffers of sendmsg, up to `bytes`.
  template <size_t N>
  std::span<iovec> buffers(std::array<iovec, N>& buffers, size_t bytes) const {
    size_t count = 0, offset = offset_;
    for (size_t i = part_; i < parts_.size() && count < N && bytes > 0; ++i) {
      const size_t here = std::min(bytes, parts_[i].bytes - offset);
      if (here > 0) buffers[count++] = {const_cast<std::byte*>(parts_[i].data) + offset, here};
      bytes -= here;
      offset = 0;
    }
    return std::span(buffers).first(count);
  }

 private:
  void skip_empty() {
    while (!at_end() && left() == 0) {
      ++part_;
      offset_ = 0;
    }
  }
  const std::vector<Part>& parts_;
  size_t part_ = 0, offset_ = 0;
};

class Streams {
 public:
  explicit Streams(const SocketTransfer& what)
      : what_(what),
        own_header_{what.program, what.transfer},
        element_(c10::elementSize(static_cast<at::ScalarType>(what.transfer.call.dtype))),
        out_parts_(behind_header(what.out)),
        in_(what.in),
        out_(out_parts_) {}
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  bool sends() const { return what_.to.fd >= 0 && !out_.at_end(); }
  bool receives() const {
    return what_.from.fd >= 0 && (header_received_ < sizeof peer_header_ || !in_.at_end());
  }
  bool can_send() const { return sends() && may_send() > 0; }

  // Lets poll() wait until enough bytes have arrived to make waking up worthwhile, at most the rest of the
  // part: later bytes may depend on data that this rank has yet to receive and pass on.
  void wait_for_many() {
    const size_t rest =
        header_received_ < sizeof peer_header_ ? sizeof peer_header_ - header_received_ : in_.left() - held_;
    const int bytes = static_cast<int>(std::min(rest, wakeup_bytes));
    if (bytes != std::exchange(wanted_bytes_, bytes))
      ::setsockopt(what_.from.fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
  }

  // Both return whether anything moved.
  bool send_some() {
    if (!can_send()) return false;
    std::array<iovec, 8> buffers;
    const auto filled = out_.buffers(buffers, may_send());
    msghdr message{};
    message.msg_iov = filled.data();
    message.msg_iovlen = filled.size();
    const ssize_t sent = ::sendmsg(what_.to.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && cluster::would_block(errno)) return false;
    if (sent < 0) throw_closed(what_.to, errno);
    out_.advance(static_cast<size_t>(sent));
    sent_ += static_cast<size_t>(sent);
    return true;
  }

  bool receive_some() {
    if (!receives()) return false;
    if (header_received_ < sizeof peer_header_) return receive_header();
    return in_.part().reduce ? receive_and_reduce() : receive_in_place();
  }

 private:
  static constexpr size_t staging_bytes = size_t{256} << 10, wakeup_bytes = size_t{128} << 10;

  std::vector<Outgoing> behind_header(const std::vector<Outgoing>& parts) const {
    std::vector<Outgoing> all = {{reinterpret_cast<const std::byte*>(&own_header_), sizeof own_header_}};
    all.insert(all.end(), parts.begin(), parts.end());
    return all;
  }

  size_t may_send() const {
    const size_t allowed = what_.lead == SocketTransfer::everything
                               ? SocketTransfer::everything
                               : sizeof own_header_ + what_.lead + received_;
    return allowed > sent_ ? allowed - sent_ : 0;
  }

  size_t receive(std::byte* data, size_t bytes) const {
    const ssize_t received = ::recv(what_.from.fd, data, bytes, MSG_DONTWAIT);
    if (received < 0 && cluster::would_block(errno)) return 0;
    if (received <= 0) throw_closed(what_.from, received == 0 ? 0 : errno);
    return static_cast<size_t>(received);
  }

  bool receive_header() {
    const size_t bytes = receive(reinterpret_cast<std::byte*>(&peer_header_) + header_received_,
                                 sizeof peer_header_ - header_received_);
    header_received_ += bytes;
    if (header_received_ == sizeof peer_header_) compare_headers();
    return bytes > 0;
  }

  void compare_headers() const {
    const bool same_program = peer_header_.program == own_header_.program;
    if (same_program && peer_header_.transfer == own_header_.transfer) return;
    const NumberedCall& theirs = same_program ? peer_header_.transfer : peer_header_.program;
    const NumberedCall& own = same_program ? own_header_.transfer : own_header_.program;
    throw DistributedError(
        "{}", describe_difference(what_.from.rank, theirs, what_.own_rank, own, what_.world_ranks));
  }

  bool receive_in_place() {
    const size_t bytes = receive(in_.data(), in_.left());
    in_.advance(bytes);
    received_ += bytes;
    return bytes > 0;
  }

  // Elements may be split between reads: the beginning of one is kept at the front of the buffer.
  bool receive_and_reduce() {
    if (staging_.empty()) staging_.resize(staging_bytes);
    const size_t bytes = receive(staging_.data() + held_, std::min(staging_bytes, in_.left()) - held_);
    held_ += bytes;
    const size_t whole = held_ / element_ * element_;
    if (whole > 0) {
      std::byte* data = in_.data();
      const std::array<const void*, 2> in = {data, staging_.data()};
      const std::array<void*, 1> out = {data};
      const CollectiveCall& call = what_.transfer.call;
      kernels::reduce(static_cast<ReduceOp>(call.reduce), static_cast<at::ScalarType>(call.dtype), in, out,
                      static_cast<int64_t>(whole / element_));
      in_.advance(whole);
      received_ += whole;
      std::memmove(staging_.data(), staging_.data() + whole, held_ - whole);
      held_ -= whole;
    }
    return bytes > 0;
  }

  const SocketTransfer& what_;
  const Header own_header_;
  Header peer_header_{};
  const size_t element_;
  const std::vector<Outgoing> out_parts_;
  Cursor<Incoming> in_;
  Cursor<Outgoing> out_;
  size_t sent_ = 0, received_ = 0, header_received_ = 0;  // received_: and reduced, without the header
  std::vector<std::byte> staging_;
  size_t held_ = 0;
  int wanted_bytes_ = 0;
};

}  // namespace

std::optional<NumberedCall> arriving_call(int fd) {
  Header header;
  if (::recv(fd, &header, sizeof header, MSG_PEEK | MSG_DONTWAIT) != ssize_t{sizeof header})
    return std::nullopt;
  return header.program;
}

void transfer(const SocketTransfer& what, cluster::Clock::time_point deadline, int abort) {
  Streams streams(what);
  while (streams.sends() || streams.receives()) {
    const bool sent = streams.send_some(), received = streams.receive_some();
    if (sent || received) continue;
    if (streams.receives()) streams.wait_for_many();
    std::array<pollfd, 3> watched = {{{abort, POLLIN, 0},
                                      {streams.receives() ? what.from.fd : -1, POLLIN, 0},
                                      {streams.can_send() ? what.to.fd : -1, POLLOUT, 0}}};
    const auto until = std::min(deadline, cluster::Clock::now() + look_pause);
    auto moved = until;
    const int ready = cluster::poll_awake(watched, moved);
    deadline += moved - until;
    if (ready < 0 && errno != EINTR)
      throw DistributedError("cannot wait for sockets: {}", std::strerror(errno));
    if (watched[0].revents != 0) throw DistributedError("the group was closed");
    if (ready == 0 && what.look) what.look();
    if (ready == 0 && cluster::Clock::now() >= deadline) {
      const bool silent = streams.receives();
      throw DistributedError("rank {} has {} until the deadline", silent ? what.from.rank : what.to.rank,
                             silent ? "sent nothing more" : "taken nothing more");
    }
  }
}

}  // namespace stretto::comm
