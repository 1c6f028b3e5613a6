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

}  // namespace

std::string progress_line(const ProgressState& state, double seconds_left) {
  const std::string line = fmt::format("step {}/{} | epoch {:.2f} | loss {:.4f} | lr {:.2e}", state.step,
                                       state.total_steps, state.epoch, state.loss, state.lr);
  if (state.samples_per_second == 0) return line;
  return fmt::format("{} | {:.1f} samples/s | {} tokens/s | ETA {}", line, state.samples_per_second,
                     with_commas(state.tokens_per_second), human_duration(seconds_left));
}

Progress::Mode Progress::choose(const std::string& setting, int rank) {
  if (rank != 0 || setting == "off") return Mode::off;
  if (setting == "line") return Mode::lines;
  return terminal_attached() ? Mode::live : Mode::lines;
}

Progress::Progress(Mode mode, int64_t log_every, int64_t total_steps)
    : mode_(mode), log_every_(log_every), total_steps_(total_steps) {}

double Progress::seconds_left(const ProgressState& state) const {
  const std::chrono::duration<double> spent = Clock::now() - first_time_;
  const double done = static_cast<double>(state.step - first_step_);
  return done > 0 ? spent.count() / done * static_cast<double>(total_steps_ - state.step) : 0;
}

void Progress::update(const ProgressState& state) {
  if (mode_ == Mode::off) return;
  const auto now = Clock::now();
  if (first_step_ < 0) {
    first_step_ = state.step;
    first_time_ = now;
  }
  if (mode_ == Mode::lines) {
    if (state.step % log_every_ == 0 || state.step == total_steps_) {
      log::info("{}", progress_line(state, seconds_left(state)));
    }
    return;
  }
  constexpr auto redraw_interval = std::chrono::milliseconds(100);
  if (now - last_drawn_ < redraw_interval && state.step != total_steps_) return;
  last_drawn_ = now;
  line_open_ = true;
  fmt::print(stderr, "\r\033[K{}", progress_line(state, seconds_left(state)));
  std::fflush(stderr);
}

void Progress::finish() {
  if (line_open_) fmt::print(stderr, "\n");
  line_open_ = false;
}

}  // namespace stretto
