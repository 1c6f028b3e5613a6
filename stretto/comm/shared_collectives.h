#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "stretto/comm/host_team.h"
#include "stretto/comm/shared_task.h"
#include "stretto/comm/tcp.h"

namespace stretto::comm {

// The back end that reduces slices between hosts, formed with one rank of each other host. There are as many
// rails as the host with the fewest ranks has ranks; ranks with a higher position sum nothing.
struct HostRail {
  c10::intrusive_ptr<Tcp> backend = nullptr;  // none on a single host, and for higher positions
  int rails = 0;                              // 0: a single host
};

// Collectives of the ranks of one host through shared memory. They have no thread: data are moved whenever a
// rank makes a call. The other ranks read and write tensors inside a rank's segment in place; other tensors
// pass through staging slots at the front of the segment.
//
// An all-reduce by three ranks:                        rank 0        rank 1        rank 2
//   each shows its data                              | a0 a1 a2 |  | b0 b1 b2 |  | c0 c1 c2 |
//   each sums one slice, in the order of the ranks,  | s0       |  |    s1    |  |       s2 |
//   and writes it into all: the same bits everywhere   | s0 s1 s2 |  | s0 s1 s2 |  | s0 s1 s2 |
//
// Over several hosts, slices are also summed between hosts before they are written; only all_reduce is
// available then.
class SharedCollectives {
 public:
  // Bytes at the front of a segment.
  static constexpr size_t slots = 8, slot_bytes = SharedTask::max_piece_bytes;
  static constexpr size_t slots_begin = (sizeof(SharedControl) + 4095) / 4096 * 4096;
  static constexpr size_t room = slots_begin + slots * slot_bytes;

  explicit SharedCollectives(std::unique_ptr<HostTeam> team, HostRail rail = {});
  // Waits up to a second for calls whose wait() was never called.
  ~SharedCollectives();
  SharedCollectives(const SharedCollectives&) = delete;
  SharedCollectives& operator=(const SharedCollectives&) = delete;

  static constexpr int other_host = -2;

  // Begins a collective, moves the data that can be moved now, and returns a number for wait(). REQUIRES: for
  // reductions, kernels::can_reduce. Throws DistributedError when the group has failed.
  uint64_t start(SharedTask::Request request);

  // Waits for the collective of that number. Throws DistributedError when a rank has ended, left or called
  // something else, or when the deadline has passed; after that every call throws.
  void wait(uint64_t number, std::chrono::milliseconds deadline);
  void wait_for_all(std::chrono::milliseconds deadline) { wait(queued_, deadline); }
  bool complete(uint64_t number);

  // Waits for any other event: makes progress on collectives that have begun until `finished`, which is
  // called repeatedly, returns true. `awaited`: the position of the rank that it depends on, -1 for none,
  // `other_host`.
  void drive(const std::function<bool()>& finished, const std::function<int()>& awaited,
             std::chrono::milliseconds deadline);

  // Publishes a collective that this rank is about to call elsewhere, for the ranks of its host that wait
  // here for its part in another one.
  void announce_network_call(const NumberedCall& call);

  // Sets further work to do whenever this rank waits; `move` returns whether anything moved.
  void set_idle_work(std::function<bool()> move) { idle_work_ = std::move(move); }

  // Aborts the group for all ranks: all further calls throw.
  [[noreturn]] void fail(const std::string& why);

  HostTeam& team() { return *team_; }

 private:
  using Queue = std::list<SharedTask>;
  struct InFlight {  // a slice that is being reduced between hosts
    Tensor sum = {};
    std::vector<void*> to = {};
    c10::intrusive_ptr<c10d::Work> work = {};
  };
  using Counter = std::atomic<uint64_t> SharedControl::*;

  bool advance();
  bool make_ready();
  bool work();
  bool finish_reduced();
  void finish_next();
  void finish_piece();
  bool complete_pieces();
  void enter(SharedTask& task);
  bool stage(const SharedTask& task);
  void read_entries(SharedTask& task);
  bool lies_in_segment(const SharedTask& task, int position, int64_t offset) const;
  void reduce_slice(const SharedTask& task, uint64_t piece);
  void copy_blocks(const SharedTask& task, uint64_t piece) const;
  std::byte* shown_by(const SharedTask& task, int position, uint64_t piece, int64_t block) const;
  std::byte* slot(int position, uint64_t number) const;
  bool all_past(uint64_t piece, Counter counter, std::vector<uint64_t>& known) const;
  int blocking_peer();
  std::string network_call_of(int position) const;
  void sleep(const std::function<bool()>& finished, const std::function<int()>& awaited);

  std::unique_ptr<HostTeam> team_;
  SharedControl& own_control_;
  HostRail rail_;
  std::string failure_;
  std::function<bool()> idle_work_;
  bool closing_ = false;

  Queue running_;  // calls that are not complete
  Queue::iterator to_make_ready_, to_work_on_;
  // Pieces are numbered throughout: complete_ <= done_ <= begun_ <= ready_ <= queued_.
  uint64_t queued_ = 0, ready_ = 0, begun_ = 0, done_ = 0, complete_ = 0;
  std::deque<InFlight> in_flight_;  // begun and not done
  uint64_t calls_entered_ = 0, calls_complete_ = 0;
  uint64_t slots_used_ = 0;
  std::array<uint64_t, slots> slot_free_{};         // the number of complete pieces that frees the slot
  std::vector<uint64_t> known_ready_, known_done_;  // the others' counters as last read
};

}  // namespace stretto::comm
