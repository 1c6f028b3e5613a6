#pragma once

#include <array>
#include <deque>
#include <map>
#include <utility>

#include "stretto/comm/host_team.h"

namespace stretto {

// Messages between two ranks of one host; what was posted outlives its sender. The n-th that a rank sends to another under
// a tag is the n-th that this one takes from it under that tag, whatever goes on under other tags.
class SharedMessages {
 public:
  explicit SharedMessages(HostTeam& team) : team_(team) {}

  // Sends `tensor`, which stays as it is until sent() says so of the number that this returns: it is copied to where
  // `place` can read it, once not too many messages have been left untaken. Throws IoError when there is no memory.
  uint64_t send(int place, int tag, const Tensor& tensor);
  bool sent(uint64_t number);

  // Sends what waits for room, in its order; whether there was anything to do and room for it.
  bool flush();

  // The number of the next message from `place` under `tag`.
  uint64_t number_received(int place, int tag) { return received_[{place, tag}]++; }

  // Copies the message of that number into `tensor`; false when it is not there yet. Throws DistributedError where it is of
  // another size or type.
  bool take(int place, int tag, uint64_t number, const Tensor& tensor);

 private:
  struct Letter {
    int place, tag;
    uint64_t number;  // among those to `place` under `tag`
    Tensor tensor;
  };
  struct Extent {  // of a posted message in this rank's segment
    size_t offset = 0, bytes = 0;
  };
  bool post(const Letter& letter);

  HostTeam& team_;
  std::map<std::pair<int, int>, uint64_t> sent_, received_;
  std::deque<Letter> waiting_;
  std::array<Extent, SharedControl::max_messages> extents_{};
  uint64_t posted_ = 0;  // letters of all that were ever sent
};

}  // namespace stretto
