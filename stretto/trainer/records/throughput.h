#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

namespace stretto::trainer {

// Samples and tokens per second, as means over the last steps.
class Throughput {
 public:
  using Clock = std::chrono::steady_clock;
  struct Rates {
    double samples = 0, tokens = 0;  // per second
  };

  // `steps`: the number of steps of a mean; nullopt: all since the start or the last pause.
  explicit Throughput(std::optional<int64_t> steps) : steps_(steps) {}

  // Adds a step that ended at `end`. The first one, and the first after a pause, warms up caches: time counts
  // from its end.
  void add(int64_t samples, int64_t tokens, Clock::time_point end = Clock::now());

  // Excludes the time until the end of the next step.
  void pause() { points_.clear(); }

  // nullopt until the second step.
  std::optional<Rates> rates() const;

 private:
  struct Point {
    Clock::time_point time;
    int64_t samples, tokens;  // since the first point
  };

  std::optional<int64_t> steps_;
  std::deque<Point> points_;  // the first of a mean, and the last or all after it
};

}  // namespace stretto::trainer
