#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stretto/launch/diagnosis/flight_record.h"

namespace stretto::launch {

// For each group of ranks whose members have not made the same calls, a sentence on the first that differs:
// "rank 1 called all_gather [4] float32 #17, rank 0 called all_reduce [8] float32 #17, in group world", or
// which ranks have not made it. In the order of time.
std::vector<std::string> differences(const FlightRecord& record);

// Who holds up the others, where a rank has waited longer than `limit` seconds for a collective or, stopped, has not moved
// for that long; nothing where no rank hangs. A rank that computes is at fault only when another has waited for it that
// long. Ranks without a record are judged where the program is known to keep one: `own_program`, or another rank does.
// They are at fault when they have been stopped for that long, or have not joined a minute after that.
std::optional<std::string> diagnose_hang(const FlightRecord& record, double limit, bool own_program = false);

// What rank 0 does for longer than `limit` seconds while others wait for it, which is not hanging: "rank 0 has been tokenising
// for 312.0 s; other ranks may wait for it".
std::optional<std::string> long_work(const FlightRecord& record, double limit);

// All of the record for people, with the last `calls` collectives of each rank.
std::string report(const FlightRecord& record, size_t calls);

}  // namespace stretto::launch
