#include "stretto/columnar/saved_files.h"

#include <string>

#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/base/json.h"

namespace stretto::columnar {

std::vector<std::filesystem::path> saved_files(const std::filesystem::path& folder) {
  if (std::filesystem::exists(folder / "dataset_dict.json")) {
    throw DataError("{}: a folder with several splits of a data set; give that of one, such as {}",
                    folder.string(), (folder / "train").string());
  }
  const std::filesystem::path state = folder / "state.json";
  if (!std::filesystem::exists(state)) return {};
  const nlohmann::json content = read_json(state);
  std::vector<std::filesystem::path> files;
  try {
    for (const auto& file : content.at("_data_files"))
      files.push_back(folder / file.at("filename").get<std::string>());
  } catch (const nlohmann::json::exception&) {
    throw DataError("{}: it names no files of data (_data_files); save the data set again", state.string());
  }
  return files;
}

}  // namespace stretto::columnar
