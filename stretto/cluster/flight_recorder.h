#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stretto/base/fd.h"

namespace stretto::cluster {

// A collective, as a rank records it at its start. Texts are truncated to the size of their fields: operation
// 15, shape 47, dtype 15, group 31 bytes.
struct Collective {
  uint64_t sequence = 0;  // its index among the calls of its group, from 0
  uint64_t group_id = 0;  // Group::id(); 0: a message between two ranks
  int group_rank = 0;
  int group_size = 1;
  std::string operation = {};  // "all_reduce"
  std::string shape = {};      // "[1024]"
  std::string dtype = {};      // "float32"
  std::string group = {};      // "world"
  int64_t bytes = 0;
};

// A collective in the record. Times are nanoseconds of std::chrono::steady_clock, which all processes of a
// host share; 0: not yet.
struct RecordedCollective {
  Collective call;
  int64_t started = 0;
  int64_t waiting_since = 0;  // when the rank began to wait for it
  int64_t ended = 0;
  bool failed = false;
};

// A rank's part of the record.
struct RankFlight {
  int pid = 0;                                       // 0: its program writes no record
  int64_t progress = 0;                              // when it last started or ended a call
  uint64_t calls = 0;                                // number of collectives started
  std::vector<RecordedCollective> collectives = {};  // the most recent ones, oldest first
};

inline constexpr size_t flight_record_length = 200;  // collectives kept per rank

// The current time of the record's clock, in nanoseconds.
int64_t record_time();

// The launcher's side: memory that it shares with its ranks, so that it sees the progress of each even if
// that rank is dead or stopped. It is a memfd; ranks open it by `path()`, a file of this process in /proc.
// Its contents are not trusted: reads are bounded, but values may be wrong.
class FlightBoard {
 public:
  // Throws IoError.
  explicit FlightBoard(int ranks);
  FlightBoard(const FlightBoard&) = delete;
  FlightBoard& operator=(const FlightBoard&) = delete;
  ~FlightBoard();

  std::string path() const;
  int ranks() const { return ranks_; }
  int pid(int rank) const;  // RankFlight::pid; as cheap as progress()
  int64_t progress(int rank) const;
  bool first_step_taken() const;    // see note_first_step()
  bool has_nothing_to_do() const;   // see note_nothing_to_do()
  RankFlight read(int rank) const;  // safe while the rank writes

 private:
  int ranks_;
  Fd fd_;
  void* memory_ = nullptr;
};

// Notifies the launcher that the run has taken its first step, from which on log files are written. Called by
// the first rank of each host. Does nothing without a launcher, that is, for an empty `path`.
void note_first_step(const std::string& path);

// Likewise, that the run had ended before, so that nothing is written to its log files.
void note_nothing_to_do(const std::string& path);

// A rank's side: one page of the board. Thread-safe and lock-free; a call costs well under a microsecond.
class FlightRecorder : public std::enable_shared_from_this<FlightRecorder> {
 public:
  // Throws IoError if the file is not a launcher's record or has no page for this local rank.
  static std::shared_ptr<FlightRecorder> open(const std::string& path, int local_rank);
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;
  ~FlightRecorder();

  // Records one collective from its start to its end. A default-constructed Call records nothing.
  class Call {
   public:
    Call() = default;
    void waiting() const;
    void ended(bool good) const;

   private:
    friend class FlightRecorder;
    Call(std::shared_ptr<FlightRecorder> recorder, uint64_t ticket)
        : recorder_(std::move(recorder)), ticket_(ticket) {}
    std::shared_ptr<FlightRecorder> recorder_;
    uint64_t ticket_ = 0;
  };
  Call start(const Collective& collective);

  // Records progress that is not a collective.
  void beat();

 private:
  FlightRecorder() = default;

  void* memory_ = nullptr;
  size_t size_ = 0;
  int rank_ = 0;
};

}  // namespace stretto::cluster
