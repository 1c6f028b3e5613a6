#include "stretto/track/mlflow_sender.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <utility>

#include <sys/stat.h>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/log.h"
#include "stretto/base/metric_value.h"

namespace stretto::track {
namespace {

constexpr size_t max_metrics = 1000, max_params = 100;  // limits of one request

int64_t milliseconds(double seconds) { return std::llround(seconds * 1000); }

std::string random_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

nlohmann::json progress_of(const std::filesystem::path& folder) {
  return nlohmann::json::parse(read_if_exists(folder / "progress.json"), nullptr, /*allow_exceptions=*/false);
}

MlflowSent begin_sent(const std::filesystem::path& folder, const std::optional<std::string>& uri) {
  const MlflowRun run = read_mlflow_run(folder);
  MlflowSent sent{.uri = uri.value_or(run.uri), .experiment = run.experiment, .id = random_id()};
  if (sent.uri.empty()) {
    throw ConfigError(
        "{}: the run was not recorded with an MLflow server; pass its URL with --uri, or set MLFLOW_TRACKING_URI",
        folder.string());
  }
  check_mlflow_uri(sent.uri, uri ? "--uri" : "MLFLOW_TRACKING_URI");
  sent.started = number_in(progress_of(folder), "started").value_or(seconds_since_1970());
  return sent;
}

bool is_evaluation(const nlohmann::ordered_json& record) {
  return std::ranges::all_of(record.items(), [](const auto& item) {
    const std::string& name = item.key();
    return name.starts_with("eval_") || name == "step" || name == "epoch" || name == "time";
  });
}

// The name of a value on the server, restricted to characters that MLflow allows.
std::string metric_name(std::string name, bool evaluation) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-. :/";
  constexpr size_t longest = 250;
  if (evaluation && name.starts_with("eval_")) name.erase(0, 5);
  name.insert(0, evaluation ? "eval/" : "train/");
  for (char& letter : name) {
    if (allowed.find(letter) == std::string_view::npos) letter = '_';
  }
  return name.substr(0, longest);
}

// JSON has no NaN and infinity; these are the names of protocol buffers' JSON mapping.
nlohmann::json metric_value(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "NaN";
  return value > 0 ? "Infinity" : "-Infinity";
}

// Returns the values of a record; `started`: the time for records without a time, which version 0.1 wrote.
nlohmann::json metrics_of(const nlohmann::ordered_json& record, double started) {
  nlohmann::json metrics = nlohmann::json::array();
  const bool evaluation = is_evaluation(record);
  const double step = number_in(record, "step").value_or(0),
               time = number_in(record, "time").value_or(started);
  for (const auto& [name, value] : record.items()) {
    const auto number = metric_of_json(value);
    if (!number || name == "step" || name == "time" || metrics.size() == max_metrics) continue;
    metrics.push_back({{"key", metric_name(name, evaluation)},
                       {"value", metric_value(*number)},
                       {"timestamp", milliseconds(time)},
                       {"step", static_cast<int64_t>(step)}});
  }
  return metrics;
}

// Calls `send` and returns whether the server accepted the data; logs a warning if it rejects them
// permanently.
template <class Send>
bool accepted(const Send& send) {
  try {
    send();
    return true;
  } catch (const MlflowError& error) {
    if (error.kind != MlflowError::Kind::invalid) throw;
    log::warning("mlflow: {}; skipped", error.what());
    return false;
  }
}

}  // namespace

MlflowSender::MlflowSender(std::filesystem::path folder, const std::optional<std::string>& uri,
                           const std::atomic<bool>* cancelled)
    : folder_(std::move(folder)), cancelled_(cancelled) {
  if (auto known = read_mlflow_sent(folder_)) {
    sent_ = std::move(*known);
  } else {
    sent_ = begin_sent(folder_, uri);
    save();
  }
  uri_ = uri.value_or(sent_.uri);
}

// Stores the progress. If that fails, the same data are sent again, which is harmless.
void MlflowSender::save() {
  try {
    save_mlflow_sent(folder_, sent_);
  } catch (const IoError&) {
  }
}

MlflowSender::State MlflowSender::state_of_run() const {
  const nlohmann::json progress = progress_of(folder_);
  const std::string state = text_in(progress, "state");
  return {state == "finished"  ? "FINISHED"
          : state == "stopped" ? "KILLED"
          : state == "failed"  ? "FAILED"
                               : "RUNNING",
          milliseconds(number_in(progress, "updated").value_or(sent_.started))};
}

bool MlflowSender::is_sent(const nlohmann::ordered_json& record) const {
  return number_in(record, "step").value_or(0) <=
         static_cast<double>(is_evaluation(record) ? sent_.evaluation : sent_.training);
}

int64_t MlflowSender::unsent() const {
  int64_t count = std::ssize(sent_.files) + (sent_.status == state_of_run().status ? 0 : 1);
  each_json_line(read_if_exists(folder_ / "metrics.jsonl"),
                 [&](auto, const auto& record) { count += is_sent(record) ? 0 : 1; });
  return count;
}

void MlflowSender::add(const std::vector<std::string>& files) {
  if (files.empty()) return;
  sent_.files.insert(sent_.files.end(), files.begin(), files.end());
  save();
}

bool MlflowSender::send_next() {
  const MlflowServer server(uri_, cancelled_);
  const State state = state_of_run();
  if (sent_.run_id.empty()) {
    begin_run(server);
  } else if (sent_.status != state.status && state.status == "RUNNING") {
    accepted([&] { server.update_run(sent_.run_id, state.status, std::nullopt); });
    sent_.status = state.status;
  } else if (!send_batch(server) && !send_rest(server, state)) {
    return false;
  }
  save();
  return true;
}

// Sends the items after the records: files and the final state.
bool MlflowSender::send_rest(const MlflowServer& server, const State& state) {
  const MlflowServer::Run run = {sent_.run_id, sent_.artifacts};
  if (!sent_.files.empty()) {
    send_file(server, run, sent_.files.front());
    sent_.files.erase(sent_.files.begin());
    return true;
  }
  if (sent_.status == state.status) return false;
  send_file(server, run, "logger_logs/training_0.log");
  accepted([&] { server.update_run(sent_.run_id, state.status, state.time); });
  sent_.status = state.status;
  return true;
}

void MlflowSender::begin_run(const MlflowServer& server) {
  constexpr const char* id_tag = "stretto.run_id";
  const MlflowRun description = read_mlflow_run(folder_);
  std::optional<MlflowServer::Run> run;
  try {
    sent_.experiment_id = server.find_or_create_experiment(sent_.experiment);
    if (sent_.creating) run = server.find_run(sent_.experiment_id, id_tag, sent_.id);
    sent_.creating = true;
    save();
    nlohmann::json tags = description.tags;
    tags[id_tag] = sent_.id;
    if (!run)
      run = server.create_run(sent_.experiment_id, description.name, milliseconds(sent_.started), tags);
  } catch (const MlflowError& error) {
    if (error.kind != MlflowError::Kind::invalid) throw;
    throw MlflowError(MlflowError::Kind::refused, "{}", error.what());  // nothing can be sent without a run
  }
  nlohmann::json some = nlohmann::json::object();
  const auto send_parameters = [&] {
    accepted([&] { server.log_batch(run->id, nlohmann::json::array(), some); });
    some.clear();
  };
  for (const auto& [name, value] : description.parameters.items()) {
    some[name] = value;
    if (some.size() == max_params) send_parameters();
  }
  if (!some.empty()) send_parameters();
  send_file(server, *run, "config.yaml");
  sent_.run_id = run->id;
  sent_.artifacts = run->artifacts;
  sent_.status = "RUNNING";
  sent_.creating = false;
}

MlflowSender::Batch MlflowSender::next_batch() {
  const std::filesystem::path path = folder_ / "metrics.jsonl";
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && std::exchange(inode_, status.st_ino) != status.st_ino)
    position_ = 0;  // a resumed run has replaced the file
  Batch batch{.training = sent_.training, .evaluation = sent_.evaluation, .position = position_};
  std::ifstream file(path, std::ios::binary);
  file.seekg(position_);
  for (std::string line; std::getline(file, line) && !file.eof();) {
    const auto record = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (record.is_object() && !is_sent(record)) {
      const nlohmann::json more = metrics_of(record, sent_.started);
      if (batch.records > 0 && batch.metrics.size() + more.size() > max_metrics) break;
      batch.metrics.insert(batch.metrics.end(), more.begin(), more.end());
      ++batch.records;
      (is_evaluation(record) ? batch.evaluation : batch.training) =
          static_cast<int64_t>(number_in(record, "step").value_or(0));
    }
    batch.position += std::ssize(line) + 1;
  }
  return batch;
}

bool MlflowSender::send_batch(const MlflowServer& server) {
  const Batch batch = next_batch();
  if (batch.records > 0 &&
      accepted([&] { server.log_batch(sent_.run_id, batch.metrics, nlohmann::json::object()); }))
    records_sent_ += batch.records;
  position_ = batch.position;
  sent_.training = batch.training;
  sent_.evaluation = batch.evaluation;
  return batch.records > 0;
}

void MlflowSender::send_file(const MlflowServer& server, const MlflowServer::Run& run,
                             const std::string& file) {
  const std::filesystem::path path = folder_ / file;
  if (!std::filesystem::exists(path) || files_refused_) return;
  if (MlflowServer::stores_artifacts(run)) {
    accepted([&] { server.put_artifact(run, path, path.filename().string()); });
    return;
  }
  files_refused_ = true;
  log::warning(
      "mlflow: the server stores files in {}, to which stretto does not write; only values are sent. Start `mlflow server` with --serve-artifacts to send files too",
      run.artifacts.empty() ? "an unknown location" : run.artifacts);
}

}  // namespace stretto::track
