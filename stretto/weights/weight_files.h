#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace stretto::weights {

inline constexpr const char* weights_name = "model.safetensors";
inline constexpr const char* weights_index_name = "model.safetensors.index.json";

// The weight files of a Hugging Face model folder: model.safetensors, or the shards in
// model.safetensors.index.json, which must be inside the folder.

// Whether the folder has such files.
bool has_weight_files(const std::filesystem::path& folder);

// Each file with the tensors that are read from it; an empty list: all of its tensors. Throws DataError
// naming a missing shard, a malformed index, or a folder without weights.
std::map<std::filesystem::path, std::vector<std::string>> weight_files(const std::filesystem::path& folder);

// Whether the folder has weights as torch.save writes them.
bool has_pickled_weights(const std::filesystem::path& folder);

// Like the function above, for files of torch.save, which are read if there are no safetensors:
// pytorch_model.bin, or the shards in pytorch_model.bin.index.json. Returns an empty map if there are none.
std::map<std::filesystem::path, std::vector<std::string>> pickled_weight_files(
    const std::filesystem::path& folder);

}  // namespace stretto::weights
