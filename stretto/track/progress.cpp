#include "stretto/track/progress.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "stretto/base/log.h"
#include "stretto/base/metric_value.h"
#include "stretto/base/strings.h"
#include "stretto/base/terminal.h"

namespace stretto {
namespace {

std::string with_commas(double value) {
  const std::string digits = fmt::format("{:.0f}", value);
  std::string grouped;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

// One value of the line; empty for what is not shown.
std::string shown(const std::string& name, double value) {
  if (name == "grad_norm" || !std::isfinite(value)) return "";
  if (name == "lr") return fmt::format("lr {:.2e}", value);
  if (name == "samples_per_second") return fmt::format("{:.1f} samples/s", value);
  if (name == "tokens_per_second") return fmt::format("{} tokens/s", with_commas(value));
  if (name == "communication") return fmt::format("communication {:.0f} %", value * 100);
  if (name == "data_wait") return fmt::format("data {:.0f} %", value * 100);
  if (name == "memory_mib") return fmt::format("memory {:.0f} MiB", value);
  if (name == "rank_imbalance") return "";
  return metric_text(name, value);
}

bool is_timed(const Record& record) {
  return std::ranges::any_of(record.values,
                             [](const auto& entry) { return entry.first == "samples_per_second"; });
}

// The order of values in the live line, which may not have room for all. `metric`: of the last evaluation.
int importance(const std::string& name, const std::string& metric) {
  const std::array first = {std::string("loss"),
                            metric,
                            std::string("ETA"),
                            std::string("samples_per_second"),
                            std::string("communication"),
                            std::string("data_wait"),
                            std::string("lr"),
                            std::string("epoch")};
  return static_cast<int>(std::ranges::find(first, name) - first.begin());
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
  const double done =
      total_steps > 0
          ? std::clamp(static_cast<double>(record.step) / static_cast<double>(total_steps), 0.0, 1.0)
          : 0;
  std::vector<std::pair<int, std::string>> parts;
  const auto add = [&](const std::string& name, const std::string& text) {
    if (!text.empty()) parts.emplace_back(importance(name, metric.first), text);
  };
  add("epoch", fmt::format("epoch {:.2f}", record.epoch));
  for (const auto& [name, value] : record.values) {
    if (!record.hidden.contains(name)) add(name, shown(name, value));
  }
  if (!metric.first.empty()) add(metric.first, shown("eval_" + metric.first, metric.second));
  if (is_timed(record)) add("ETA", "ETA " + human_duration(seconds_left));
  std::ranges::stable_sort(parts, {}, [](const auto& part) { return part.first; });

  // A character in the last column makes some terminals wrap.
  const auto room = static_cast<size_t>(std::max(columns - 1, 0));
  const std::string percent = fmt::format("{:3.0f} %", std::floor(done * 100));
  std::string rest = fmt::format(" {}/{}", record.step, total_steps);
  constexpr int widest = 24, narrowest = 6;
  const size_t bar_taken = percent.size() + 1 + 2 + narrowest;
  if (bar_taken + rest.size() > room) return fmt::format("{:.0f} %", std::floor(done * 100)).substr(0, room);
  for (const auto& [order, part] : parts) {
    if (bar_taken + rest.size() + 3 + part.size() > room) break;
    rest += " | " + part;
  }
  const size_t left = room - bar_taken - rest.size();
  return percent + " " + progress_cells(done, std::min(widest, narrowest + static_cast<int>(left))) + rest;
}

Progress::Mode Progress::choose(bool redraws) {
  return redraws && progress_terminal() >= 0 ? Mode::live : Mode::lines;
}

void Progress::begin(const TrackedRun& run) {
  const auto monitor = run.parameters.find("checkpoint.monitor");
  monitor_ = monitor != run.parameters.end() && monitor->is_string() ? monitor->get<std::string>() : "";
  total_steps_ = run.total_steps;
  first_step_ = -1;
}

double Progress::seconds_left(const Record& record) const {
  const std::chrono::duration<double> spent = Clock::now() - first_time_;
  const double done = static_cast<double>(record.step - first_step_);
  return done > 0 ? spent.count() / done * static_cast<double>(total_steps_ - record.step) : 0;
}

void Progress::step(const Record& record) {
  if (first_step_ < 0) {
    first_step_ = record.step;
    first_time_ = Clock::now();
  }
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
  if (mode_ == Mode::lines) return log::info("{}", progress_line(record, total_steps_, seconds_left(record)));
  last_drawn_ = Clock::now();
  log::live(live_line(record, total_steps_, seconds_left(record), progress_columns(), metric_));
}

void Progress::pause() { log::end_live(); }

}  // namespace stretto
