#include "stretto/track/mlflow_sender.h"

#include "stretto/base/log.h"

namespace stretto {
namespace {

constexpr size_t max_metrics = 1000, max_params = 100;  // of one request

MlflowServer::Run run_of(const mlflow_outbox::Sent& sent) { return {sent.run_id, sent.artifacts}; }

}  // namespace

MlflowSender::MlflowSender(std::filesystem::path run, std::optional<std::string> uri,
                           const std::atomic<bool>* cancelled)
    : run_(std::move(run)),
      uri_(std::move(uri)),
      cancelled_(cancelled),
      sent_(mlflow_outbox::read_sent(run_)) {}

// Without it, entries are only sent again.
void MlflowSender::save() {
  try {
    mlflow_outbox::save_sent(run_, sent_);
  } catch (const IoError&) {
  }
}

bool MlflowSender::send_next() {
  const auto entries = mlflow_outbox::read_entries(run_, sent_.position, max_metrics);
  if (entries.empty()) return false;
  const bool begins = entries[0].content.contains("run");
  const std::string uri = uri_ ? *uri_ : begins ? entries[0].content["run"].value("uri", "") : sent_.uri;
  const MlflowServer server(uri, cancelled_);
  // Values of consecutive entries share a request.
  nlohmann::json metrics = nlohmann::json::array();
  size_t next = 0;
  for (; next < entries.size() && entries[next].content.contains("metrics"); ++next) {
    const nlohmann::json& values = entries[next].content["metrics"];
    if (next > 0 && metrics.size() + values.size() > max_metrics) break;
    for (const auto& value : values) {
      if (metrics.size() < max_metrics)
        metrics.push_back({{"key", value.at(0)},
                           {"value", value.at(1)},
                           {"timestamp", entries[next].content.at("time")},
                           {"step", value.at(2)}});
    }
  }
  const int64_t end = entries[next > 0 ? next - 1 : 0].end;
  try {
    if (next > 0) {
      server.log_batch(sent_.run_id, metrics, nlohmann::json::object());
    } else {
      send(server, entries[0].content);
    }
  } catch (const MlflowError& error) {
    if (error.kind != MlflowError::Kind::invalid) throw;
    sent_.position = end;
    save();
    throw;
  }
  sent_.position = end;
  save();
  return true;
}

void MlflowSender::send(const MlflowServer& server, const nlohmann::json& entry) {
  if (entry.contains("run")) {
    begin_run(server, entry["run"]);
  } else if (entry.contains("params")) {
    nlohmann::json some = nlohmann::json::object();
    for (const auto& [name, value] : entry["params"].items()) {
      some[name] = value;
      if (some.size() < max_params) continue;
      server.log_batch(sent_.run_id, nlohmann::json::array(), some);
      some.clear();
    }
    if (!some.empty()) server.log_batch(sent_.run_id, nlohmann::json::array(), some);
  } else if (entry.contains("status")) {
    const std::string status = entry["status"];
    server.update_run(sent_.run_id, status,
                      status == "RUNNING" ? std::nullopt : std::optional<int64_t>(entry.at("time")));
  } else if (entry.contains("artifact")) {
    send_artifact(server, entry["artifact"]);
  }
}

void MlflowSender::begin_run(const MlflowServer& server, const nlohmann::json& run) {
  if (!sent_.run_id.empty()) return;
  constexpr const char* id_tag = "stretto.run_id";
  sent_.uri = server.uri();
  sent_.experiment_id = server.find_or_create_experiment(run.at("experiment"));
  std::optional<MlflowServer::Run> made;
  if (sent_.creating) made = server.find_run(sent_.experiment_id, id_tag, run.at("id"));
  sent_.creating = true;
  save();
  nlohmann::json tags = run.at("tags");
  tags[id_tag] = run.at("id");
  if (!made) made = server.create_run(sent_.experiment_id, run.at("name"), run.at("time"), tags);
  sent_.run_id = made->id;
  sent_.artifacts = made->artifacts;
  sent_.creating = false;
}

void MlflowSender::send_artifact(const MlflowServer& server, const std::string& file) {
  const std::filesystem::path path = run_ / file;
  if (!std::filesystem::exists(path) || artifacts_refused_) return;
  if (!MlflowServer::stores_artifacts(run_of(sent_))) {
    artifacts_refused_ = true;
    log::warning(
        "mlflow: the server stores files in {}, to which stretto does not write; only values are sent. Start `mlflow server` with --serve-artifacts to send files too",
        sent_.artifacts.empty() ? "an unknown place" : sent_.artifacts);
    return;
  }
  server.put_artifact(run_of(sent_), path, path.filename().string());
}

}  // namespace stretto
