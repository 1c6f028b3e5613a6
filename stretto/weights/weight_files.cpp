#include "stretto/weights/weight_files.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/json.h"

namespace stretto::weights {
namespace {

std::filesystem::path shard_path(const std::filesystem::path& index, const std::string& tensor,
                                 const nlohmann::json& file) {
  if (!file.is_string()) throw DataError("{}: weight_map.{} is not a file name", index.string(), tensor);
  const auto name = file.get<std::string>();
  if (name.empty() || std::filesystem::path(name).filename() != name) {
    throw DataError("{}: \"{}\" is outside the model's folder; expected a file name", index.string(), name);
  }
  return index.parent_path() / name;
}

std::map<std::filesystem::path, std::vector<std::string>> read_index(const std::filesystem::path& path) {
  const nlohmann::json index = read_json(path);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    throw DataError("{}: there is no \"weight_map\" object", path.string());
  std::map<std::filesystem::path, std::vector<std::string>> files;
  for (const auto& [tensor, file] : index["weight_map"].items())
    files[shard_path(path, tensor, file)].push_back(tensor);
  for (const auto& [file, tensors] : files) {
    if (std::filesystem::exists(file)) continue;
    throw DataError(
        "{}: the shard {} is missing ({} of {} are there); copy the model folder again", path.string(),
        file.filename().string(),
        std::ranges::count_if(files, [](const auto& one) { return std::filesystem::exists(one.first); }),
        files.size());
  }
  return files;
}

}  // namespace

bool has_pickled_weights(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder / "pytorch_model.bin") ||
         std::filesystem::exists(folder / "pytorch_model.bin.index.json");
}

bool has_weight_files(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder / weights_name) ||
         std::filesystem::exists(folder / weights_index_name);
}

std::map<std::filesystem::path, std::vector<std::string>> weight_files(const std::filesystem::path& folder) {
  if (std::filesystem::exists(folder / weights_name)) return {{folder / weights_name, {}}};
  if (std::filesystem::exists(folder / weights_index_name)) return read_index(folder / weights_index_name);
  const bool pickled = has_pickled_weights(folder);
  throw DataError(
      "{}: there is neither model.safetensors nor model.safetensors.index.json{}", folder.string(),
      pickled
          ? "; pytorch_model.bin is read by train and predict, but not here: `stretto convert FOLDER NEW` writes it as safetensors"
          : "");
}

std::map<std::filesystem::path, std::vector<std::string>> pickled_weight_files(
    const std::filesystem::path& folder) {
  const auto file = folder / "pytorch_model.bin", index = folder / "pytorch_model.bin.index.json";
  if (std::filesystem::exists(file)) return {{file, {}}};
  if (std::filesystem::exists(index)) return read_index(index);
  return {};
}

}  // namespace stretto::weights
