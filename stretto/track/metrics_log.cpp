#include "stretto/track/metrics_log.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/clock.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/metric_value.h"

namespace stretto::track {

namespace {

bool is_evaluation(const nlohmann::json& record) {
  return std::ranges::any_of(record.items(),
                             [](const auto& item) { return item.key().starts_with("eval_"); });
}

}  // namespace

std::string records_until(const std::filesystem::path& path, const TrackedRun& run) {
  std::string kept;
  each_json_line(read_if_exists(path), [&](std::string_view line, const auto& record) {
    const double step = number_in(record, "step").value_or(0);
    const bool comes_again = step == static_cast<double>(run.pending_evaluation) && is_evaluation(record);
    if (step <= static_cast<double>(run.steps_done) && !comes_again) kept.append(line).append("\n");
  });
  return kept;
}

void MetricsLog::begin(const TrackedRun& run) {
  run_ = run;
  file_.reset();
  write_file_atomic(path_, run.steps_done > 0 ? records_until(path_, run) : std::string());
  file_.emplace(path_);
}

void MetricsLog::write(const Record& record) {
  const double time = std::round(seconds_since_1970() * 1000) / 1000;
  nlohmann::ordered_json line = {{"step", record.step}, {"epoch", record.epoch}, {"time", time}};
  for (const auto& [name, value] : record.values)
    line[(record.evaluation ? "eval_" : "") + name] = metric_json(name, value);
  if (!file_) begin(run_);  // retries after begin() has failed
  file_->write(line.dump() + "\n");
}

}  // namespace stretto::track
