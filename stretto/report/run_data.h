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

// What the output folder of a run tells. Values of evaluations are named eval_...
struct RunData {
  struct Point {
    int64_t step = 0;
    double epoch = 0;
    double value = 0;  // NaN and infinity where the run has recorded them
  };
  enum class State { running, finished, unfinished };

  std::filesystem::path folder;
  std::string name;
  State state = State::unfinished;
  std::string config;                                 // config.yaml
  std::map<std::string, std::string> settings;        // of it, by dotted name
  std::map<std::string, std::vector<Point>> metrics;  // in the order of time
  nlohmann::json summary, dev_results, test_results;  // null if there is no such file

  int64_t steps() const;  // of the last record
  std::optional<double> last(const std::string& metric) const;
};

// Reads a run; what is unfinished or missing in its files is left out. Throws ConfigError if `folder` is no run's.
RunData read_run(const std::filesystem::path& folder);

// Throws ConfigError unless `folder` is a folder.
void require_folder(const std::filesystem::path& folder);

bool is_run(const std::filesystem::path& folder);

// Throws ConfigError unless `folder` is the output folder of a run.
void require_run(const std::filesystem::path& folder);

// Whether a process of this host has locked the run's folder, as a run does while it lasts.
bool is_running(const std::filesystem::path& folder);

// The runs in `folder` and, at most three levels deep, below it; sorted by path.
std::vector<std::filesystem::path> find_runs(const std::filesystem::path& folder);

const char* state_name(RunData::State state);

// A metric of several runs. `by_epoch`: over epochs instead of steps. Runs without it have no points. If `metric` is of
// training, the evaluations' values of the same name follow, where a run has some.
Chart chart_of(const std::vector<RunData>& runs, const std::string& metric, bool by_epoch = false);

// The names of all metrics of the runs; those of training first.
std::vector<std::string> metric_names(const std::vector<RunData>& runs);

// The settings that are not the same in all runs: name, and a value per run ("unset" where it has none).
std::vector<std::pair<std::string, std::vector<std::string>>> differences(const std::vector<RunData>& runs);

}  // namespace stretto::report
