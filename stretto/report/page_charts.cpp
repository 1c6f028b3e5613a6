#include <algorithm>
#include <set>

#include "stretto/base/known_values.h"
#include "stretto/report/page.h"

namespace stretto::report {
namespace {

std::string title_of(const std::string& name) {
  const KnownValue* known = find_known_value(name);
  return known != nullptr && !known->title.empty() ? std::string(known->title) : name;
}

}  // namespace

std::vector<Chart> page_charts(const std::vector<RunData>& runs) {
  std::vector<std::string> names;
  const auto add = [&](std::string name) {
    if (name.starts_with("eval_")) name.erase(0, 5);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  add("loss");
  const auto all = metric_names(runs);
  for (const std::string& name : all) {
    if (name.starts_with("eval_")) add(name);
  }
  for (const std::string& name : all) {
    if (title_of(name) == name) add(name);
  }
  // Charts that every run has follow those of the task.
  for (const KnownValue& known : known_values()) {
    if (!known.title.empty()) add(std::string(known.name));
  }
  std::vector<Chart> charts;
  for (const std::string& name : names) {
    Chart chart = chart_of(runs, name);
    chart.title = title_of(name);
    if (!chart.curves.empty()) charts.push_back(std::move(chart));
  }
  return charts;
}

}  // namespace stretto::report
