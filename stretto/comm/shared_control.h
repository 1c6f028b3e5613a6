#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "stretto/comm/collective_call.h"

namespace stretto {

// What a rank shows the other ranks of its host, at the front of its segment. Only the rank itself writes, except for
// `sleepers` and the state of messages that are taken. Readers trust no number in it: they check each offset and size
// against the segment before use, and a rank keeps what it needs back of its own in private memory.

// A collective that the rank has entered, and where its data are.
struct SharedEntry {
  CollectiveCall call;
  int64_t offset;       // in the rank's segment; negative: in its staging slots,
  uint64_t first_slot;  // of which this one, modulo their number, holds the first piece
};

// A message from one rank to another, copied into the sender's segment. Sender: empty -> posted; receiver: -> taken;
// sender: -> empty.
struct SharedMessage {
  enum class State : uint32_t { empty, posted, taken };

  std::atomic<State> state;
  int32_t to;  // position in the team
  int32_t tag;
  int32_t dtype;
  uint64_t number;  // among this sender's messages with this receiver and tag
  uint64_t offset;
  uint64_t bytes;
};

// unwound: an exception destroyed the rank's group, so its process most likely ends with an error.
enum class Membership : uint32_t { member, left, unwound, failed };

// A collective's data are cut into pieces, which are numbered throughout a group's life. Collectives are entered, and
// pieces made ready and done, in their order.
struct SharedControl {
  static constexpr size_t max_entries = 64;   // collectives entered and not yet complete
  static constexpr size_t max_messages = 64;  // posted and not yet taken

  std::atomic<uint64_t> token;  // distinguishes this segment from any other

  alignas(64) std::atomic<uint64_t> ready;  // pieces whose data the other ranks may read
  std::atomic<uint64_t> done;    // pieces that the rank neither reads nor writes any more, here or elsewhere
  std::atomic<uint32_t> events;  // counts changes of the two above and of membership
  std::atomic<Membership> membership;
  alignas(64) std::atomic<uint32_t> sleepers;  // other ranks that sleep until `events` changes
  char failure[448];                           // the reason where membership is failed; written first
  alignas(64) std::array<SharedEntry, max_entries> entries;  // the n-th collective at n % max_entries
  alignas(64) std::array<SharedMessage, max_messages> messages;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

// To be called after a change that other ranks may wait for: counts it and wakes those that sleep.
void announce(SharedControl& mine);

// Sleeps until `theirs` announces a change after `seen` (its events) was read, or until `timeout`. May return early.
// REQUIRES: sleepers was incremented before `seen` was read.
void sleep_until_announced(SharedControl& theirs, uint32_t seen, std::chrono::milliseconds timeout);

}  // namespace stretto
