#pragma once

#include <cstdint>
#include <vector>

#include "stretto/programs/stretto/search_folder.h"
#include "stretto/programs/stretto/search_space.h"
#include "stretto/programs/stretto/search_trials.h"
#include "stretto/report/search_section.h"

namespace stretto::cli {

// All trials with their values and scores, the best first. Throws ConfigError, DataError and IoError for an
// unreadable folder.
report::SearchResults rank_trials(const SearchFolder& folder, const std::vector<SearchParameter>& parameters,
                                  uint64_t seed, const SearchMetric& metric);

// Prints the table of the trials, and writes it to search.json and report.html. Throws ConfigError if all
// trials have failed.
void report_search(SearchFolder& folder, const report::SearchResults& results);

}  // namespace stretto::cli
