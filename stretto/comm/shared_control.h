#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "stretto/comm/collective_call.h"

namespace stretto::comm {

// The control block of a rank, at the front of its segment, which the other ranks of its host read. Only the
// rank itself writes, except for `sleepers` and the state of messages that are taken. Readers trust no number
// in it: they check each offset and size against the segment before use, and a rank keeps the state that it
// depends on in private memory.

// A collective that the rank has entered, and the location of its data.
struct SharedEntry {
  CollectiveCall call;
  int64_t offset;       // in the rank's segment; negative: the data are in its staging slots,
  uint64_t first_slot;  // of which this one, modulo the number of slots, holds the first piece
};

// The last collective that the rank has called whose data do not pass through shared memory.
struct NetworkCall {
  std::atomic<uint64_t> calls;  // the rank's collectives up to this one; 0: there was none; written last
  CollectiveCall call;
};

// A message from one rank to another, copied into the sender's segment. Sender: empty -> posted; receiver: ->
// taken; sender: -> empty.
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

// The data of collectives are cut into pieces, which are numbered consecutively over a group's lifetime.
// Collectives are entered, and pieces become ready and done, in order.
struct SharedControl {
  static constexpr size_t max_entries = 64;   // collectives entered and not yet complete
  static constexpr size_t max_messages = 64;  // posted and not yet taken

  std::atomic<uint64_t> token;  // distinguishes this segment from any other

  alignas(64) std::atomic<uint64_t> ready;  // pieces whose data the other ranks may read
  std::atomic<uint64_t> done;    // pieces that the rank neither reads nor writes any more, here or elsewhere
  std::atomic<uint32_t> events;  // counts changes of the two above and of membership
  std::atomic<Membership> membership;
  alignas(64) std::atomic<uint32_t> sleepers;  // other ranks that sleep until `events` changes
  char failure[448];                           // the reason if membership is `failed`; written before it
  alignas(64) NetworkCall network;             // where the group has several hosts
  alignas(64) std::array<SharedEntry, max_entries> entries;  // the n-th collective at n % max_entries
  alignas(64) std::array<SharedMessage, max_messages> messages;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

// Counts a change that other ranks may wait for and wakes sleeping ranks. Call it after the change.
void announce(SharedControl& own);

// Sleeps until a peer announces a change after `seen` (its events) was read, or until `timeout`. May return
// early. REQUIRES: sleepers was incremented before `seen` was read.
void sleep_until_announced(SharedControl& peer, uint32_t seen, std::chrono::milliseconds timeout);

}  // namespace stretto::comm
