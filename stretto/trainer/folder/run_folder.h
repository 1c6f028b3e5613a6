#pragma once

#include <filesystem>
#include <string>

#include "stretto/base/new_folder.h"
#include "stretto/trainer/api/module.h"

namespace stretto::trainer {

// What is done with the files of an earlier run in the folder of a new one.
enum class EarlierFiles {
  continued,  // they are of the same run
  kept,       // in previous-1/, previous-2/ and so on
  removed     // training.fast_dev_run
};

// The folder with a run's results; written by rank 0 only, each file atomically.
class RunFolder {
 public:
  // Creates the folder; throws IoError if it cannot be written to. A new folder is removed with this object
  // if it is empty.
  explicit RunFolder(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path model() const { return path_ / "model"; }

  // Called when the run takes its first step; before that, nothing in the folder changes. Writes config.yaml.
  // The files of an earlier run are config.yaml, metrics, results, models and checkpoints; if they include
  // neither a model nor a checkpoint, they are removed instead of kept.
  void begin_run(const std::string& config, EarlierFiles earlier) const;

  void write_text(const std::string& name, const std::string& content) const;
  void write_json(const std::string& name, const nlohmann::ordered_json& content) const;

  // Replaces the model folder `name` by one written by module.save(). Unless `state` is null, it is written
  // to state.json in it. If it throws, the new folder is removed.
  void save_model(const Module& module, const ListedSource& weights, const std::string& name = "model",
                  const nlohmann::ordered_json& state = nullptr) const;

 private:
  bool holds_results() const;
  void set_aside(bool keep) const;
  void name_previous() const;

  std::filesystem::path path_;
  NewFolder made_;
  std::filesystem::path previous_;  // the earlier run, while it is being moved
};

}  // namespace stretto::trainer
