#include "stretto/track/metrics_log.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stretto/base/metric_value.h"
#include "stretto/base/strings.h"

namespace stretto {
namespace {

// The records of a metrics file up to a step, without a truncated last line.
std::string records_until(const std::filesystem::path& path, int64_t step) {
  std::string kept;
  if (!std::filesystem::exists(path)) return kept;
  const std::string text = read_file(path);
  for (const std::string_view line : split(text, '\n')) {
    const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (record.is_object() && record.value("step", int64_t{0}) <= step) kept.append(line).append("\n");
  }
  return kept;
}

}  // namespace

void MetricsLog::begin(const TrackedRun& run) {
  run_ = run;
  file_.reset();
  write_file_atomic(path_, run.steps_done > 0 ? records_until(path_, run.steps_done) : std::string());
  file_.emplace(path_);
}

void MetricsLog::write(const Record& record) {
  nlohmann::ordered_json line = {{"step", record.step}, {"epoch", record.epoch}};
  for (const auto& [name, value] : record.values)
    line[(record.evaluation ? "eval_" : "") + name] = metric_json(name, value);
  if (!file_) begin(run_);  // retry: begin() has failed
  file_->write(line.dump() + "\n");
}

}  // namespace stretto
