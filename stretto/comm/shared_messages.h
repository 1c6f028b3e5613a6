#pragma once

#include <array>
#include <deque>
#include <map>
#include <utility>

#include "stretto/comm/host_team.h"

namespace stretto::comm {

// Messages between ranks of one host; a posted message outlives its sender's group. Messages from one rank to
// another with one tag are received in the order in which they were sent, independently of other tags.
class SharedMessages {
 public:
  explicit SharedMessages(HostTeam& team) : team_(team) {}

  // Sends `tensor`, which must not change until sent() is true for the returned number: it is copied into
  // shared memory once few enough messages are pending. Throws IoError if there is no memory.
  uint64_t send(int peer, int tag, const Tensor& tensor);
  bool sent(uint64_t number);

  // Posts messages that wait for room, in order; returns whether any was posted.
  bool flush();

  // The number of the next message from `peer` under `tag`.
  uint64_t next_number(int peer, int tag) { return received_[{peer, tag}]++; }

  // Copies the message of that number into `tensor`; returns false if it has not arrived yet. Throws
  // DistributedError if its size or dtype differ from the tensor's.
  bool take(int peer, int tag, uint64_t number, const Tensor& tensor);

 private:
  struct Outgoing {
    int peer, tag;
    uint64_t number;  // among those to `peer` under `tag`
    Tensor tensor;
  };
  struct Extent {  // of a posted message in this rank's segment
    size_t offset = 0, bytes = 0;
  };
  bool post(const Outgoing& outgoing);

  HostTeam& team_;
  std::map<std::pair<int, int>, uint64_t> sent_, received_;
  std::deque<Outgoing> waiting_;
  std::array<Extent, SharedControl::max_messages> extents_{};
  uint64_t posted_ = 0;  // of all that were ever sent
};

}  // namespace stretto::comm
