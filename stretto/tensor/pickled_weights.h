#pragma once

#include <filesystem>

#include "stretto/tensor/safetensors.h"

namespace stretto {

// The tensors of a pytorch_model.bin (a state_dict that torch.save of PyTorch 1.6 or later wrote). Its pickle is read by
// archive/pickle.h, which executes nothing. Throws DataError, naming the file, for one that refers to anything but tensors, is cut
// short or has another format; IoError if it cannot be read.
NamedTensors load_pickled_weights(const std::filesystem::path& file);

// The names of the tensors; reads no data.
std::vector<std::string> pickled_weight_names(const std::filesystem::path& file);

}  // namespace stretto
