#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "stretto/tensor/safetensors.h"

namespace stretto {

// The weights of a Hugging Face model folder: model.safetensors, or the shards in
// model.safetensors.index.json, which must be inside the folder; otherwise pytorch_model.bin or the shards of
// its index (pickled_weights.h). Throws DataError or IoError naming the missing file.
NamedTensors load_hf_weights(const std::filesystem::path& folder);

// Whether the folder's weights include a tensor `name`; reads headers only.
bool hf_folder_has(const std::filesystem::path& folder, const std::string& name);

}  // namespace stretto
