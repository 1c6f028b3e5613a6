#include "stretto/track/results_file.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/metric_value.h"

namespace stretto::track {
namespace {

using Json = nlohmann::ordered_json;

// "2026-01-31T12:00:00+00:00"
std::string timestamp() {
  std::string text = utc_time(seconds_since_1970());
  std::ranges::replace(text, ' ', 'T');
  return text + "+00:00";
}

std::optional<double> value_of(const Record& record, const std::string& name) {
  const auto found = std::ranges::find(record.values, name, &std::pair<std::string, double>::first);
  return found == record.values.end() ? std::nullopt : std::optional(found->second);
}

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

// The mean without the first ten, in which the window of the throughput fills.
double mean_throughput(const std::vector<double>& all) {
  constexpr std::ptrdiff_t window = 10;
  const std::ptrdiff_t first = std::ssize(all) > window ? window : 0;
  return rounded(std::accumulate(all.begin() + first, all.end(), 0.0) /
                 static_cast<double>(std::ssize(all) - first));
}

Json read_results(const std::filesystem::path& file) {
  Json results;
  results["results"]["parameters"] = Json::object();
  results["results"]["metrics"] = Json::array();
  if (!std::filesystem::exists(file)) return results;
  Json read;
  try {
    read = read_json(file);
  } catch (const DataError& error) {
    throw IoError("{}", error.what());
  }
  const Json::json_pointer metrics("/results/metrics");
  if (!read.contains(metrics) || !read[metrics].is_array())
    throw IoError("{}: expected {{\"results\": {{\"metrics\": [...]}}}}; remove the file", file.string());
  return read;
}

// The settings that the scripts store, by their names there.
Json parameters_of(const TrackedRun& run) {
  Json parameters = {{"Total steps", run.total_steps}};
  for (const auto& [name, setting] :
       {std::pair("Batch size", "training.batch_size"),
        {"Seed", "training.seed"},
        {"Optimizer", "optimizer.type"},
        {"Data type", "training.precision"},
        {"Gradient accumulation microsteps", "training.grad_accumulation_steps"},
        {"Warmup steps", "scheduler.num_warmup_steps"}}) {
    const auto found = run.parameters.find(setting);
    if (found != run.parameters.end() && !found->is_null()) parameters[name] = *found;
  }
  return parameters;
}

}  // namespace

void add_measurements(const std::filesystem::path& file, const std::vector<Measurement>& measurements) {
  Json results = read_results(file);
  Json& metrics = results["results"]["metrics"];
  for (const Measurement& each : measurements) {
    metrics.push_back({{"MetricName", each.name},
                       {"MeasuredValue", metric_json(each.name, each.value)},
                       {"Units", each.units},
                       {"Timestamp", timestamp()},
                       {"AdditionalData", each.at}});
  }
  write_file_atomic(file, results.dump(2) + "\n");
}

void ResultsFile::begin(const TrackedRun& run) {
  run_ = run;
  last_ = {};
  if (!begun_) begun_ = std::chrono::steady_clock::now();
  if (run.steps_done == 0) std::filesystem::remove(file_);
  Json results = read_results(file_);
  results["results"]["parameters"] = parameters_of(run);
  Json kept = Json::array();
  for (const Json& metric : results["results"]["metrics"]) {
    const auto at = metric.is_object() ? metric.find("AdditionalData") : metric.end();
    if (at == metric.end() ||
        number_in(*at, "Global step").value_or(0) <= static_cast<double>(run.steps_done))
      kept.push_back(metric);
  }
  results["results"]["metrics"] = std::move(kept);
  write_file_atomic(file_, results.dump(2) + "\n");
}

nlohmann::ordered_json ResultsFile::position(int64_t epoch) const {
  Json at = {{"Epoch", epoch}, {"Global step", last_.step}};
  const auto accumulation = number_in(run_.parameters, "training.grad_accumulation_steps");
  if (accumulation) at["Microstep"] = last_.step * static_cast<int64_t>(*accumulation);
  return at;
}

void ResultsFile::step(const Record& record) {
  const auto epochs = static_cast<int64_t>(record.epoch);
  if (last_.step == 0) epochs_written_ = static_cast<int64_t>(std::ceil(record.epoch)) - 1;
  last_ = record;
  if (const auto throughput = value_of(record, "samples_per_second")) throughputs_.push_back(*throughput);
  if (epochs <= epochs_written_) return;
  epochs_written_ = epochs;
  const Json at = position(epochs - 1);
  std::vector<Measurement> measurements;
  if (const auto loss = value_of(record, "loss")) measurements.push_back({"Loss", *loss, "", at});
  if (!throughputs_.empty()) measurements.push_back({"Throughput", throughputs_.back(), "seq/s", at});
  add_measurements(file_, measurements);
}

void ResultsFile::write(const Record& record) {
  if (!record.evaluation) loss_ = value_of(record, "loss");
}

void ResultsFile::end(RunEnd how) {
  if (how == RunEnd::failed || last_.step == 0) return;
  const Json at = position(static_cast<int64_t>(std::ceil(last_.epoch)) - 1);
  std::vector<Measurement> measurements;
  if (loss_) measurements.push_back({"Final loss", *loss_, "", at});
  measurements.push_back({"Time to train", rounded(seconds_since(*begun_) / 60), "minutes", at});
  if (!throughputs_.empty()) {
    measurements.push_back({"Average throughput", mean_throughput(throughputs_), "seq/s", at});
    measurements.push_back({"Peak throughput", std::ranges::max(throughputs_), "seq/s", at});
  }
  add_measurements(file_, measurements);
}

}  // namespace stretto::track
