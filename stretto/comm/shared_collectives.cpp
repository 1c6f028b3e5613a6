#include "stretto/comm/shared_collectives.h"

#include <algorithm>
#include <cstring>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/pause_watch.h"
#include "stretto/comm/backends.h"
#include "stretto/kernels/reduce.h"

namespace stretto::comm {
namespace {

using Clock = std::chrono::steady_clock;

// Waking up takes about 50 us, so after waiting for longer a rank sleeps. Where there are more ranks than
// cores, spinning would keep the awaited rank from running.
constexpr auto spin_time = std::chrono::microseconds(100), crowded_spin_time = std::chrono::microseconds(2);

// How often a sleeping rank checks that the awaited one is alive.
constexpr std::chrono::milliseconds nap(100);

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

SharedCollectives::SharedCollectives(std::unique_ptr<HostTeam> team, HostRail rail)
    : team_(std::move(team)),
      own_control_(team_->control(team_->me())),
      rail_(std::move(rail)),
      to_make_ready_(running_.end()),
      to_work_on_(running_.end()),
      known_ready_(static_cast<size_t>(team_->size())),
      known_done_(static_cast<size_t>(team_->size())) {}

SharedCollectives::~SharedCollectives() {
  closing_ = true;
  try {
    // The others may still depend on calls that this rank has begun. A correct program leaves none, so the
    // wait is short.
    const auto end = Clock::now() + std::chrono::seconds(1);
    if (failure_.empty()) {
      drive([&] { return complete_ == queued_ || Clock::now() > end; }, [this] { return blocking_peer(); },
            std::chrono::hours(1));
    }
  } catch (const DistributedError&) {
  }
}

uint64_t SharedCollectives::start(SharedTask::Request request) {
  if (!failure_.empty()) throw DistributedError("{}", failure_);
  const auto added = running_.emplace(running_.end(), std::move(request), team_->size(), queued_);
  queued_ = added->end();
  if (to_make_ready_ == running_.end()) to_make_ready_ = added;
  if (to_work_on_ == running_.end()) to_work_on_ = added;
  advance();
  return queued_;
}

void SharedCollectives::announce_network_call(const NumberedCall& call) {
  own_control_.network.call = call.call;
  own_control_.network.calls.store(call.number + 1, std::memory_order_release);
  announce(own_control_);
}

bool SharedCollectives::complete(uint64_t number) {
  if (complete_ < number && failure_.empty()) advance();
  return complete_ >= number;
}

void SharedCollectives::wait(uint64_t number, std::chrono::milliseconds deadline) {
  drive([&] { return complete_ >= number; }, [this] { return blocking_peer(); }, deadline);
}

void SharedCollectives::drive(const std::function<bool()>& finished, const std::function<int()>& awaited,
                              std::chrono::milliseconds deadline) {
  if (finished()) return;
  if (!failure_.empty()) throw DistributedError("{}", failure_);
  const auto spin = team_->crowded() ? crowded_spin_time : spin_time;
  auto begin = Clock::now();
  auto moved = begin;
  cluster::PauseWatch pauses;
  for (int idle = 0; !finished(); ++idle) {
    if (advance()) {
      idle = -1;
      continue;
    }
    if (idle % 64 != 63) {
      relax();
      continue;
    }
    const auto now = Clock::now();
    begin += pauses.look(now);
    if (idle == 63) moved = now;  // at most 63 iterations late
    if (now - moved < spin) continue;
    if (now - begin > deadline) {
      const int peer = awaited();
      fail(fmt::format("{} not made this call within {} (--collective-timeout)",
                       peer == other_host ? "a rank of another host has"
                                          : fmt::format("rank {} has", team_->peer(std::max(0, peer)).rank),
                       human_duration(std::chrono::duration<double>(deadline).count())));
    }
    sleep(finished, awaited);
  }
}

// Sleeps until the awaited rank announces something, or for a nap.
void SharedCollectives::sleep(const std::function<bool()>& finished, const std::function<int()>& awaited) {
  const int peer = awaited();
  if (peer == other_host) std::this_thread::sleep_for(std::chrono::microseconds(50));
  if (peer == -1 && !in_flight_.empty()) {
    // A destructor must not wait for other hosts without a limit.
    closing_ ? std::this_thread::sleep_for(std::chrono::milliseconds(1)) : finish_next();
  }
  if (peer < 0) return;
  const std::string absence = team_->absence(peer), other_call = network_call_of(peer);
  SharedControl& theirs = team_->control(peer);
  theirs.sleepers.fetch_add(1, std::memory_order_seq_cst);
  const uint32_t seen = theirs.events.load(std::memory_order_seq_cst);
  const bool blocked = !finished() && awaited() == peer;
  if (blocked && absence.empty()) sleep_until_announced(theirs, seen, nap);
  theirs.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  if (blocked && !absence.empty()) {
    if (!closing_) team_->await_end(peer);
    fail(absence);
  }
  if (blocked && !other_call.empty()) fail(other_call);
}

// Why the peer will not take part in this rank's oldest call: it has called another collective instead, by
// the network; "" if it has not. A peer calls the network after its part in all earlier calls, so what it has
// published before is visible: ask afterwards whether this rank still waits for it.
std::string SharedCollectives::network_call_of(int position) const {
  const NetworkCall& theirs = team_->control(position).network;
  const uint64_t calls = theirs.calls.load(std::memory_order_acquire);
  if (running_.empty() || calls <= running_.front().numbered_call().number) return "";
  return describe_difference(team_->peer(position).rank, {theirs.call, calls - 1},
                             team_->peer(team_->me()).rank, running_.front().numbered_call(),
                             team_->world_ranks());
}

// Moves everything that can be moved without waiting; returns whether there was anything.
bool SharedCollectives::advance() {
  const bool readied = make_ready(), worked = work(), finished = finish_reduced(),
             completed = complete_pieces();
  return (idle_work_ && idle_work_()) || readied || worked || finished || completed;
}

// Publishes this rank's data to the others, as far as there are free staging slots.
bool SharedCollectives::make_ready() {
  const uint64_t before = ready_;
  for (; to_make_ready_ != running_.end(); ++to_make_ready_) {
    SharedTask& task = *to_make_ready_;
    if (!task.entered) {
      if (calls_entered_ - calls_complete_ == SharedControl::max_entries) break;
      enter(task);
    }
    while (ready_ < task.end() && (!task.staged || stage(task))) {
      ready_ = task.staged ? ready_ + 1 : task.end();
      own_control_.ready.store(ready_, std::memory_order_release);
      announce(own_control_);
    }
    if (ready_ < task.end()) break;
  }
  return ready_ != before;
}

void SharedCollectives::enter(SharedTask& task) {
  task.entered = true;
  task.number = calls_entered_++;
  SharedEntry& entry = own_control_.entries[task.number % SharedControl::max_entries];
  entry = {.call = task.call(), .offset = -1, .first_slot = slots_used_};
  if (task.shown() == nullptr || task.call().count == 0) return;
  const auto offset = team_->segment()->offset_of(task.shown(), task.shown_bytes());
  task.staged = !offset;
  if (offset) entry.offset = static_cast<int64_t>(*offset);
}

// Copies the next piece into a slot; returns false if none is free.
bool SharedCollectives::stage(const SharedTask& task) {
  uint64_t& free_once = slot_free_[slots_used_ % slots];
  if (complete_ < free_once) return false;
  free_once = ready_ + 1;
  std::byte* to = slot(team_->me(), slots_used_++);
  for (int64_t block = 0; block < task.blocks(); ++block) {
    std::memcpy(to + task.slot_offset(block), task.shown() + task.offset(ready_, block), task.bytes(ready_));
  }
  return true;
}

// Does this rank's part of the pieces that all ranks have published.
bool SharedCollectives::work() {
  const uint64_t before = begun_;
  while (to_work_on_ != running_.end() && all_past(begun_, &SharedControl::ready, known_ready_)) {
    SharedTask& task = *to_work_on_;
    if (begun_ == task.first()) read_entries(task);
    if (task.elements(begun_) > 0 && task.taken(begun_, 0) != nullptr) {
      task.reduces() ? reduce_slice(task, begun_) : copy_blocks(task, begun_);
    }
    if (++begun_ == task.end()) ++to_work_on_;
    if (rail_.rails == 0) {
      finish_piece();
    } else if (in_flight_.size() < begun_ - done_) {
      in_flight_.emplace_back();  // no data, so nothing to wait for
    }
  }
  return begun_ != before;
}

void SharedCollectives::finish_piece() {
  own_control_.done.store(++done_, std::memory_order_release);
  announce(own_control_);
}

bool SharedCollectives::finish_reduced() {
  const uint64_t before = done_;
  while (!in_flight_.empty() && (!in_flight_.front().work || in_flight_.front().work->isCompleted())) {
    finish_next();
  }
  return done_ != before;
}

// Waits for the slice that was sent first, and writes it into all ranks' data.
void SharedCollectives::finish_next() {
  const InFlight slice = std::move(in_flight_.front());
  in_flight_.pop_front();
  try {
    if (slice.work) slice.work->wait();
  } catch (const std::exception& error) {
    fail(fmt::format("between hosts: {}", std::string_view(error.what()).substr(0, 300)));
  }
  if (slice.sum.defined() && slice.sum.numel() > 0) {  // a slice of a short piece may be empty
    for (void* to : slice.to) std::memcpy(to, slice.sum.const_data_ptr(), slice.sum.nbytes());
  }
  finish_piece();
}

void SharedCollectives::read_entries(SharedTask& task) {
  for (int position = 0; position < team_->size(); ++position) {
    task.entries.push_back(team_->control(position).entries[task.number % SharedControl::max_entries]);
    const SharedEntry& entry = task.entries.back();
    const CollectiveCall& theirs = entry.call;
    if (theirs == task.call() && lies_in_segment(task, position, entry.offset)) continue;
    if (theirs == task.call()) {
      fail(fmt::format("rank {} shows data outside of its memory (offset {}): its control block is damaged",
                       team_->peer(position).rank, entry.offset));
    }
    fail(fmt::format(
        "rank {} called {}, rank {} called {}: all ranks must make the same calls in the same order",
        team_->peer(position).rank, describe(theirs, team_->world_ranks()), team_->peer(team_->me()).rank,
        describe(task.call(), team_->world_ranks())));
  }
}

// Staged data need no check: slot numbers cannot lead out of the segment.
bool SharedCollectives::lies_in_segment(const SharedTask& task, int position, int64_t offset) const {
  if (offset < 0) return true;
  return static_cast<size_t>(offset) >= slots_begin && offset % task.element_bytes() == 0 &&
         team_->peer(position).holds(static_cast<uint64_t>(offset), task.shown_bytes());
}

// Reduce-scatter: reduces this rank's block into its result. All-reduce and reduce: reduces its slice of the
// piece into the data of all ranks or of the root.
void SharedCollectives::reduce_slice(const SharedTask& task, uint64_t piece) {
  const int64_t size = team_->size(), me = team_->me(), slices = rail_.rails > 0 ? rail_.rails : size;
  int64_t begin = 0, end = task.elements(piece);
  if (!task.block_each()) {
    const int64_t slice = task.whole_lines((end + slices - 1) / slices);
    begin = std::min(end, me * slice);
    end = std::min(end, begin + slice);
  }
  std::vector<const void*> in;
  std::vector<void*> out;
  for (int position = 0; position < size; ++position) {
    std::byte* data =
        shown_by(task, position, piece, task.block_each() ? me : 0) + begin * task.element_bytes();
    in.push_back(data);
    if (!task.block_each() && task.sums_at(position)) out.push_back(data);
  }
  if (task.block_each()) out.push_back(task.taken(piece, 0));
  const auto op = static_cast<ReduceOp>(task.call().reduce);
  const auto dtype = static_cast<at::ScalarType>(task.call().dtype);
  if (rail_.rails == 0) return kernels::reduce(op, dtype, in, out, end - begin);
  InFlight slice{.sum = at::empty({end - begin}, dtype), .to = std::move(out)};
  kernels::reduce(op, dtype, in, std::array{slice.sum.mutable_data_ptr()}, end - begin);
  if (end > begin) {
    rail_.backend->collectives().set_program_call(task.numbered_call());
    slice.work = all_reduce(*rail_.backend, slice.sum, op);
  }
  in_flight_.push_back(std::move(slice));
}

void SharedCollectives::copy_blocks(const SharedTask& task, uint64_t piece) const {
  for (int position = 0; position < team_->size(); ++position) {
    if (!task.is_shown_by(position)) continue;
    std::byte* to = task.taken(piece, task.from_root() ? 0 : position);
    const std::byte* from = shown_by(task, position, piece, task.block_each() ? team_->me() : 0);
    if (to != from) std::memcpy(to, from, task.bytes(piece));
  }
}

// Counts the pieces that all ranks are done with.
bool SharedCollectives::complete_pieces() {
  const uint64_t before = complete_;
  while (complete_ < done_ && all_past(complete_, &SharedControl::done, known_done_)) {
    const SharedTask& task = running_.front();
    if (task.staged && task.sums_in_place() && task.sums_at(team_->me())) {  // the sum is in the slot
      std::memcpy(task.taken(complete_, 0), shown_by(task, team_->me(), complete_, 0), task.bytes(complete_));
    }
    if (++complete_ < task.end()) continue;
    running_.pop_front();
    ++calls_complete_;
  }
  return complete_ != before;
}

std::byte* SharedCollectives::slot(int position, uint64_t number) const {
  return team_->peer(position).data + slots_begin + number % slots * slot_bytes;
}

std::byte* SharedCollectives::shown_by(const SharedTask& task, int position, uint64_t piece,
                                       int64_t block) const {
  const SharedEntry& entry = task.entries[static_cast<size_t>(position)];
  if (entry.offset >= 0) return team_->peer(position).data + entry.offset + task.offset(piece, block);
  return slot(position, entry.first_slot + (piece - task.first())) + task.slot_offset(block);
}

// Whether `counter` of every rank has passed `piece`; `known` saves reads, since counters only grow.
bool SharedCollectives::all_past(uint64_t piece, Counter counter, std::vector<uint64_t>& known) const {
  for (size_t position = 0; position < known.size(); ++position) {
    if (known[position] > piece) continue;
    known[position] = (team_->control(static_cast<int>(position)).*counter).load(std::memory_order_acquire);
    if (known[position] <= piece) return false;
  }
  return true;
}

// The position of the rank that the oldest piece waits for; -1: none on this host.
int SharedCollectives::blocking_peer() {
  const bool own_part_is_done = done_ > complete_;
  if (!own_part_is_done && begun_ > complete_) return -1;
  for (int position = 0; position < team_->size(); ++position) {
    const SharedControl& theirs = team_->control(position);
    if ((own_part_is_done ? theirs.done : theirs.ready).load(std::memory_order_acquire) <= complete_)
      return position;
  }
  return -1;
}

void SharedCollectives::fail(const std::string& why) {
  failure_ = why;
  team_->report_failure(why);
  throw DistributedError("{}", why);
}

}  // namespace stretto::comm
