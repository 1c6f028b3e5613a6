#include "stretto/track/progress.h"

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

#include "stretto/base/log.h"
#include "stretto/base/strings.h"

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

bool terminal_attached() {
  const char* told =
      std::getenv("STRETTO_TERMINAL");  // the launcher's word: it may stand between us and the terminal
  return ::isatty(STDERR_FILENO) != 0 || (told != nullptr && std::string(told) == "1");
}

// One value of the line; nothing for what a line has no room for.
std::string shown(const std::string& name, double value) {
  if (name == "grad_norm") return "";
  if (name == "lr") return fmt::format(" | lr {:.2e}", value);
  if (name == "samples_per_second") return fmt::format(" | {:.1f} samples/s", value);
  if (name == "tokens_per_second") return fmt::format(" | {} tokens/s", with_commas(value));
  return fmt::format(" | {} {:.4f}", name, value);
}

}  // namespace

std::string progress_line(const Record& record, int64_t total_steps, double seconds_left) {
  std::string line = fmt::format("step {}/{} | epoch {:.2f}", record.step, total_steps, record.epoch);
  bool timed = false;
  for (const auto& [name, value] : record.values) {
    line += shown(name, value);
    timed |= name == "samples_per_second";
  }
  return timed ? line + " | ETA " + human_duration(seconds_left) : line;
}

Progress::Mode Progress::choose(const std::string& setting) {
  return setting == "auto" && terminal_attached() ? Mode::live : Mode::lines;
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
  const std::string line = progress_line(record, total_steps_, seconds_left(record));
  if (mode_ == Mode::lines) {
    log::info("{}", line);
    return;
  }
  last_drawn_ = Clock::now();
  line_open_ = true;
  fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
}

void Progress::pause() {
  if (line_open_) fmt::print(stderr, "\n");
  line_open_ = false;
}

}  // namespace stretto
