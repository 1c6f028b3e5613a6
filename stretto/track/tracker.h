#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stretto {

// The values of a run at one step: of training (means since the last record), or of an evaluation.
struct Record {
  int64_t step = 0;  // optimizer steps done
  double epoch = 0;  // passes over the data done
  bool evaluation = false;
  std::vector<std::pair<std::string, double>> values;  // in the order of output
};

// A run that begins, or resumes after `steps_done` of `total_steps`.
struct TrackedRun {
  int64_t steps_done = 0;
  int64_t total_steps = 0;
  std::string settings;  // the recipe, as YAML
};

// Receives the records of a run, at rank 0, on the training thread.
class Tracker {
 public:
  virtual ~Tracker() = default;

  // Called first, and again when the run returns to a checkpoint. Records of steps after run.steps_done are discarded,
  // since these steps will be taken again; with steps_done 0, all records of an earlier run are.
  virtual void begin(const TrackedRun& run) = 0;

  virtual void write(const Record& record) = 0;

  // A step between two records: what write() would get now.
  virtual void step(const Record&) {}

  // Training pauses, or has ended.
  virtual void pause() {}
};

}  // namespace stretto
