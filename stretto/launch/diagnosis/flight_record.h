#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stretto/cluster/flight_recorder.h"

namespace stretto::launch {

// The record of a job when a rank fails: the failed rank, and the last collectives of each rank. Times are in
// seconds before the record was taken.
struct FlightCall {
  uint64_t sequence = 0;
  std::string group_id = {};  // "0": a message between two ranks
  std::string group = {};
  int group_rank = 0;
  int group_size = 1;
  std::string operation = {}, shape = {}, dtype = {};
  int64_t bytes = 0;
  double started_ago = 0;
  std::optional<double> waiting_for = {};  // how long the rank has been blocked in it
  std::optional<double> ended_ago = {};
  bool failed = false;

  std::string call() const;  // "all_reduce [1024] float32 #17"
  bool waits() const { return waiting_for && !ended_ago; }
};

struct RankRecord {
  int rank = 0;
  std::string host = {};  // empty in a job on one host
  int pid = 0;
  bool recorded = false;     // whether its program keeps a record; if not, the members below are unset
  std::string state = {};    // state of the process as in proc(5) ("R", "S", "T"); empty: it had ended
  std::string ending = {};   // how the process ended, "was killed by SIGKILL (Killed)"
  std::string program = {};  // the program that a process between fork and exec is to run; empty after exec
  // Seconds since the last start or end of a call; without a record, since the rank was started or stopped.
  double progress_ago = 0;
  uint64_t calls = 0;                       // total number of collectives
  std::vector<FlightCall> last_calls = {};  // oldest first
};

struct FlightRecord {
  std::string host = {};
  std::string time = {};  // UTC, "2026-01-31 12:00:00"
  std::string reason = {};
  int restart_count = 0;
  int max_restarts = 0;
  std::vector<RankRecord> ranks = {};
};

// Fills in the part of `rank` that page `page` of `board` records, the page of its local rank.
void read_board(const cluster::FlightBoard& board, int page, RankRecord& rank);

std::string to_json(const FlightRecord& record);

// Merges the records of several hosts, ordered by rank; host, time and reason are those of the first.
// REQUIRES: records is not empty.
FlightRecord merge(std::vector<FlightRecord> records);

// Parses the output of to_json. `where` begins messages. Throws DataError if it is malformed.
FlightRecord parse_flight_record(const std::string& text, const std::string& where);

// Reads a file with the output of to_json. Throws IoError if there is no such file, DataError if its content
// is malformed.
FlightRecord read_flight_record(const std::filesystem::path& path);

}  // namespace stretto::launch
