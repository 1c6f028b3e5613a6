#include <algorithm>
#include <array>
#include <set>

#include "stretto/report/page.h"

namespace stretto::report {
namespace {

struct Title {
  const char *name, *title;
};

// Values that every run has, after those of the task.
constexpr std::array last_titles = {Title{"lr", "learning rate"},
                                    Title{"grad_norm", "gradient norm"},
                                    Title{"samples_per_second", "throughput (samples/s)"},
                                    Title{"tokens_per_second", "throughput (tokens/s)"},
                                    Title{"communication", "share of time in communication"},
                                    Title{"data_wait", "share of time waiting for data"},
                                    Title{"rank_imbalance", "rank balance (slowest rank / mean)"},
                                    Title{"memory_mib", "memory of the largest rank (MiB)"},
                                    Title{"device_memory_mib", "device memory of the largest rank (MiB)"}};

std::string title_of(const std::string& name) {
  for (const Title& known : last_titles) {
    if (known.name == name) return known.title;
  }
  return name;
}

}  // namespace

std::vector<Chart> page_charts(const std::vector<RunData>& runs) {
  std::vector<std::string> names;
  const auto add = [&](std::string name) {
    if (name.starts_with("eval_")) name.erase(0, 5);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  add("loss");
  const auto is_last = [](const std::string& name) {
    return std::ranges::any_of(last_titles, [&](const Title& known) { return known.name == name; });
  };
  const auto all = metric_names(runs);
  for (const std::string& name : all) {
    if (name.starts_with("eval_")) add(name);
  }
  for (const std::string& name : all) {
    if (!is_last(name)) add(name);
  }
  for (const Title& known : last_titles) add(known.name);
  std::vector<Chart> charts;
  for (const std::string& name : names) {
    Chart chart = chart_of(runs, name);
    chart.title = title_of(name);
    if (!chart.curves.empty()) charts.push_back(std::move(chart));
  }
  return charts;
}

}  // namespace stretto::report
