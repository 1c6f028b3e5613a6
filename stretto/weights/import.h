#pragma once

#include <filesystem>

#include "stretto/weights/export.h"

namespace stretto::weights {

// Writes the new checkpoint `target`: the state of the checkpoint `state` (optimizer, schedule, position in
// the data, ...) with the weights of the model folder `model`. The folder must have exactly the checkpoint's
// weights, with the same shapes and the same or a narrower dtype. If the checkpoint cannot be completed, it
// is removed. Throws DataError naming what differs, is missing or damaged; ConfigError, IoError.
void import_model(
    const std::filesystem::path& model, const std::filesystem::path& state,
    const std::filesystem::path& target, const Progress& progress = [](int64_t) {});

// The bytes of a checkpoint's files.
int64_t checkpoint_bytes(const checkpoint_format::Manifest& manifest);

}  // namespace stretto::weights
