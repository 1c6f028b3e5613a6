#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "stretto/cluster/socket.h"
#include "stretto/comm/collective_call.h"
#include "stretto/comm/group.h"

namespace stretto::comm {

// The first message on a new connection: which ranks and which channel it connects.
struct PeerIntroduction {
  std::array<char, 8> magic = {'s', 't', 'r', 'e', 't', 't', 'o', '3'};
  int32_t from = 0, to = 0;
  int32_t channel = 0;
  int32_t size = 0;  // of the group

  std::string bytes() const { return {reinterpret_cast<const char*>(this), sizeof *this}; }
};

// TCP connections of a rank to every other rank of a group: one for collectives and one for messages, so that
// neither waits for the other. No socket listens after construction.
//
// Both sides of a connection prove that they know the group's key, with HMAC-SHA256 of nonces of both, before
// either accepts anything else from the other. The key is derived from the job's secret and from random bytes
// in the group's store. Traffic is encrypted if GroupOptions::encrypt is set.
class PeerSockets {
 public:
  enum class Channel : int32_t { collectives, messages };

  // Connects to the other ranks, whose addresses it finds in the store. Collective. Throws DistributedError,
  // naming the ranks that did not connect before options.deadline. `members`: the rank in the group of each,
  // by default all ranks of the group.
  PeerSockets(c10d::Store& store, int rank, int size, const GroupOptions& options,
              std::vector<int> members = {});

  ~PeerSockets();
  PeerSockets(const PeerSockets&) = delete;
  PeerSockets& operator=(const PeerSockets&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(peers_.size()); }
  // The number in the job of a rank, for messages.
  int shown_rank(int rank) const { return world_rank(world_ranks_, world_rank(members_, rank)); }
  const std::vector<int>& world_ranks() const { return world_ranks_; }  // GroupOptions::world_ranks

  // Non-blocking. REQUIRES: peer != rank().
  int fd(int peer, Channel channel) const { return socket(peer, channel).get(); }

  // Ends a connection for both sides.
  void close(int peer, Channel channel) { socket(peer, channel).reset(); }

 private:
  struct Peer {
    Fd collectives, messages;
  };
  const Fd& socket(int peer, Channel channel) const {
    const Peer& one = peers_.at(static_cast<size_t>(peer));
    return channel == Channel::collectives ? one.collectives : one.messages;
  }
  Fd& socket(int peer, Channel channel) {
    return const_cast<Fd&>(static_cast<const PeerSockets&>(*this).socket(peer, channel));
  }
  void connect_to(int peer, const cluster::Endpoint& where, const std::string& key,
                  const GroupOptions& options, cluster::Clock::time_point deadline);
  void accept_from_higher_ranks(const Fd& listener, const std::string& key, const GroupOptions& options,
                                cluster::Clock::time_point deadline);

  bool is_missing(const PeerIntroduction& they) const;

  int rank_;
  std::vector<int> members_, world_ranks_;
  std::vector<Peer> peers_;
};

}  // namespace stretto::comm
