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

namespace stretto {
namespace {

using cluster::Clock;
using Channel = PeerSockets::Channel;

// A connection begins with
//   acceptor:   its nonce
//   connector:  Introduction, its nonce, proof of both nonces and the introduction
//   acceptor:   proof of the same
constexpr size_t nonce_bytes = 32, proof_bytes = 32;
constexpr auto patience = std::chrono::seconds(10);      // with a connection that has not proved anything
constexpr auto connect_time = std::chrono::seconds(20);  // to a rank that listens already
constexpr size_t spare =
    64;  // connections that have not proved anything, besides one for each that is missing

struct Introduction {
  std::array<char, 8> magic = {'s', 't', 'r', 'e', 't', 't', 'o', '1'};
  int32_t from = 0, to = 0;
  int32_t channel = 0;
  int32_t size = 0;

  bool operator==(const Introduction&) const = default;
  std::string bytes() const { return {reinterpret_cast<const char*>(this), sizeof *this}; }
};
constexpr size_t claim_bytes = sizeof(Introduction) + nonce_bytes + proof_bytes;

std::string proof_of(const char* side, const std::string& key, std::string_view acceptors_nonce,
                     std::string_view introduction_and_nonce) {
  return cluster::prove(key,
                        fmt::format("stretto link {}\n{}{}", side, acceptors_nonce, introduction_and_nonce));
}

// A connection to this rank whose other side has not proved anything yet.
struct Stranger {
  Fd socket;
  std::string peer;
  std::string nonce;
  Clock::time_point deadline;
  std::string claim = {};
};

// The group's key: random bytes that its first rank puts into the store, and the job's secret.
std::string meet_key(c10d::Store& store, int rank, const std::string& secret) {
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
        "{}; ranks listen at ports that the system chooses: let the job's hosts reach each other's",
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

PeerSockets::PeerSockets(c10d::Store& store, int rank, int size, const GroupOptions& options)
    : rank_(rank), peers_(static_cast<size_t>(size)) {
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
  const std::string key = meet_key(store, rank, options.secret);
  for (int peer = 0; peer < rank; ++peer) {
    const std::vector<uint8_t> address = store.get(key_of_address(peer));
    const auto where = cluster::parse_endpoint(std::string(address.begin(), address.end()),
                                               fmt::format("the address of rank {} in the store", peer));
    connect_to(peer, where, key, deadline);
  }
  accept_from_higher_ranks(listener, key, deadline);
}

void PeerSockets::connect_to(int peer, const cluster::Endpoint& where, const std::string& key,
                             Clock::time_point deadline) {
  for (const Channel channel : {Channel::collectives, Channel::messages}) {
    try {
      Fd connection = connect(where, deadline);
      cluster::set_no_delay(connection);
      const std::string theirs = cluster::receive_exactly(connection, where, nonce_bytes, deadline);
      const Introduction me = {
          .from = rank_, .to = peer, .channel = static_cast<int32_t>(channel), .size = size()};
      const std::string claim = me.bytes() + cluster::random_bytes(nonce_bytes);
      cluster::send_all(connection, where, claim + proof_of("from", key, theirs, claim), deadline);
      if (!cluster::equal_in_constant_time(receive_proof(connection, where, deadline),
                                           proof_of("to", key, theirs, claim))) {
        throw DistributedError("{}: who listens there does not know the job's secret", where.text());
      }
      socket(peer, channel) = std::move(connection);
    } catch (const DistributedError& error) {
      throw DistributedError("no connection to rank {}: {}", peer, error.what());
    }
  }
}

void PeerSockets::accept_from_higher_ranks(const Fd& listener, const std::string& key,
                                           Clock::time_point deadline) {
  std::list<Stranger> strangers;
  cluster::RefusalLog refusals("ranks");
  int missing = 2 * (size() - 1 - rank_);

  // Takes what has arrived from a stranger. Returns whether the connection is settled: one of the group's, or dropped.
  const auto settle = [&](Stranger& stranger) {
    std::array<char, claim_bytes> buffer;
    const ssize_t received =
        ::recv(stranger.socket.get(), buffer.data(), claim_bytes - stranger.claim.size(), MSG_DONTWAIT);
    if (received < 0 && cluster::would_block(errno)) return false;
    if (received <= 0) {
      refusals.add(stranger.peer, "it closed the connection before it proved anything");
      return true;
    }
    stranger.claim.append(buffer.data(), static_cast<size_t>(received));
    if (stranger.claim.size() < claim_bytes) return false;
    const std::string_view claim(stranger.claim.data(), claim_bytes - proof_bytes);
    if (!cluster::equal_in_constant_time(std::string_view(stranger.claim).substr(claim.size()),
                                         proof_of("from", key, stranger.nonce, claim))) {
      refusals.add(stranger.peer, "it does not know the secret of the job, or is of another group");
      return true;
    }
    Introduction they;
    std::memcpy(&they, claim.data(), sizeof they);
    const Introduction expected = {.from = std::clamp(they.from, rank_ + 1, size() - 1),
                                   .to = rank_,
                                   .channel = they.channel == 0 ? 0 : 1,
                                   .size = size()};
    const auto channel = static_cast<Channel>(expected.channel);
    if (they != expected || fd(expected.from, channel) >= 0) {
      refusals.add(stranger.peer, "it introduces itself as another rank than any that is missing");
      return true;
    }
    cluster::send_all(stranger.socket, {"rank " + std::to_string(they.from), 0},
                      proof_of("to", key, stranger.nonce, claim), deadline);
    socket(they.from, channel) = std::move(stranger.socket);
    --missing;
    return true;
  };

  while (missing > 0) {
    std::vector<pollfd> watched = {{listener.get(), POLLIN, 0}};
    for (const Stranger& stranger : strangers) watched.push_back({stranger.socket.get(), POLLIN, 0});
    const Clock::time_point soon = std::min(deadline, Clock::now() + std::chrono::seconds(1));
    if (::poll(watched.data(), watched.size(), cluster::poll_timeout(soon)) < 0 && errno != EINTR)
      throw DistributedError("cannot wait for connections: {}", std::strerror(errno));
    size_t index = 1;
    for (auto stranger = strangers.begin(); stranger != strangers.end(); ++index) {
      const bool late = Clock::now() >= stranger->deadline;
      if (late) refusals.add(stranger->peer, "it has not proved anything in time");
      const bool settled = late || (watched[index].revents != 0 && settle(*stranger));
      stranger = settled ? strangers.erase(stranger) : std::next(stranger);
    }
    if (watched[0].revents != 0) {
      Fd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (accepted) {
        cluster::set_no_delay(accepted);
        std::string peer = cluster::peer_text(accepted), nonce = cluster::random_bytes(nonce_bytes);
        if (strangers.size() >= static_cast<size_t>(missing) + spare) strangers.pop_front();
        if (::send(accepted.get(), nonce.data(), nonce.size(), MSG_NOSIGNAL) == std::ssize(nonce))
          strangers.push_back(
              {std::move(accepted), std::move(peer), std::move(nonce), Clock::now() + patience});
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        throw DistributedError("cannot accept a connection of another rank: {} (ulimit -n)",
                               std::strerror(errno));
      }
    }
    if (missing > 0 && Clock::now() >= deadline) {
      std::vector<int> absent;
      for (int peer = rank_ + 1; peer < size(); ++peer)
        if (fd(peer, Channel::messages) < 0) absent.push_back(peer);
      throw DistributedError("rank{} {} did not connect to this rank in time", absent.size() == 1 ? "" : "s",
                             fmt::join(absent, ", "));
    }
  }
}

}  // namespace stretto
