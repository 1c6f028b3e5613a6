#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stretto/launch/flight_record.h"

namespace stretto::launch {

// For each group of ranks whose members have not made the same calls, a sentence on the first that differs:
// "rank 1 called all_gather [4] float32 #17, rank 0 called all_reduce [8] float32 #17, in group world", or
// which ranks have not made it. In the order of time.
std::vector<std::string> differences(const FlightRecord& record);

// Who holds up the others, where a rank has waited longer than `limit` seconds for a collective or, stopped,
// has not moved for that long; nothing where all is well. Ranks that compute are never at fault by
// themselves: only a rank that waits for them tells that they take too long. Ranks whose program keeps no
// record count for nothing.
std::optional<std::string> diagnose_hang(const FlightRecord& record, double limit);

// All of the record for people, with the last `calls` collectives of each rank.
std::string report(const FlightRecord& record, size_t calls);

}  // namespace stretto::launch
