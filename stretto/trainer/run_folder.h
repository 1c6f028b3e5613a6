#pragma once

#include <filesystem>
#include <string>

#include "stretto/trainer/module.h"

namespace stretto {

// The folder a run leaves behind; written by rank 0 only, each file whole or not at all.
class RunFolder {
 public:
  // Makes the folder; throws IoError when it cannot be written.
  explicit RunFolder(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path model() const { return path_ / "model"; }

  void write_text(const std::string& name, const std::string& content) const;
  void write_json(const std::string& name, const nlohmann::ordered_json& content) const;

  // Puts the module's model folder in place of the last one.
  void save_model(const Module& module, const NamedTensors& weights) const;

 private:
  std::filesystem::path path_;
};

}  // namespace stretto
