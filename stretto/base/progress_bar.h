#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace stretto {

// "evaluating  34 % [####--------] 34/100 batches | 12s left", fitted to `columns` characters.
std::string bar_line(const std::string& what, int64_t done, int64_t total, const std::string& unit,
                     double seconds_left, int columns);

// Shows how far a piece of work has come while this object lives: on a terminal as a live line, which disappears at the
// end; elsewhere as a log line every 10 s. Work that takes less than half a second is not shown. Thread-safe.
class ProgressBar {
 public:
  // `what`: "tokenising reviews.tsv"; `unit`: what `total` counts, "texts".
  ProgressBar(std::string what, int64_t total, std::string unit);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();

  void add(int64_t count = 1);

 private:
  using Clock = std::chrono::steady_clock;

  const std::string what_, unit_;
  const int64_t total_;
  const bool live_;
  const Clock::time_point start_ = Clock::now();
  std::mutex mutex_;
  int64_t done_ = 0;
  Clock::time_point next_;
  bool shown_ = false;
};

}  // namespace stretto
