#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stretto/launch/diagnosis/flight_record.h"

namespace stretto::launch {

// One sentence per group whose members made different calls, on the first difference: "rank 1 called
// all_gather [4] float32 #17, rank 0 called all_reduce [8] float32 #17, in group world", or the ranks that
// have not made the call. Oldest first.
std::vector<std::string> differences(const FlightRecord& record);

// Names the rank that blocks the others, if a rank has waited for a collective, or has been stopped by a
// signal, for more than `limit` seconds; nullopt if no rank hangs. A rank that computes is at fault only if
// another has waited for it that long. A rank without a record is considered only if the program is known to
// keep one (`own_program`, or another rank has one): it is at fault if it has been stopped for that long, or
// has not joined after that long and at least a minute. The same rule applies to any rank whose process has
// not started its program.
std::optional<std::string> diagnose_hang(const FlightRecord& record, double limit, bool own_program = false);

// "stopped by a signal (state T)", for the state of a process as in proc(5).
std::string state_text(const std::string& state);

// The calls in which ranks wait, one clause per call: "ranks 0, 1 wait in all_reduce [1024] float32 #17 of
// group world".
std::vector<std::string> waits(const FlightRecord& record);

// Work that rank 0 has done for more than `limit` seconds while others wait for it, which is no hang: "rank 0
// has been tokenising for 312.0 s; other ranks may wait for it".
std::optional<std::string> long_work(const FlightRecord& record, double limit);

// The whole record as text, with the last `calls` collectives of each rank.
std::string report(const FlightRecord& record, size_t calls);

}  // namespace stretto::launch
