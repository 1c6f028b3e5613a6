#include "stretto/weights/export.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/checkpoint_format/folder.h"
#include "stretto/checkpoint_format/tensor_reader.h"
#include "stretto/text/copy_tokenizer.h"
#include "stretto/text/tokenizer.h"
#include "stretto/text/tokenizer_load.h"
#include "stretto/weights/float_types.h"
#include "stretto/weights/new_folder.h"

namespace stretto::weights {
namespace {

std::vector<weights::SafetensorsTensor> weights_of(const checkpoint_format::Manifest& manifest) {
  std::vector<weights::SafetensorsTensor> weights;
  for (const auto& [name, entry] : manifest.tensors) {
    if (!name.starts_with(model_prefix)) continue;
    weights.push_back({name.substr(model_prefix.size()), entry.dtype, entry.shape,
                       count_elements(entry.shape) * checkpoint_format::element_bytes(entry.dtype)});
  }
  return weights;
}

// Lite numbers the models of a program from the second on: model1.<name>.
void note_other_models(const checkpoint_format::Manifest& manifest) {
  const auto is_other = [](const auto& tensor) {
    const std::string& name = tensor.first;
    return name.starts_with("model") && name.size() > 5 && name[5] >= '0' && name[5] <= '9';
  };
  if (std::ranges::any_of(manifest.tensors, is_other))
    log::warning("the checkpoint holds several models; only the first, model.<name>, is written");
}

bool is_tokenizer(const std::filesystem::path& path) {
  return std::filesystem::is_regular_file(path) || text::has_tokenizer(path);
}

// The source of config.json and of the tokenizer.
class Companions {
 public:
  Companions(const std::filesystem::path& checkpoint, const checkpoint_format::Manifest& manifest,
             const std::optional<std::filesystem::path>& like)
      : checkpoint_(checkpoint), manifest_(manifest), like_(like) {
    if (like && !std::filesystem::exists(*like / "config.json"))
      throw ConfigError("--like {}: there is no config.json in it; expected a model folder", like->string());
    const auto folder = std::filesystem::absolute(checkpoint / "").parent_path().parent_path();
    const auto model = folder.parent_path() / "model";
    if (folder.filename() == "checkpoints" && std::filesystem::exists(model / "config.json"))
      run_model_ = model;
  }

  // Throws ConfigError before anything is written if the tokenizer of the run does not exist.
  void require_tokenizer() const { tokenizer(); }

  // `dtype`: the dtype of the weights, if it differs from the checkpoint's.
  void write(const std::filesystem::path& folder, const std::optional<std::string>& dtype) const {
    if (const auto [text, name] = config(); text) {
      write_file_atomic(folder / "config.json", dtype ? with_dtype(*text, name, *dtype) : *text);
    } else {
      log::warning(
          "the checkpoint holds no config.json (its program has a model of its own): only the weights were written; --like FOLDER copies config.json and the tokenizer of a model folder");
    }
    if (const auto found = tokenizer()) text::copy_tokenizer(*found, lowercase(*found), folder);
    const auto generation = (like_ ? *like_ : checkpoint_) / "generation_config.json";
    if (std::filesystem::exists(generation))
      write_file_atomic(folder / generation.filename(), MappedFile(generation).text());
  }

 private:
  // The text of config.json and its origin.
  std::pair<std::optional<std::string>, std::string> config() const {
    const auto stored = manifest_.scalars.find("exported_config");
    const bool is_stored = stored != manifest_.scalars.end() && stored->is_object();
    if (!like_ && is_stored) return {stored->dump(2) + "\n", "exported_config"};
    if (!like_ && !run_model_) return {};
    const auto file = (like_ ? *like_ : *run_model_) / "config.json";
    return {std::string(MappedFile(file).text()), file.string()};
  }

  std::optional<std::filesystem::path> tokenizer() const {
    if (like_) return text::has_tokenizer(*like_) ? like_ : std::nullopt;
    if (text::has_tokenizer(checkpoint_)) return checkpoint_;
    const nlohmann::json path = setting("tokenizer.path");
    if (path.is_string() && is_tokenizer(path.get<std::string>())) return path.get<std::string>();
    if (run_model_ && text::has_tokenizer(*run_model_)) return run_model_;
    if (!path.is_string()) {
      const auto stored = manifest_.scalars.find("exported_config");
      if (stored == manifest_.scalars.end() || !stored->is_object() ||
          stored->value("model_type", "") != "sequence-tagger")
        return std::nullopt;
      throw ConfigError(
          "the tokenizer of this sequence-tagger is in the folder model of its run, which is not there; copy the run's folder as a whole, or let the run evaluate once, which writes it");
    }
    throw ConfigError(
        "the tokenizer of the run, {} (tokenizer.path), is not there; pass --like FOLDER with a model folder that has the tokenizer and config.json, such as that of model.path",
        path.get<std::string>());
  }

  bool lowercase(const std::filesystem::path& tokenizer) const {
    const nlohmann::json chosen = setting("tokenizer.lowercase");
    text::TokenizerOptions options;
    if (chosen.is_boolean()) options.lowercase = chosen.get<bool>();
    return text::Tokenizer::load(tokenizer, options).lowercase();
  }

  // A setting of the recipe; null if there is none.
  nlohmann::json setting(const char* name) const {
    const auto recipe = manifest_.scalars.find("recipe");
    if (recipe == manifest_.scalars.end() || !recipe->is_object()) return nullptr;
    const auto value = recipe->find(name);
    return value == recipe->end() ? nlohmann::json(nullptr) : *value;
  }

  const std::filesystem::path& checkpoint_;
  const checkpoint_format::Manifest& manifest_;
  const std::optional<std::filesystem::path>& like_;
  std::optional<std::filesystem::path> run_model_;  // of the run that the checkpoint belongs to
};

}  // namespace

int64_t model_bytes(const checkpoint_format::Manifest& manifest, const std::optional<std::string>& dtype) {
  return bytes_of(as_written(weights_of(manifest), dtype));
}

void export_model(const std::filesystem::path& checkpoint, const std::filesystem::path& target,
                  const ExportOptions& options, const Progress& progress) {
  const checkpoint_format::Manifest manifest = checkpoint_format::read_manifest(checkpoint);
  if (options.dtype) float_type(*options.dtype);  // refuses other names before anything is looked for
  const auto stored = weights_of(manifest);
  if (stored.empty()) {
    throw DataError("{}: the checkpoint has no tensors model.<name>, so there is no model to export",
                    checkpoint.string());
  }
  note_other_models(manifest);
  const Companions companions(checkpoint, manifest, options.like);
  companions.require_tokenizer();
  NewFolder folder(target, "the model");
  checkpoint_format::TensorReader reader(checkpoint, manifest);
  const Weights weights = {stored, [&](const std::string& name, const Weights::Use& use) {
                             reader.read(std::string(model_prefix) + name, use);
                           }};
  write_weights(weights, folder.path(), options.max_shard_bytes, options.dtype, progress);
  companions.write(folder.path(), options.dtype);
  folder.commit();
}

}  // namespace stretto::weights
