#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/log.h"
#include "stretto/text/tokenizer.h"
#include "stretto/text/tokenizer_files.h"

namespace stretto::text {
namespace {

namespace fs = std::filesystem;

// Of one file; `config` is an empty path for none.
TokenizerParts parts_of_file(const fs::path& path, const fs::path& config, const TokenizerOptions& options) {
  const nlohmann::json settings = config.empty() ? nlohmann::json::object() : read_json(config);
  if (path.extension() == ".json") {
    return parse_tokenizer_json(read_json(path), path.string(), settings, config.string(), options);
  }
  return parse_vocabulary(read_file(path), path.string(), settings, config.string(), options);
}

TokenizerParts parts_of_folder(const fs::path& folder, const TokenizerOptions& options) {
  const fs::path config = folder / "tokenizer_config.json";
  for (const char* name : {"tokenizer.json", "vocab.txt"}) {
    if (fs::exists(folder / name)) {
      return parts_of_file(folder / name, fs::exists(config) ? config : fs::path(), options);
    }
  }
  throw DataError("{}: holds no tokenizer: expected tokenizer.json or vocab.txt", folder.string());
}

TokenizerParts parts_of(const fs::path& path, const TokenizerOptions& options) {
  if (fs::is_directory(path)) return parts_of_folder(path, options);
  if (!fs::exists(path)) throw DataError("{}: no such file or folder; expected a tokenizer", path.string());
  if (path.filename() == "tokenizer_config.json") return parts_of_folder(path.parent_path(), options);
  return parts_of_file(path, {}, options);
}

}  // namespace

Tokenizer Tokenizer::load(const fs::path& path, const TokenizerOptions& options) {
  TokenizerParts parts = parts_of(path, options);
  const std::vector<AddedToken> added = parts.added_tokens;
  const std::string name = parts.name;
  Tokenizer tokenizer(std::move(parts));
  for (const AddedToken& token : added) {
    const auto id = tokenizer.id(token.content);
    if (id && token.id_in_file && *id != *token.id_in_file) {
      log::warning(
          "{}: added token \"{}\" has the id {} by its place in the vocabulary; the {} in the file is ignored",
          name, token.content, *id, *token.id_in_file);
    }
  }
  return tokenizer;
}

}  // namespace stretto::text
