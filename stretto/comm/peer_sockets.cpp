#include "stretto/comm/peer_sockets.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/refusal_log.h"
#include "stretto/cluster/secret.h"
#include "stretto/cluster/tls.h"

namespace stretto::comm {
namespace {

using cluster::Clock;
using Channel = PeerSockets::Channel;
using Introduction = PeerIntroduction;

// A connection begins with
//   acceptor:   its nonce
//   connector:  Introduction, its nonce, proof of both nonces and the introduction
//   acceptor:   proof of the same
constexpr size_t nonce_bytes = 32, proof_bytes = 32;
constexpr auto patience = std::chrono::seconds(10);      // with an unauthenticated connection
constexpr auto connect_time = std::chrono::seconds(20);  // to a rank that already listens
constexpr size_t spare = 64;  // unauthenticated connections that are kept, besides one for each missing rank

constexpr size_t claim_bytes = sizeof(Introduction) + nonce_bytes + proof_bytes;

std::string proof_of(const char* side, const std::string& key, std::string_view acceptors_nonce,
                     std::string_view introduction_and_nonce) {
  return cluster::prove(key,
                        fmt::format("stretto link {}\n{}{}", side, acceptors_nonce, introduction_and_nonce));
}

// An authenticated connection to this rank.
struct AcceptedConnection {
  Introduction introduction;
  Fd socket;
  std::string address, answer;
};

// Accepts the connections to this rank, and drops those whose other side does not authenticate.
class Acceptor {
 public:
  Acceptor(const Fd& listener, const std::string& key, const GroupOptions& options)
      : listener_(listener), key_(key), options_(options) {}

  // Waits until something arrives, or `until`. Drops the oldest of more than `room` unauthenticated
  // connections.
  std::vector<AcceptedConnection> wait(Clock::time_point until, size_t room) {
    std::vector<pollfd> watched = {{listener_.get(), POLLIN, 0}};
    for (const PendingConnection& pending : pending_) watched.push_back({pending.socket.get(), POLLIN, 0});
    if (::poll(watched.data(), watched.size(), cluster::poll_timeout(until)) < 0 && errno != EINTR)
      throw DistributedError("cannot wait for connections: {}", std::strerror(errno));
    std::vector<AcceptedConnection> accepted;
    size_t index = 1;
    for (auto pending = pending_.begin(); pending != pending_.end(); ++index) {
      const bool settled = watched[index].revents != 0 ? settle(*pending, accepted) : is_late(*pending);
      pending = settled ? pending_.erase(pending) : std::next(pending);
    }
    if (watched[0].revents != 0) accept_one(room);
    return accepted;
  }

  void refuse(const std::string& address, const std::string& why) { refusals_.add(address, why); }

 private:
  struct PendingConnection {
    Fd socket;
    std::string address;
    std::string nonce;
    Clock::time_point deadline;
    std::string claim = {};
  };

  void accept_one(size_t room) {
    Fd accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!accepted) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        throw DistributedError("cannot accept a connection of another rank: {} (ulimit -n)",
                               std::strerror(errno));
      return;
    }
    cluster::set_no_delay(accepted);
    if (pending_.size() >= room) pending_.pop_front();
    std::string address = cluster::peer_text(accepted);
    if (options_.encrypt) accepted = cluster::accept_tls(std::move(accepted), options_.secret);
    std::string nonce = cluster::random_bytes(nonce_bytes);
    if (::send(accepted.get(), nonce.data(), nonce.size(), MSG_NOSIGNAL) == std::ssize(nonce))
      pending_.push_back(
          {std::move(accepted), std::move(address), std::move(nonce), Clock::now() + patience});
  }

  bool is_late(const PendingConnection& pending) {
    if (Clock::now() < pending.deadline) return false;
    refuse(pending.address, "it did not authenticate in time");
    return true;
  }

  // Reads what has arrived. Returns whether the connection is settled: authenticated or refused.
  bool settle(PendingConnection& pending, std::vector<AcceptedConnection>& accepted) {
    std::array<char, claim_bytes> buffer;
    const ssize_t received =
        ::recv(pending.socket.get(), buffer.data(), claim_bytes - pending.claim.size(), MSG_DONTWAIT);
    if (received < 0 && cluster::would_block(errno)) return is_late(pending);
    if (received <= 0) {
      refuse(pending.address, "it closed the connection before it authenticated");
      return true;
    }
    pending.claim.append(buffer.data(), static_cast<size_t>(received));
    if (pending.claim.size() < claim_bytes) return is_late(pending);
    const std::string_view claim(pending.claim.data(), claim_bytes - proof_bytes);
    if (!cluster::equal_in_constant_time(std::string_view(pending.claim).substr(claim.size()),
                                         proof_of("from", key_, pending.nonce, claim))) {
      refuse(pending.address, "it does not have the job's secret, or belongs to another group");
      return true;
    }
    AcceptedConnection& incoming = accepted.emplace_back();
    std::memcpy(&incoming.introduction, claim.data(), sizeof incoming.introduction);
    incoming.answer = proof_of("to", key_, pending.nonce, claim);
    incoming.address = pending.address;
    incoming.socket = std::move(pending.socket);
    return true;
  }

  const Fd& listener_;
  const std::string& key_;
  const GroupOptions& options_;
  std::list<PendingConnection> pending_;
  cluster::RefusalLog refusals_{"ranks"};
};

// Derives the group's key from random bytes, which its first rank puts into the store, and the job's secret.
std::string group_key(c10d::Store& store, int rank, const std::string& secret) {
  if (rank == 0) {
    const std::string random = cluster::random_bytes(nonce_bytes);
    store.set("tcp.key", std::vector<uint8_t>(random.begin(), random.end()));
  }
  const std::vector<uint8_t> random = store.get("tcp.key");
  return cluster::prove(secret, "stretto links\n" + std::string(random.begin(), random.end()));
}

Fd connect(const cluster::Endpoint& where, Clock::time_point deadline) {
  try {
    return cluster::connect_socket(where, std::min(deadline, Clock::now() + connect_time));
  } catch (const DistributedError& error) {
    throw DistributedError(
        "{}; ranks listen on ports chosen by the system: allow connections between the job's hosts",
        error.what());
  }
}

std::string receive_proof(const Fd& connection, const cluster::Endpoint& where, Clock::time_point deadline) {
  try {
    return cluster::receive_exactly(connection, where, proof_bytes, deadline);
  } catch (const DistributedError& error) {
    throw DistributedError("{} after this rank had introduced itself; all ranks need the same STRETTO_SECRET",
                           error.what());
  }
}

std::string key_of_address(int rank) { return fmt::format("tcp.address.{}", rank); }

}  // namespace

PeerSockets::PeerSockets(c10d::Store& store, int rank, int size, const GroupOptions& options,
                         std::vector<int> members)
    : rank_(rank),
      members_(std::move(members)),
      world_ranks_(options.world_ranks),
      peers_(static_cast<size_t>(size)) {
  if (size == 1) return;
  const Clock::time_point deadline = Clock::now() + options.deadline;
  Fd listener;
  if (rank + 1 < size) {
    listener = cluster::bind_socket({options.address, 0});
    if (::listen(listener.get(), SOMAXCONN) != 0)
      throw DistributedError("cannot listen on {}: {}", options.address, std::strerror(errno));
    ::fcntl(listener.get(), F_SETFL, O_NONBLOCK);
    const std::string address = cluster::bound_endpoint(listener).text();
    store.set(key_of_address(rank), address);
  }
  const std::string key = group_key(store, rank, options.secret);
  for (int peer = 0; peer < rank; ++peer) {
    const std::vector<uint8_t> address = store.get(key_of_address(peer));
    const auto where =
        cluster::parse_endpoint(std::string(address.begin(), address.end()),
                                fmt::format("the address of rank {} in the store", shown_rank(peer)));
    connect_to(peer, where, key, options, deadline);
  }
  accept_from_higher_ranks(listener, key, options, deadline);
}

PeerSockets::~PeerSockets() {
  peers_.clear();
  cluster::flush_tls();
}

void PeerSockets::connect_to(int peer, const cluster::Endpoint& where, const std::string& key,
                             const GroupOptions& options, Clock::time_point deadline) {
  for (const Channel channel : {Channel::collectives, Channel::messages}) {
    try {
      Fd connection = connect(where, deadline);
      cluster::set_no_delay(connection);
      if (options.encrypt)
        connection = cluster::connect_tls(std::move(connection), where, options.secret, deadline);
      const std::string their_nonce = cluster::receive_exactly(connection, where, nonce_bytes, deadline);
      cluster::require_plain(their_nonce, where);
      const Introduction me = {
          .from = rank_, .to = peer, .channel = static_cast<int32_t>(channel), .size = size()};
      const std::string claim = me.bytes() + cluster::random_bytes(nonce_bytes);
      cluster::send_all(connection, where, claim + proof_of("from", key, their_nonce, claim), deadline);
      if (!cluster::equal_in_constant_time(receive_proof(connection, where, deadline),
                                           proof_of("to", key, their_nonce, claim))) {
        throw DistributedError("{}: the process that listens there does not have the job's secret",
                               where.text());
      }
      socket(peer, channel) = std::move(connection);
    } catch (const DistributedError& error) {
      throw DistributedError("no connection to rank {}: {}", shown_rank(peer), error.what());
    }
  }
}

void PeerSockets::accept_from_higher_ranks(const Fd& listener, const std::string& key,
                                           const GroupOptions& options, Clock::time_point deadline) {
  Acceptor acceptor(listener, key, options);
  size_t missing = 2 * static_cast<size_t>(size() - 1 - rank_);
  while (missing > 0) {
    const Clock::time_point soon = std::min(deadline, Clock::now() + std::chrono::seconds(1));
    for (AcceptedConnection& incoming : acceptor.wait(soon, missing + spare)) {
      if (!is_missing(incoming.introduction)) {
        acceptor.refuse(incoming.address, "it claims to be a rank that is not missing");
        continue;
      }
      const int peer = incoming.introduction.from;
      cluster::send_all(incoming.socket, {fmt::format("rank {}", shown_rank(peer)), 0}, incoming.answer,
                        deadline);
      socket(peer, static_cast<Channel>(incoming.introduction.channel)) = std::move(incoming.socket);
      --missing;
    }
    if (missing > 0 && Clock::now() >= deadline) {
      std::vector<int> absent;
      for (int peer = rank_ + 1; peer < size(); ++peer)
        if (fd(peer, Channel::messages) < 0) absent.push_back(shown_rank(peer));
      throw DistributedError("rank{} {} did not connect to this rank in time", absent.size() == 1 ? "" : "s",
                             fmt::join(absent, ", "));
    }
  }
}

bool PeerSockets::is_missing(const PeerIntroduction& they) const {
  const bool known_channel = they.channel == static_cast<int32_t>(Channel::collectives) ||
                             they.channel == static_cast<int32_t>(Channel::messages);
  return they.magic == PeerIntroduction().magic && they.to == rank_ && they.size == size() &&
         they.from > rank_ && they.from < size() && known_channel &&
         fd(they.from, static_cast<Channel>(they.channel)) < 0;
}

}  // namespace stretto::comm
