#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stretto::launch {

// NVIDIA GPUs that ranks of this host can use: the nvidia<n> files of `device_folder`, as far as
// CUDA_VISIBLE_DEVICES
// (`visible`, if set) lets them be seen.
int count_gpus(const std::optional<std::string>& visible,
               const std::filesystem::path& device_folder = "/dev");

// The cores this process may run on, in ascending order.
std::vector<int> available_cores();

// Which cores each rank is to run on: rank i gets the i-th `threads` of `available`. Empty when there are not
// enough: then nobody is pinned, as ranks that share a core by force would be worse off.
std::vector<std::vector<int>> assign_cores(const std::vector<int>& available, int ranks, int threads);

}  // namespace stretto::launch
