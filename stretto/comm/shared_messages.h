#pragma once

#include <map>
#include <utility>

#include "stretto/comm/host_team.h"

namespace stretto {

// Messages between two ranks of one host, which outlive their sender. The n-th that a rank posts to another under a tag is the n-th that this one
// takes from it under that tag, whatever goes on under other tags.
class SharedMessages {
 public:
  explicit SharedMessages(HostTeam& team) : team_(team) {}

  // The number of the next message to or from `place` under `tag`.
  uint64_t number_sent(int place, int tag) { return sent_[{place, tag}]++; }
  uint64_t number_received(int place, int tag) { return received_[{place, tag}]++; }

  // Copies `tensor` to where `place` can read it; false while too many messages have not been taken. Throws IoError when
  // there is no memory.
  bool post(int place, int tag, uint64_t number, const Tensor& tensor);

  // Copies the message of that number into `tensor`; false when it is not there yet. Throws DistributedError where it is of
  // another size or type.
  bool take(int place, int tag, uint64_t number, const Tensor& tensor);

 private:
  HostTeam& team_;
  std::map<std::pair<int, int>, uint64_t> sent_, received_;
};

}  // namespace stretto
