#pragma once

#include <filesystem>

#include "stretto/tensor/safetensors.h"

namespace stretto {

// The tensors of a pytorch_model.bin, which refer to its mapping (weights/torch_file.h). Throws like
// TorchFile.
NamedTensors load_pickled_weights(const std::filesystem::path& file);

// The names of the tensors; reads no data.
std::vector<std::string> pickled_weight_names(const std::filesystem::path& file);

}  // namespace stretto
