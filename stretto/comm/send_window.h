#pragma once

#include <cstdint>
#include <deque>
#include <map>

namespace stretto::comm {

// Flow control of the messages from one rank to another: which messages the sender may send now. The receiver
// announces its receives to the sender, which matches the n-th receive of a tag with the n-th message of that
// tag. A message that has been asked for may be sent at once. Others may be sent ahead while they cost at
// most `limit` together, and wait in the receiver's memory.
//
// A receiver that stopped reading above a limit could deadlock: the message that it waits for, or an
// announcement, may be queued behind messages that it has not asked for yet. With announcements
//  - both sides always read, so everything that was sent arrives, even while both send;
//  - a message that is asked for is never delayed, and overtakes delayed ones.
// A send and its receive therefore complete once both are called, regardless of other pending messages. Only
// a program in which two ranks each wait for a send before they call the receive that the other one needs
// depends on the limit, as with MPI_Send.
class SendWindow {
 public:
  // Bytes: about what the kernel buffers for a connection.
  static constexpr uint64_t limit = uint64_t{4} << 20;

  // The cost of an empty message, which takes memory while it waits, too.
  static constexpr uint64_t cost_of_none = 512;
  static constexpr uint64_t cost(uint64_t bytes) { return bytes + cost_of_none; }
  // Whether a message of `bytes` may wait next to others that cost `used`. `bytes` may be any number that a
  // peer has sent.
  static constexpr bool fits(uint64_t used, uint64_t bytes) {
    return bytes <= limit && used + cost(bytes) <= limit;
  }

  // A blocked receive is announced at once. Others are announced in batches of this cost, so that the sender
  // is not woken for each.
  static constexpr uint64_t batch = limit / 4;
  static constexpr uint64_t most_receives = limit / cost_of_none;  // in one announcement

  // Whether the next message of the tag may be sent now.
  bool allows(int tag, uint64_t bytes) const;
  // Counts a message as sent. REQUIRES: allows(tag, bytes).
  void add(int tag, uint64_t bytes);
  // Counts `receives` that the receiver has announced.
  void asked(int tag, uint64_t receives);

 private:
  struct Tag {
    uint64_t asked = 0;               // receives without a message
    std::deque<uint64_t> ahead = {};  // costs of messages without a receive; there are not both
  };

  std::map<int, Tag> tags_;  // tags with pending receives or messages
  uint64_t ahead_ = 0;       // the sum of all costs
};

}  // namespace stretto::comm
