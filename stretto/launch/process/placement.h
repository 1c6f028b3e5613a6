#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stretto::launch {

// NVIDIA GPUs that ranks of this host can use: the nvidia<n> files of `device_folder` that
// CUDA_VISIBLE_DEVICES (`visible`, if set) permits.
int count_gpus(const std::optional<std::string>& visible,
               const std::filesystem::path& device_folder = "/dev");

// The cores that this process may run on, ascending.
std::vector<int> available_cores();

// The cores of each rank: rank i gets the i-th `threads` of `available`. Empty if there are too few: ranks
// pinned to a shared core would be slower than unpinned ones.
std::vector<std::vector<int>> assign_cores(const std::vector<int>& available, int ranks, int threads);

}  // namespace stretto::launch
