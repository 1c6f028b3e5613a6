#include "stretto/base/progress_bar.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/base/terminal.h"

namespace stretto {
namespace {

constexpr auto first_shown = std::chrono::milliseconds(500), redraw = std::chrono::milliseconds(100);
constexpr auto between_lines = std::chrono::seconds(10);

}  // namespace

std::string bar_line(const std::string& what, int64_t done, int64_t total, const std::string& unit,
                     double seconds_left, int columns) {
  const double share =
      total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0) : 0;
  const std::string percent = fmt::format("{:3.0f} %", std::floor(share * 100));
  const std::string count = fmt::format("{}/{} {}", done, total, unit);
  const std::string left = fmt::format(" | {} left", human_duration(seconds_left));
  const auto room = static_cast<size_t>(std::max(columns - 1, 0));  // a full line wraps on some terminals
  constexpr int widest = 24, narrowest = 6;
  const std::array lines = {fmt::format("{} {} {{}} {}{}", what, percent, count, left),
                            fmt::format("{} {} {{}} {}", what, percent, count),
                            fmt::format("{} {} {{}}", what, percent)};
  for (const std::string& line : lines) {
    const auto cells = static_cast<int64_t>(room) - static_cast<int64_t>(line.size() - 2) - 2;
    if (cells < narrowest) continue;
    const size_t place = line.rfind("{}");
    return line.substr(0, place) + progress_cells(share, static_cast<int>(std::min<int64_t>(cells, widest))) +
           line.substr(place + 2);
  }
  return fmt::format("{} {}", percent, what).substr(0, room);
}

ProgressBar::ProgressBar(std::string what, int64_t total, std::string unit)
    : what_(std::move(what)),
      unit_(std::move(unit)),
      total_(total),
      live_(progress_terminal() >= 0),
      next_(start_ + (live_ ? Clock::duration(first_shown) : Clock::duration(between_lines))) {}

ProgressBar::~ProgressBar() {
  if (live_ && shown_) log::live("");
}

void ProgressBar::add(int64_t count) {
  const std::lock_guard guard(mutex_);
  done_ += count;
  const auto now = Clock::now();
  if (now < next_) return;
  const std::chrono::duration<double> spent = now - start_;
  const double left =
      done_ > 0 ? spent.count() / static_cast<double>(done_) * static_cast<double>(total_ - done_) : 0;
  next_ = now + (live_ ? Clock::duration(redraw) : Clock::duration(between_lines));
  shown_ = true;
  if (live_) {
    log::live(bar_line(what_, done_, total_, unit_, left, progress_columns()));
  } else {
    log::info("{}: {}/{} {}, {} left", what_, done_, total_, unit_, human_duration(left));
  }
}

}  // namespace stretto
