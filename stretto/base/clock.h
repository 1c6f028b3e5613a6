#pragma once

#include <chrono>
#include <string>

namespace stretto {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Adds the seconds of its lifetime to `sum`.
class TimedScope {
 public:
  explicit TimedScope(double& sum) : sum_(sum) {}
  ~TimedScope() { sum_ += seconds_since(start_); }
  TimedScope(const TimedScope&) = delete;
  TimedScope& operator=(const TimedScope&) = delete;

 private:
  double& sum_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The wall-clock time, for records and display only: the clock can be set back at any time.
double seconds_since_1970();

// Formats a time of seconds_since_1970() as "2026-01-31 12:00:00", in local time and in UTC.
std::string local_time(double time);
std::string utc_time(double time);

// The current local time, as log lines begin: "2026-01-31 12:00:00.123".
std::string log_time();

}  // namespace stretto
