#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "stretto/checkpoint_format/manifest.h"
#include "stretto/weights/write_weights.h"

namespace stretto::weights {

struct ExportOptions {
  // A model folder from which config.json and the tokenizer are copied.
  std::optional<std::filesystem::path> like = {};
  int64_t max_shard_bytes = 5'000'000'000;
  // The type of floating-point weights: "bfloat16", ...; unset: as in the checkpoint.
  std::optional<std::string> dtype = {};
};

// The prefix of the names of a model's tensors in a checkpoint.
inline constexpr std::string_view model_prefix = "model.";

// The bytes of the model in a checkpoint, its tensors "model.<name>", and of the files that export_model
// writes.
int64_t model_bytes(const checkpoint_format::Manifest& manifest,
                    const std::optional<std::string>& dtype = {});

// Writes the model of a checkpoint to the new folder `target` for Hugging Face's from_pretrained: the
// weights, config.json and the tokenizer's files, which come from the checkpoint. Checkpoints of earlier
// versions lack the tokenizer: it is that of the run's recipe, or in the run's folder model/. A program's own
// model may have neither, which is logged. If the folder cannot be completed, it is removed. Throws
// ConfigError, DataError naming missing or damaged parts, IoError.
void export_model(
    const std::filesystem::path& checkpoint, const std::filesystem::path& target,
    const ExportOptions& options = {}, const Progress& progress = [](int64_t) {});

}  // namespace stretto::weights
