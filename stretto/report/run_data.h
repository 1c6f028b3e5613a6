#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/report/chart.h"

namespace stretto::report {

// The contents of a run's output folder. Values of evaluations are named eval_...
struct RunData {
  struct Point {
    int64_t step = 0;
    double epoch = 0;
    double value = 0;  // may be NaN or infinite
  };
  enum class State { running, finished, unfinished };

  std::filesystem::path folder;
  std::string name;
  State state = State::unfinished;
  std::string config;                                 // config.yaml
  std::map<std::string, std::string> settings;        // values of config.yaml by dotted name
  std::map<std::string, std::vector<Point>> metrics;  // points in chronological order
  nlohmann::json summary, dev_results, test_results;  // null if there is no such file

  int64_t steps() const;  // the step of the last record
  std::optional<double> last(const std::string& metric) const;
};

// Reads a run. Incomplete and missing files are tolerated. Throws ConfigError if `folder` is not the output
// folder of a run.
RunData read_run(const std::filesystem::path& folder);

// Throws ConfigError unless `folder` is a folder.
void require_folder(const std::filesystem::path& folder);

bool is_run(const std::filesystem::path& folder);

// Throws ConfigError unless `folder` is the output folder of a run.
void require_run(const std::filesystem::path& folder);

// Whether a process of this host holds the lock of the run's folder, that is, the run is active.
bool is_running(const std::filesystem::path& folder);

// The runs in `folder` and, at most three levels deep, below it; sorted by path.
std::vector<std::filesystem::path> find_runs(const std::filesystem::path& folder);

const char* state_name(RunData::State state);

// The chart of a metric of several runs. `by_epoch`: over epochs instead of steps. Runs without the metric
// have no points. The curves of a training metric are followed by those of the evaluations' metric of the
// same name, if a run has it.
Chart chart_of(const std::vector<RunData>& runs, const std::string& metric, bool by_epoch = false);

// The names of all metrics of the runs, training metrics first.
std::vector<std::string> metric_names(const std::vector<RunData>& runs);

// The settings that differ between runs: the name, and a value per run ("unset" if it has none).
std::vector<std::pair<std::string, std::vector<std::string>>> differences(const std::vector<RunData>& runs);

}  // namespace stretto::report
