#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "stretto/tensor/safetensors.h"

namespace stretto {

// The weights of a Hugging Face model folder: model.safetensors, or the shards that model.safetensors.index.json names.
// Shard names must stay inside the folder. Throws DataError or IoError naming the missing file.
NamedTensors load_hf_weights(const std::filesystem::path& folder);

// Whether the folder's weights hold a tensor `name`; reads headers only.
bool hf_folder_has(const std::filesystem::path& folder, const std::string& name);

// How weights met a model's parameters.
struct WeightReport {
  std::vector<std::string> missing;     // parameters that no file gave: they keep their initial values
  std::vector<std::string> unexpected;  // weights that no parameter wanted
};

// Gives `parameters` the values of `weights` (same names): their memory, where the type is the parameter's own, else a
// copy. Throws DataError with the tensor's name and both shapes.
WeightReport set_weights(const NamedTensors& weights, const NamedTensors& parameters,
                         const std::string& source);

}  // namespace stretto
