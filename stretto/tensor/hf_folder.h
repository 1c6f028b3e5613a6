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

// Differences between weights and the parameters of a model.
struct WeightReport {
  std::vector<std::string> missing;     // parameters without a weight, which keep their initial values
  std::vector<std::string> unexpected;  // weights without a parameter
};

// Sets `parameters` to the values of `weights` of the same names, sharing their memory if dtype and device
// are the same. Without `convert` they take the dtype of the weights. Throws DataError with the tensor's name
// and both shapes.
WeightReport set_weights(const NamedTensors& weights, const NamedTensors& parameters,
                         const std::string& source, bool convert = true);

}  // namespace stretto
