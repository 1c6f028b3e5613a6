#pragma once

#include <chrono>

#include "stretto/base/progress_bar.h"
#include "stretto/track/tracker.h"

namespace stretto::track {

// "step 120/1053 | epoch 0.11 | loss 0.4123 | lr 4.80e-05 | accuracy 0.8125 | 212.3 samples/s | 2,840
// tokens/s | communication 7 % | ETA 1m 33s". Speed and time left are omitted if the record has no
// samples_per_second, as are values that are not finite.
std::string progress_line(const Record& record, int64_t total_steps, double seconds_left);

// The progress for a terminal, with a bar: " 11 % [##----------------] 120/1053 | loss 0.4123 | eval_accuracy
// 0.8125 | ETA 1m 33s": the most important values first, and as many as fit into `columns` characters; the
// bar takes the remaining width. `metric`: name and value of the last evaluation; an empty name before the
// first.
std::string live_line(const Record& record, int64_t total_steps, double seconds_left, int columns,
                      const std::pair<std::string, double>& metric = {});

// Shows the progress of a run: on a terminal one line that is redrawn in place, fitted to the terminal's
// current width; else one logged line per record. Evaluations are not shown.
class Progress : public Tracker {
 public:
  enum class Mode { live, lines };

  // Mode::live if `redraws` and there is a terminal, else Mode::lines.
  static Mode choose(bool redraws);

  explicit Progress(Mode mode) : mode_(mode) {}
  void begin(const TrackedRun& run) override;
  void write(const Record& record) override;
  void step(const Record& record) override;
  void pause() override;  // ends the live line

 private:
  void show(const Record& record);

  using Clock = std::chrono::steady_clock;
  Mode mode_;
  std::string monitor_;
  std::pair<std::string, double> metric_;
  int64_t total_steps_ = 0;
  Pace pace_;
  Clock::time_point last_drawn_;
};

}  // namespace stretto::track
