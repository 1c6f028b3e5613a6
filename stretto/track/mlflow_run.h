#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/base/fd.h"
#include "stretto/track/registry.h"

namespace stretto::track {

// The properties of a run on an MLflow server besides its records, from config.yaml in the run folder and the
// environment.
struct MlflowRun {
  std::string uri;                     // track.logging_dir or MLFLOW_TRACKING_URI; empty: neither is a URL
  std::string experiment = "Default";  // or track.experiment, or MLFLOW_EXPERIMENT_NAME
  std::string name = {};
  nlohmann::json tags = nlohmann::json::object(), parameters = nlohmann::json::object();  // objects of texts
};

// Throws IoError, ConfigError for a config.yaml that cannot be read.
MlflowRun read_mlflow_run(const std::filesystem::path& folder);

// Throws ConfigError if the tracker mlflow has no URL of a server, or an invalid one.
void check_mlflow(const TrackerSetup& setup);

// The URL of the server; nullopt if none is set.
std::optional<std::string> mlflow_uri(const TrackerSetup& setup);

// A run on the server, and the records that have been sent: mlflow/sent.json in the run folder.
struct MlflowSent {
  std::string uri = {}, experiment = {};
  std::string id = {};  // a tag by which the run is found again
  double started = 0;   // s since 1970
  // Assigned by the server; empty until it has the run.
  std::string experiment_id = {}, run_id = {}, artifacts = {}, status = {};
  bool creating = false;                   // the run was being created
  int64_t training = -1, evaluation = -1;  // the last steps sent
  std::vector<std::string> files = {};     // still to be sent, relative to the run folder
};

// Reads mlflow/sent.json; nullopt if nothing was sent yet. Throws IoError, DataError for a damaged file.
std::optional<MlflowSent> read_mlflow_sent(const std::filesystem::path& folder);
void save_mlflow_sent(const std::filesystem::path& folder, const MlflowSent& sent);
void remove_mlflow_sent(const std::filesystem::path& folder);

// Takes the lock that a sender must hold; invalid if another process has it.
Fd lock_mlflow(const std::filesystem::path& folder);

}  // namespace stretto::track
