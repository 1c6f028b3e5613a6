#include "stretto/report/run_data.h"

#include <algorithm>
#include <set>

#include <sys/stat.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/metric_value.h"
#include "stretto/base/strings.h"
#include "stretto/settings/yaml.h"

namespace stretto::report {
namespace {

nlohmann::json object_in(const std::filesystem::path& path) {
  auto object = nlohmann::json::parse(read_if_exists(path), nullptr, /*allow_exceptions=*/false);
  return object.is_object() ? object : nlohmann::json();
}

// Times and the speed of evaluations have no charts.
bool is_timing(const std::string& name) {
  return name == "time" || name == "eval_runtime" || name == "eval_samples_per_second" ||
         name == "eval_steps_per_second";
}

void read_metrics(const std::string& text, RunData& run) {
  each_json_line(text, [&](auto, const auto& record) {
    const auto step = number_in(record, "step");
    if (!step) return;
    RunData::Point point{static_cast<int64_t>(*step), number_in(record, "epoch").value_or(0), 0};
    for (const auto& [name, value] : record.items()) {
      const auto number = metric_of_json(value);
      if (!number || name == "step" || name == "epoch" || is_timing(name)) continue;
      point.value = *number;
      run.metrics[name].push_back(point);
    }
  });
}

std::string name_of(const std::filesystem::path& folder) {
  const std::filesystem::path full = std::filesystem::weakly_canonical(folder);
  return full.filename().string();
}

}  // namespace

int64_t RunData::steps() const {
  int64_t last = 0;
  for (const auto& [name, points] : metrics) last = std::max(last, points.back().step);
  return last;
}

std::optional<double> RunData::last(const std::string& metric) const {
  const auto found = metrics.find(metric);
  return found == metrics.end() ? std::nullopt : std::optional<double>(found->second.back().value);
}

// Reads the table of locks instead of trying to lock, which could disturb a run that is starting.
bool is_running(const std::filesystem::path& folder) {
  std::set<std::string> inodes;
  for (const auto& path : {folder, folder / ".lock"}) {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0) inodes.insert(std::to_string(status.st_ino));
  }
  const std::string locks = read_if_exists("/proc/locks");
  for (const std::string_view line :
       split(locks, '\n')) {  // "1: FLOCK ADVISORY WRITE 14925 fe:00:16042320 0 EOF"
    for (const std::string_view word : split(line, ' ')) {
      const size_t colon = word.rfind(':');
      if (std::ranges::count(word, ':') == 2 && inodes.contains(std::string(word.substr(colon + 1))))
        return true;
    }
  }
  return false;
}

bool is_run(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(folder / "config.yaml", ignored) &&
         (std::filesystem::exists(folder / "metrics.jsonl", ignored) ||
          std::filesystem::exists(folder / "logger_logs", ignored));
}

void require_folder(const std::filesystem::path& folder) {
  if (std::filesystem::is_directory(folder)) return;
  if (std::filesystem::exists(folder))
    throw ConfigError("{} is a file; expected the output folder of a run", folder.string());
  throw ConfigError("there is no folder {}", folder.string());
}

void require_run(const std::filesystem::path& folder) {
  require_folder(folder);
  if (is_run(folder)) return;
  throw ConfigError(
      "{} is not the output folder of a run: it holds no config.yaml with metrics.jsonl or logger_logs; a run writes them with its first step",
      folder.string());
}

RunData read_run(const std::filesystem::path& folder) {
  require_run(folder);
  RunData run;
  run.folder = folder;
  run.name = name_of(folder);
  run.config = read_if_exists(folder / "config.yaml");
  try {
    run.settings = settings::texts_by_name(settings::parse_yaml(run.config, "config.yaml"));
  } catch (const ConfigError&) {
    // the file was edited; it is shown as text only
  }
  read_metrics(read_if_exists(folder / "metrics.jsonl"), run);
  run.summary = object_in(folder / "summary.json");
  run.dev_results = object_in(folder / "dev_results.json");
  run.test_results = object_in(folder / "test_results.json");
  if (is_running(folder)) {
    run.state = RunData::State::running;
  } else if (!run.summary.is_null()) {
    run.state = RunData::State::finished;
  }
  return run;
}

namespace {

// Whether the folder contains previous-1 and so on, or "previous" of earlier versions.
bool holds_earlier_runs(const std::filesystem::path& run) {
  std::error_code ignored;
  return std::ranges::any_of(std::filesystem::directory_iterator(run, ignored), [](const auto& entry) {
    return entry.path().filename().string().starts_with("previous");
  });
}

}  // namespace

std::vector<std::filesystem::path> find_runs(const std::filesystem::path& folder) {
  require_folder(folder);
  constexpr int deepest = 3;
  std::vector<std::filesystem::path> runs;
  if (is_run(folder)) runs.push_back(folder);
  const auto options = std::filesystem::directory_options::skip_permission_denied;
  std::filesystem::recursive_directory_iterator entry(folder, options), end;
  std::error_code failed;
  while (entry != end) {
    if (entry->is_directory(failed) && !failed) {
      const bool found = is_run(entry->path());
      if (found) runs.push_back(entry->path());
      if (entry.depth() + 1 >= deepest || (found && !holds_earlier_runs(entry->path())))
        entry.disable_recursion_pending();
    }
    entry.increment(failed);
    if (failed) break;
  }
  std::ranges::sort(runs);
  return runs;
}

const char* state_name(RunData::State state) {
  switch (state) {
    case RunData::State::running:
      return "running";
    case RunData::State::finished:
      return "finished";
    default:
      return "unfinished";
  }
}

Chart chart_of(const std::vector<RunData>& runs, const std::string& metric, bool by_epoch) {
  Chart chart{metric, by_epoch ? "epoch" : "step", {}};
  for (const std::string& name : {metric, "eval_" + metric}) {
    for (size_t i = 0; i < runs.size(); ++i) {
      const RunData& run = runs[i];
      const auto found = run.metrics.find(name);
      if (found == run.metrics.end()) continue;
      const bool evaluation = name != metric;
      Curve curve{runs.size() == 1 ? name : evaluation ? run.name + " " + name : run.name, {}};
      curve.color = runs.size() == 1 ? evaluation : static_cast<int>(i);
      curve.evaluation = evaluation;
      curve.run = static_cast<int>(i);
      curve.metric = name;
      for (const RunData::Point& point : found->second)
        curve.points.emplace_back(by_epoch ? point.epoch : static_cast<double>(point.step), point.value);
      chart.curves.push_back(std::move(curve));
    }
  }
  return chart;
}

std::vector<std::string> metric_names(const std::vector<RunData>& runs) {
  std::set<std::string> training, evaluation;
  for (const RunData& run : runs) {
    for (const auto& [name, points] : run.metrics)
      (name.starts_with("eval_") ? evaluation : training).insert(name);
  }
  std::vector<std::string> names(training.begin(), training.end());
  names.insert(names.end(), evaluation.begin(), evaluation.end());
  return names;
}

std::vector<std::pair<std::string, std::vector<std::string>>> differences(const std::vector<RunData>& runs) {
  std::set<std::string> names;
  for (const RunData& run : runs) {
    for (const auto& [name, value] : run.settings) names.insert(name);
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> rows;
  for (const std::string& name : names) {
    std::vector<std::string> values;
    for (const RunData& run : runs) {
      const auto found = run.settings.find(name);
      values.push_back(found == run.settings.end() ? "unset" : found->second);
    }
    if (std::ranges::adjacent_find(values, std::not_equal_to<>()) != values.end())
      rows.emplace_back(name, values);
  }
  return rows;
}

}  // namespace stretto::report
