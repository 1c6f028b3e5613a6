#pragma once

#include <string>
#include <vector>

#include "stretto/report/run_data.h"

namespace stretto::report {

// One self-contained HTML page about runs; its content security policy forbids loading anything. It shows
// curves, results, settings, the machine according to the log, and samples of predictions, and compares
// several runs side by side. Without JavaScript the curves are drawn, but not interactive. REQUIRES: at least
// one run.
// `first_section`: markup of a section before the others.
std::string html_page(const std::vector<RunData>& runs, const std::string& version,
                      const std::string& first_section = "");

// The charts of the page, each with related values, in the order of the page.
std::vector<Chart> page_charts(const std::vector<RunData>& runs);

}  // namespace stretto::report
