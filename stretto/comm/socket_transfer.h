#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <c10/core/ScalarType.h>

#include "stretto/cluster/socket.h"
#include "stretto/comm/collective_call.h"
#include "stretto/kernels/reduce_op.h"

namespace stretto::comm {

// Parts of the data that a rank sends and receives in a collective. Received data are written to `data`, or
// reduced with its contents.
struct Outgoing {
  const std::byte* data;
  size_t bytes;
};
struct Incoming {
  std::byte* data;
  size_t bytes;
  bool reduce = false;
};

// A peer rank and the socket to it; fd -1: none.
struct Neighbour {
  int rank = -1;  // in the job, for messages
  int fd = -1;
};

// A stream of bytes to one rank, concurrent with a stream from a second rank, which may be the same. Most
// collectives are such streams around the ring of ranks, in which each rank passes on what it has received:
//
//   from -> [receive, reduce] -> to
//
// A part is sent while its beginning is still being received, so that all links of the ring work at the same
// time.
struct SocketTransfer {
  static constexpr size_t everything = std::numeric_limits<size_t>::max();

  Neighbour to = {}, from = {};
  std::vector<Outgoing> out = {};
  // The bytes of `out` that may be sent at once; each byte after them requires one that has been received.
  size_t lead = everything;
  std::vector<Incoming> in = {};

  // Both sides must agree on these: they are sent ahead of the bytes and compared.
  NumberedCall program = {};   // the collective that the program has called
  NumberedCall transfer = {};  // the part of it that moves these bytes, in these connections

  // For messages: this rank's number in the job, and GroupOptions::world_ranks of the group of `program`.
  int own_rank = 0;
  std::span<const int> world_ranks = {};
  // Called several times per second while nothing moves, unless empty; an exception ends the transfer.
  std::function<void()> look = {};
};

// Returns when everything is sent and received. Throws DistributedError if a rank closed its connection,
// called something else, or made no progress before `deadline`, and when `abort`, an eventfd(2), becomes
// readable.
void transfer(const SocketTransfer& streams, cluster::Clock::time_point deadline, int abort);

// The collective with which the next stream from a peer begins, once that has arrived; it stays unread.
// REQUIRES: the last stream from this peer was received entirely.
std::optional<NumberedCall> arriving_call(int fd);

}  // namespace stretto::comm
