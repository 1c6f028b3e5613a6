#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace stretto {

// "evaluating  34 % [####--------] 34/100 batches | 12s left": `what` (may be empty), the share done (0 to
// 1), a bar and `parts`, the most important first. Fitted to `columns` characters: as many parts as fit next
// to the narrowest bar, which then takes the remaining width, up to `widest` cells.
std::string bar_line(const std::string& what, double share, const std::vector<std::string>& parts,
                     int columns, int widest = 24);

// The part of a piece of work that is done, 0 to 1.
double share_of(int64_t done, int64_t total);

// Estimates the time left of a piece of work from its speed since start().
class Pace {
 public:
  // Only the first call has an effect: `done` units were done before it.
  void start(int64_t done);
  // Returns nullopt until a unit has been done.
  std::optional<double> seconds_left(int64_t done, int64_t total) const;
  double per_second(int64_t done) const;  // since start()

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<int64_t> first_;
  Clock::time_point start_;
};

// "34/100 batches"; of the unit "bytes", "1.5 MiB/2.0 GiB".
std::string count_text(int64_t done, int64_t total, const std::string& unit);

// Shows the progress of a piece of work during its lifetime: on a terminal as a live line, which disappears
// at the end; elsewhere as a log line every 10 s, of bytes every 2 s. Work that takes less than half a second
// is not shown. Thread-safe.
class ProgressBar {
 public:
  // `what`: "tokenising reviews.tsv"; `unit`: what `total` counts, "texts", "bytes". `done`: the number of
  // units that were done before.
  ProgressBar(std::string what, int64_t total, std::string unit, int64_t done = 0);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();

  void add(int64_t count = 1);
  void describe(std::string what);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  const std::string unit_;
  const int64_t total_;
  const bool live_;
  const Clock::duration period_;
  Pace pace_;
  std::mutex mutex_;
  int64_t done_;
  Clock::time_point next_;
  bool shown_ = false;
};

}  // namespace stretto
