#include "stretto/weights/model_folder.h"

#include <algorithm>
#include <array>
#include <map>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/checkpoint_format/manifest.h"
#include "stretto/text/copy_tokenizer.h"
#include "stretto/text/tokenizer_load.h"
#include "stretto/weights/new_folder.h"
#include "stretto/weights/torch_file.h"
#include "stretto/weights/weight_files.h"
#include "stretto/weights/weight_source.h"

namespace stretto::weights {
namespace {

using weights::PickledTensor;
using weights::TorchFile;

struct Source {
  std::shared_ptr<TorchFile> file;
  const PickledTensor* tensor;
};

std::map<std::string, Source> sources_of(const std::filesystem::path& folder) {
  std::map<std::string, Source> sources;
  for (const auto& [path, wanted] : weights::pickled_weight_files(folder)) {
    const auto file = std::make_shared<TorchFile>(path);
    for (const auto& [name, tensor] : file->tensors()) {
      if (wanted.empty()) sources[name] = {file, &tensor};
    }
    for (const std::string& name : wanted) {
      const auto found = file->tensors().find(name);
      if (found == file->tensors().end())
        throw DataError("{}: lacks the tensor {}, which the index names there", path.string(), name);
      sources[name] = {file, &found->second};
    }
  }
  return sources;
}

bool is_companion(const std::filesystem::path& file) {
  static constexpr std::array extensions = {".json", ".txt", ".model", ".jinja", ".md"};
  if (file.filename().string().ends_with(".index.json")) return false;
  return std::ranges::find(extensions, file.extension()) != extensions.end() ||
         std::ranges::count(text::tokenizer_file_names(), file.filename().string()) > 0;
}

Weights pickled_weights(const std::filesystem::path& folder) {
  Weights weights;
  const auto sources = sources_of(folder);
  for (const auto& [name, source] : sources) {
    if (name == "__metadata__")
      throw DataError("{}: a tensor is named __metadata__, which safetensors files cannot hold",
                      folder.string());
    int64_t bytes = checkpoint_format::element_bytes(source.tensor->dtype);
    for (const int64_t size : source.tensor->shape) bytes *= size;
    weights.stored.push_back({name, source.tensor->dtype, source.tensor->shape, bytes});
  }
  weights.read = [sources](const std::string& name, const Weights::Use& use) {
    const Source& source = sources.at(name);
    source.file->read(*source.tensor, use);
  };
  return weights;
}

Weights safetensors_weights(const std::filesystem::path& folder) {
  const auto source = std::make_shared<WeightSource>(folder);
  Weights weights;
  for (const auto& [name, entry] : source->weights())
    weights.stored.push_back({name, entry.dtype, entry.shape, entry.end - entry.begin});
  weights.read = [source](const std::string& name, const Weights::Use& use) {
    constexpr int64_t part_bytes = int64_t{4} << 20;
    const SafetensorsEntry& entry = source->weights().at(name);
    const int64_t element = checkpoint_format::element_bytes(entry.dtype), bytes = entry.end - entry.begin;
    std::string part;
    for (int64_t begin = 0; begin < bytes; begin += part_bytes) {
      part.resize(static_cast<size_t>(std::min(part_bytes, bytes - begin)));
      source->read(name, begin / element, entry.dtype, part);
      use(part);
    }
  };
  return weights;
}

void copy_file_to(const std::filesystem::path& file, const std::filesystem::path& folder) {
  write_file_atomic(folder / file.filename(), MappedFile(file).text());
}

}  // namespace

ModelFolder::ModelFolder(const std::filesystem::path& folder)
    : folder_(folder),
      weights_(has_weight_files(folder) ? safetensors_weights(folder) : pickled_weights(folder)) {}

void ModelFolder::write(const std::filesystem::path& target, int64_t max_shard_bytes,
                        const std::optional<std::string>& dtype, const Progress& progress) const {
  const auto config = folder_ / "config.json";
  if (!std::filesystem::exists(config))
    throw DataError("{}: there is no config.json; expected a model folder", folder_.string());
  std::optional<std::string> changed;
  if (dtype) changed = with_dtype(std::string(MappedFile(config).text()), config.string(), *dtype);
  NewFolder folder(target, "the model");
  write_weights(weights_, folder.path(), max_shard_bytes, dtype, progress);
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (!entry.is_regular_file() || !is_companion(entry.path())) continue;
    copy_file_to(entry.path(), folder.path());
  }
  if (const auto words = folder_ / text::words_folder / "tokenizer.json"; std::filesystem::exists(words)) {
    make_folders(folder.path() / text::words_folder);
    copy_file_to(words, folder.path() / text::words_folder);
  }
  if (changed) write_file_atomic(folder.path() / "config.json", *changed);
  folder.commit();
}

}  // namespace stretto::weights
