#include "stretto/track/progress.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stretto/base/known_values.h"
#include "stretto/base/log.h"
#include "stretto/base/metric_value.h"
#include "stretto/base/strings.h"
#include "stretto/base/terminal.h"

namespace stretto::track {
namespace {

// One value of the line; empty for hidden values.
std::string shown(const std::string& name, double value) {
  const KnownValue* known = find_known_value(name);
  if (!std::isfinite(value) || (known != nullptr && !known->in_progress_line)) return "";
  return known != nullptr && known->text != nullptr ? known->text(value) : metric_text(name, value);
}

bool is_timed(const Record& record) {
  return std::ranges::any_of(record.values,
                             [](const auto& entry) { return entry.first == "samples_per_second"; });
}

}  // namespace

std::string progress_line(const Record& record, int64_t total_steps, double seconds_left) {
  std::string line = fmt::format("step {}/{} | epoch {:.2f}", record.step, total_steps, record.epoch);
  for (const auto& [name, value] : record.values) {
    if (record.hidden.contains(name)) continue;
    const std::string part = shown(name, value);
    if (!part.empty()) line += " | " + part;
  }
  return is_timed(record) ? line + " | ETA " + human_duration(seconds_left) : line;
}

std::string live_line(const Record& record, int64_t total_steps, double seconds_left, int columns,
                      const std::pair<std::string, double>& metric) {
  std::vector<std::pair<int, std::string>> parts;  // by importance
  const auto add = [&](const std::string& name, double value) {
    const KnownValue* known = find_known_value(name);
    const std::string text = shown(name, value);
    const int importance = name == metric.first ? 0
                           : known != nullptr   ? known->importance
                                                : KnownValue::others;
    if (!text.empty()) parts.emplace_back(importance, text);
  };
  for (const auto& [name, value] : record.values) {
    if (!record.hidden.contains(name)) add(name, value);
  }
  // The metric of the last evaluation follows the loss.
  if (!metric.first.empty() && std::isfinite(metric.second))
    parts.emplace_back(0, shown("eval_" + metric.first, metric.second));
  if (is_timed(record)) parts.emplace_back(0, "ETA " + human_duration(seconds_left));
  add("epoch", record.epoch);
  std::ranges::stable_sort(parts, {}, [](const auto& part) { return part.first; });
  std::vector<std::string> texts = {fmt::format("{}/{}", record.step, total_steps)};
  for (auto& [importance, text] : parts) texts.push_back(std::move(text));
  return bar_line("", share_of(record.step, total_steps), texts, columns);
}

Progress::Mode Progress::choose(bool redraws) {
  return redraws && progress_terminal() >= 0 ? Mode::live : Mode::lines;
}

void Progress::begin(const TrackedRun& run) {
  const auto monitor = run.parameters.find("checkpoint.monitor");
  monitor_ = monitor != run.parameters.end() && monitor->is_string() ? monitor->get<std::string>() : "";
  total_steps_ = run.total_steps;
  pace_ = {};
}

void Progress::step(const Record& record) {
  pace_.start(record.step);
  if (mode_ != Mode::live) return;
  constexpr auto redraw_interval = std::chrono::milliseconds(100);
  if (Clock::now() - last_drawn_ >= redraw_interval || record.step == total_steps_) show(record);
}

void Progress::write(const Record& record) {
  if (record.evaluation) {
    for (const auto& value : record.values) {
      if (value.first == monitor_) metric_ = value;
    }
    return;
  }
  step(record);
  if (mode_ == Mode::lines) show(record);
}

void Progress::show(const Record& record) {
  const double left = pace_.seconds_left(record.step, total_steps_).value_or(0);
  if (mode_ == Mode::lines) return log::info("{}", progress_line(record, total_steps_, left));
  last_drawn_ = Clock::now();
  log::live(live_line(record, total_steps_, left, progress_columns(), metric_));
}

void Progress::pause() { log::end_live(); }

}  // namespace stretto::track
