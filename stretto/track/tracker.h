#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace stretto {

// The values of a run at one step: training values (means since the last record), or those of an evaluation.
struct Record {
  int64_t step = 0;  // optimizer steps done
  double epoch = 0;  // passes over the data done
  bool evaluation = false;
  std::vector<std::pair<std::string, double>> values;  // in the order of output
  std::set<std::string> hidden = {};                   // names of values that the progress line does not show
};

// A run that begins, or resumes after `steps_done` of `total_steps`.
struct TrackedRun {
  int64_t steps_done = 0;
  int64_t total_steps = 0;
  std::string settings;  // the recipe, as YAML
  // The settings by dotted name, null if unset; without input paths.
  nlohmann::json parameters = nlohmann::json::object();
  // The step whose evaluation will be recorded, although the run has taken it before; -1: there is none.
  int64_t pending_evaluation = -1;
};

// The distribution of values: counts[i] values are in (limits[i - 1], limits[i]]; the first interval begins
// at `min`.
struct Histogram {
  double min = 0, max = 0, count = 0, sum = 0, sum_of_squares = 0;
  std::vector<double> limits, counts;
};

// The bytes of a PNG file.
struct Image {
  std::string png;
};

enum class RunEnd { finished, stopped, failed };

// Receives the records of a run on rank 0, on the training thread. Functions throw IoError if a record cannot
// be written; that record is lost, but the run continues (trackers.h).
class Tracker {
 public:
  virtual ~Tracker() = default;

  // The name of the tracker for messages: a file, or a name.
  virtual std::string name() const { return "a tracker"; }

  // Called first, and again when the run returns to a checkpoint. Discards records of steps after
  // run.steps_done, which will be taken again, and an evaluation after run.pending_evaluation; with
  // steps_done 0, all records of an earlier run.
  virtual void begin(const TrackedRun& run) = 0;

  virtual void write(const Record& record) = 0;

  // Called for steps between two records, with the current values.
  virtual void step(const Record&) {}

  // Called when training pauses or has ended.
  virtual void pause() {}

  // Write values other than numbers, for trackers that support them.
  virtual void write_text(int64_t /*step*/, const std::string& /*name*/, const std::string& /*markdown*/) {}
  virtual void write_histogram(int64_t /*step*/, const std::string& /*name*/, const Histogram&) {}
  virtual void write_image(int64_t /*step*/, const std::string& /*name*/, const Image&) {}

  // Stores a file that belongs to the run, for trackers that support files.
  virtual void write_artifact(const std::filesystem::path& /*file*/) {}

  // Called after all other functions.
  virtual void end(RunEnd) {}
};

}  // namespace stretto
