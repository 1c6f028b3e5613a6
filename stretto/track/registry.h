#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stretto/track/tracker.h"

namespace stretto {

// The settings of section `track` from which trackers are made.
struct TrackerSetup {
  std::filesystem::path folder;                           // the run folder
  std::optional<std::string> logging_dir = std::nullopt;  // a folder, or a URL
  std::optional<std::string> experiment = std::nullopt;
  std::optional<std::string> run_name = std::nullopt;  // unset: the last part of `folder`
  std::vector<std::string> tags = {};                  // "key=value"

  bool has_url() const;
  std::string name_of_run() const;
  // The folder for files of trackers: logging_dir/NAME_OF_RUN if logging_dir is a folder, else the run
  // folder.
  std::filesystem::path files() const;
};

// A name in `track.trackers`, and the function that makes its tracker.
struct TrackerKind {
  std::string name;
  std::string help;  // "metrics.jsonl, one JSON object per record"
  std::function<std::shared_ptr<Tracker>(const TrackerSetup&)> make;
  std::function<void(const TrackerSetup&)> check = {};  // called before ranks start; throws ConfigError
};

// Makes a tracker available to recipes. Throws ConfigError if the name is taken. Not thread-safe: call it at
// the start of a program.
void register_tracker(TrackerKind kind);

// All kinds and their names, in the order of registration.
const std::vector<TrackerKind>& tracker_kinds();
std::vector<std::string> tracker_names();

// Throws ConfigError for an unknown name.
const TrackerKind& find_tracker(const std::string& name);

}  // namespace stretto
