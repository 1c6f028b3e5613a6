#include "stretto/track/progress.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "stretto/base/log.h"
#include "stretto/base/strings.h"

namespace stretto {
namespace {

// A descriptor of the terminal behind standard error, which stretto's launcher passes on; -1: there is none.
int terminal() {
  if (::isatty(STDERR_FILENO) != 0) return STDERR_FILENO;
  const char* passed_on = std::getenv("STRETTO_TERMINAL");
  const int fd = passed_on == nullptr ? -1 : static_cast<int>(parse_int(passed_on).value_or(-1));
  return fd >= 0 && ::isatty(fd) != 0 ? fd : -1;
}

int terminal_columns() {
  constexpr int usual = 80;
  winsize size{};
  return ::ioctl(terminal(), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

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
  return fmt::format("{} {:.4f}", name, value);
}

bool is_timed(const Record& record) {
  return std::ranges::any_of(record.values,
                             [](const auto& entry) { return entry.first == "samples_per_second"; });
}

std::string bar(double done, int cells) {
  const int full = static_cast<int>(done * cells);
  return fmt::format("[{}{}]", std::string(static_cast<size_t>(full), '#'),
                     std::string(static_cast<size_t>(cells - full), '-'));
}

// The order of values in the live line, which may not have room for all.
int importance(const std::string& name) {
  constexpr std::array first = {"loss", "ETA", "samples_per_second", "lr", "epoch"};
  return static_cast<int>(std::ranges::find(first, name) - first.begin());
}

}  // namespace

std::string progress_line(const Record& record, int64_t total_steps, double seconds_left) {
  std::string line = fmt::format("step {}/{} | epoch {:.2f}", record.step, total_steps, record.epoch);
  for (const auto& [name, value] : record.values) {
    const std::string part = shown(name, value);
    if (!part.empty()) line += " | " + part;
  }
  return is_timed(record) ? line + " | ETA " + human_duration(seconds_left) : line;
}

std::string live_line(const Record& record, int64_t total_steps, double seconds_left, int columns) {
  const double done =
      total_steps > 0
          ? std::clamp(static_cast<double>(record.step) / static_cast<double>(total_steps), 0.0, 1.0)
          : 0;
  std::vector<std::pair<int, std::string>> parts = {
      {importance("epoch"), fmt::format("epoch {:.2f}", record.epoch)}};
  for (const auto& [name, value] : record.values) {
    if (const std::string part = shown(name, value); !part.empty())
      parts.emplace_back(importance(name), part);
  }
  if (is_timed(record)) parts.emplace_back(importance("ETA"), "ETA " + human_duration(seconds_left));
  std::ranges::stable_sort(parts, {}, [](const auto& part) { return part.first; });

  // A character in the last column makes some terminals wrap.
  const auto room = static_cast<size_t>(std::max(columns - 1, 0));
  std::string line = fmt::format("{:3.0f} % {} step {}/{}", std::floor(done * 100),
                                 bar(done, columns < 60 ? 5 : 16), record.step, total_steps);
  if (line.size() > room) line = fmt::format("{:.0f} %", std::floor(done * 100)).substr(0, room);
  for (const auto& [order, part] : parts) {
    if (line.size() + 3 + part.size() > room) break;
    line += " | " + part;
  }
  return line;
}

Progress::Mode Progress::choose(const std::string& setting) {
  return setting == "auto" && terminal() >= 0 ? Mode::live : Mode::lines;
}

void Progress::begin(const TrackedRun& run) {
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
  if (record.evaluation) return;
  step(record);
  if (mode_ == Mode::lines) show(record);
}

void Progress::show(const Record& record) {
  if (mode_ == Mode::lines) return log::info("{}", progress_line(record, total_steps_, seconds_left(record)));
  last_drawn_ = Clock::now();
  log::live(live_line(record, total_steps_, seconds_left(record), terminal_columns()));
}

void Progress::pause() { log::end_live(); }

}  // namespace stretto
