#pragma once

#include <filesystem>
#include <string>

#include "stretto/trainer/module.h"

namespace stretto {

// The folder with a run's results; written by rank 0 only, each file atomically.
class RunFolder {
 public:
  // Creates the folder; throws IoError if it cannot be written to.
  explicit RunFolder(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path model() const { return path_ / "model"; }

  // Makes the folder that of a run which takes its first step now; until then nothing in it changes. Writes config.yaml.
  // Unless the run `continues` the one that is there, that run's files (config.yaml, metrics, results, model) no longer
  // belong to this folder: with a model they are moved to previous/, in place of what was there; without one, removed.
  void begin_run(const std::string& config, bool continues) const;

  void write_text(const std::string& name, const std::string& content) const;
  void write_json(const std::string& name, const nlohmann::ordered_json& content) const;

  // Replaces the model folder by the module's current one.
  void save_model(const Module& module, const NamedTensors& weights) const;

 private:
  void set_aside() const;

  std::filesystem::path path_;
};

}  // namespace stretto
