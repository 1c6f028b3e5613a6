#pragma once

#include <string>

#include "stretto/report/chart.h"
#include "stretto/report/run_data.h"

namespace stretto::report {

// The screen of `stretto top` about a run: state, progress, values, curves of loss and throughput, last lines of the log.
// Lines end with \n and are at most style.columns long; there are at most `rows` of them. `now`: seconds since 1970.
std::string top_screen(const std::filesystem::path& folder, const TextStyle& style, int rows, double now);

// The same as one line: "training 480/1053 (45 %), loss 0.4123, 212.3 samples/s, 1m 33s left".
std::string top_line(const nlohmann::json& status, double now);

// progress.json of a run. Throws ConfigError if `folder` is no run's, or of a version that wrote none.
nlohmann::json read_status(const std::filesystem::path& folder);

// Whether the run is over: it says so, or its process is gone (no sign of life for a minute and not locked).
bool is_over(const nlohmann::json& status, const std::filesystem::path& folder, double now);

}  // namespace stretto::report
