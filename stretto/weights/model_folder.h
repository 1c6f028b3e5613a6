#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "stretto/weights/write_weights.h"

namespace stretto::weights {

// A model folder, whose weights are safetensors, or a pytorch_model.bin or shards of it.
class ModelFolder {
 public:
  // Reads names, shapes and types, and executes nothing (weights/torch_file.h). Safetensors are read if there
  // are both. Throws DataError, IoError.
  explicit ModelFolder(const std::filesystem::path& folder);

  // The size of the files that write() writes, with weights as `dtype`.
  int64_t bytes(const std::optional<std::string>& dtype) const {
    return bytes_of(as_written(weights_.stored, dtype));
  }

  // Writes the new folder `target`: safetensors of at most `max_shard_bytes` each, config.json, and copies of
  // the folder's other .json, .txt, .model, .jinja and .md files, including those of its tokenizers. If the
  // folder cannot be completed, it is removed. Throws ConfigError, DataError, IoError.
  void write(const std::filesystem::path& target, int64_t max_shard_bytes,
             const std::optional<std::string>& dtype, const Progress& progress) const;

 private:
  std::filesystem::path folder_;
  Weights weights_;
};

}  // namespace stretto::weights
