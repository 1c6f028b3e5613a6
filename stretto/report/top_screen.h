#pragma once

#include <string>

#include "stretto/report/chart.h"
#include "stretto/report/run_data.h"

namespace stretto::report {

// The screen of `stretto top` about a run: state, progress, values, curves of loss and throughput, last lines
// of the log. Lines end with \n and are at most style.columns long; there are at most `rows` of them. `now`:
// seconds since 1970.
std::string top_screen(const std::filesystem::path& folder, const TextStyle& style, int rows, double now);

// The state as one line: "training 480/1053 (45 %), loss 0.4123, 212.3 samples/s, 1m 33s left".
std::string top_line(const nlohmann::json& status, double now);

// Reads progress.json of a run. Throws ConfigError if `folder` is not the output folder of a run, or of a
// version that wrote no such file.
nlohmann::json read_status(const std::filesystem::path& folder);

// Whether the run has ended: according to `status`, or because its process is gone (no update for a minute
// and no lock).
bool is_over(const nlohmann::json& status, const std::filesystem::path& folder, double now);

}  // namespace stretto::report
