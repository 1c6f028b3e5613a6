#include "stretto/base/progress_bar.h"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/base/terminal.h"

namespace stretto {
namespace {

using std::chrono::milliseconds;

milliseconds period_of(bool live, const std::string& unit) {
  return live ? milliseconds(100) : unit == "bytes" ? milliseconds(2000) : milliseconds(10000);
}

}  // namespace

std::string bar_line(const std::string& what, double share, const std::vector<std::string>& parts,
                     int columns, int widest) {
  constexpr int narrowest = 6;
  const int room = std::max(columns - 1, 0);  // a full line wraps on some terminals
  const std::string percent = fmt::format("{:3.0f} %", std::floor(share * 100));
  const std::string start = what.empty() ? percent : what + " " + percent;
  int left = room - static_cast<int>(start.size()) - 3 - narrowest;  // 3: a blank and the brackets
  if (left < 0) return (what.empty() ? percent : percent + " " + what).substr(0, static_cast<size_t>(room));
  std::string rest;
  for (const std::string& part : parts) {
    const std::string more = (rest.empty() ? " " : " | ") + part;
    if (static_cast<int>(more.size()) > left) break;
    left -= static_cast<int>(more.size());
    rest += more;
  }
  return start + " " + progress_cells(share, std::min(narrowest + left, widest)) + rest;
}

double share_of(int64_t done, int64_t total) {
  return total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0) : 0;
}

void Pace::start(int64_t done) {
  if (first_) return;
  first_ = done;
  start_ = Clock::now();
}

std::optional<double> Pace::seconds_left(int64_t done, int64_t total) const {
  if (!first_ || done <= *first_) return std::nullopt;
  const std::chrono::duration<double> spent = Clock::now() - start_;
  return spent.count() / static_cast<double>(done - *first_) * static_cast<double>(total - done);
}

double Pace::per_second(int64_t done) const {
  const std::chrono::duration<double> spent = Clock::now() - start_;
  return first_ && spent.count() > 0 ? static_cast<double>(done - *first_) / spent.count() : 0;
}

std::string count_text(int64_t done, int64_t total, const std::string& unit) {
  if (unit == "bytes")
    return human_bytes(static_cast<double>(done)) + "/" + human_bytes(static_cast<double>(total));
  return fmt::format("{}/{} {}", done, total, unit);
}

ProgressBar::ProgressBar(std::string what, int64_t total, std::string unit, int64_t done)
    : what_(std::move(what)),
      unit_(std::move(unit)),
      total_(total),
      live_(progress_terminal() >= 0),
      period_(period_of(live_, unit_)),
      done_(done),
      next_(Clock::now() + (live_ ? milliseconds(500) : period_)) {
  pace_.start(done);
}

ProgressBar::~ProgressBar() {
  if (live_ && shown_) log::live("");
}

void ProgressBar::describe(std::string what) {
  const std::lock_guard guard(mutex_);
  what_ = std::move(what);
}

void ProgressBar::add(int64_t count) {
  const std::lock_guard guard(mutex_);
  done_ += count;
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + period_;
  shown_ = true;
  const std::string done = count_text(done_, total_, unit_);
  std::vector<std::string> parts = {done,
                                    human_duration(pace_.seconds_left(done_, total_).value_or(0)) + " left"};
  if (unit_ == "bytes") parts.push_back(human_bytes(pace_.per_second(done_)) + "/s");
  if (live_) {
    log::live(bar_line(what_, share_of(done_, total_), parts, progress_columns()));
  } else {
    log::info("{}: {}", what_, fmt::join(parts, ", "));
  }
}

}  // namespace stretto
