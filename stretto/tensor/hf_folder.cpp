#include "stretto/tensor/hf_folder.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/tensor/pickled_weights.h"
#include "stretto/weights/weight_files.h"

namespace stretto {

namespace {

// Loads the shards of pytorch_model.bin. Throws if a tensor of the index is missing in its shard.
NamedTensors load_pickled_folder(const std::map<std::filesystem::path, std::vector<std::string>>& files) {
  NamedTensors weights;
  for (const auto& [path, wanted] : files) {
    NamedTensors tensors = load_pickled_weights(path);
    for (const std::string& name : wanted) {
      if (!tensors.contains(name))
        throw DataError("{}: lacks the tensor {}, which the index names there", path.string(), name);
    }
    weights.merge(tensors);
  }
  return weights;
}

bool has_pickled(const std::filesystem::path& folder, const std::string& name) {
  for (const auto& [path, tensors] : weights::pickled_weight_files(folder)) {
    const auto names = tensors.empty() ? pickled_weight_names(path) : tensors;
    if (std::ranges::find(names, name) != names.end()) return true;
  }
  return false;
}

}  // namespace

NamedTensors load_hf_weights(const std::filesystem::path& folder) {
  if (!weights::has_weight_files(folder)) {
    if (const auto files = weights::pickled_weight_files(folder); !files.empty())
      return load_pickled_folder(files);
  }
  NamedTensors weights;
  for (const auto& [path, tensors] : weights::weight_files(folder)) {
    const SafetensorsFile file(path);
    for (const std::string& name : tensors.empty() ? file.names() : tensors)
      weights.emplace(name, file.load(name));
  }
  return weights;
}

bool hf_folder_has(const std::filesystem::path& folder, const std::string& name) {
  if (!weights::has_weight_files(folder)) return has_pickled(folder, name);
  for (const auto& [path, tensors] : weights::weight_files(folder)) {
    if (tensors.empty() ? SafetensorsFile(path).has(name) : std::ranges::find(tensors, name) != tensors.end())
      return true;
  }
  return false;
}

}  // namespace stretto
