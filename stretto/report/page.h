#pragma once

#include <string>
#include <vector>

#include "stretto/report/run_data.h"

namespace stretto::report {

// One HTML page about runs, self-contained: it loads nothing, and its content security policy forbids it. Curves, results,
// settings, what the log says of the machine, and samples of predictions; with several runs, side by side. Without
// JavaScript the curves are drawn, but do not answer the pointer. REQUIRES: at least one run.
std::string html_page(const std::vector<RunData>& runs, const std::string& version);

// The charts of the page: the values that belong together, in the order of the page.
std::vector<Chart> page_charts(const std::vector<RunData>& runs);

}  // namespace stretto::report
