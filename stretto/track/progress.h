#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace stretto {

// What one line of progress tells.
struct ProgressState {
  int64_t step = 0;
  int64_t total_steps = 0;
  double epoch = 0;
  double loss = 0;
  double lr = 0;
  double samples_per_second = 0;  // 0 where nothing has been timed yet; the line then ends before it
  double tokens_per_second = 0;
};

// "step 120/1053 | epoch 0.11 | loss 0.4123 | lr 4.8e-05 | 212 samples/s | 2,840 tokens/s | ETA 1m 33s"
std::string progress_line(const ProgressState& state, double seconds_left);

// Shows a run's progress: one line that is rewritten in place on a terminal, else plain lines through the logger every
// `log_every` steps. Only rank 0 should have one enabled.
class Progress {
 public:
  enum class Mode { live, lines, off };

  // "auto" (live on a terminal, else lines), "line" or "off".
  static Mode choose(const std::string& setting, int rank);

  Progress(Mode mode, int64_t log_every, int64_t total_steps);
  void update(const ProgressState& state);
  void finish();  // leaves the terminal on a new line

 private:
  double seconds_left(const ProgressState& state) const;

  using Clock = std::chrono::steady_clock;
  Mode mode_;
  int64_t log_every_;
  int64_t total_steps_;
  int64_t first_step_ = -1;
  Clock::time_point first_time_;
  Clock::time_point last_drawn_;
  bool line_open_ = false;
};

}  // namespace stretto
