#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/base/fd.h"
#include "stretto/track/registry.h"

namespace stretto {

// What an MLflow server gets of a run besides its records, by config.yaml in the run folder and the environment.
struct MlflowRun {
  std::string uri;                     // track.logging_dir or MLFLOW_TRACKING_URI; empty: neither is a URL
  std::string experiment = "Default";  // or track.experiment, or MLFLOW_EXPERIMENT_NAME
  std::string name = {};
  nlohmann::json tags = nlohmann::json::object(), parameters = nlohmann::json::object();  // of texts
};

// Throws IoError, ConfigError for a config.yaml that cannot be read.
MlflowRun read_mlflow_run(const std::filesystem::path& folder);

// Throws ConfigError if the tracker mlflow has no URL of a server, or one that cannot be.
void check_mlflow(const TrackerSetup& setup);

// The URL of the server; nullopt where none is set.
std::optional<std::string> mlflow_uri(const TrackerSetup& setup);

// A run on the server, and how far its records have been sent: mlflow/sent.json in the run folder.
struct MlflowSent {
  std::string uri = {}, experiment = {};
  std::string id = {};  // a tag of the run, by which it is found again
  double started = 0;   // s since 1970
  // Of the server; empty until it has the run.
  std::string experiment_id = {}, run_id = {}, artifacts = {}, status = {};
  bool creating = false;                   // the run was being created
  int64_t training = -1, evaluation = -1;  // the last steps sent
  std::vector<std::string> files = {};     // still to be sent, relative to the run folder
};

// nullopt where nothing was sent yet. Throws IoError, DataError for a damaged file.
std::optional<MlflowSent> read_mlflow_sent(const std::filesystem::path& folder);
void save_mlflow_sent(const std::filesystem::path& folder, const MlflowSent& sent);
void remove_mlflow_sent(const std::filesystem::path& folder);

// Taken by whoever sends; invalid if another process has it.
Fd lock_mlflow(const std::filesystem::path& folder);

}  // namespace stretto
