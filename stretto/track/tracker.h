#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stretto {

// What a run tells at one step: of its training (means since the record before), or of an evaluation.
struct Record {
  int64_t step = 0;  // optimizer steps done
  double epoch = 0;  // passes over the data done
  bool evaluation = false;
  std::vector<std::pair<std::string, double>> values;  // in the order in which they are told
};

// A run that begins, or goes on after `steps_done` of `total_steps`.
struct TrackedRun {
  int64_t steps_done = 0;
  int64_t total_steps = 0;
  std::string settings;  // its recipe, as YAML
};

// One who is told of a run, at rank 0, on the training thread.
class Tracker {
 public:
  virtual ~Tracker() = default;

  // Before anything else, and again when the run goes back to a checkpoint. What was kept of steps after run.steps_done
  // is taken back, for these steps are about to come again; with 0, all of an earlier run is.
  virtual void begin(const TrackedRun& run) = 0;

  virtual void write(const Record& record) = 0;

  // A step between two records: what write() would be told if it were called now.
  virtual void step(const Record&) {}

  // Training stands still for a while, or has ended.
  virtual void pause() {}
};

}  // namespace stretto
