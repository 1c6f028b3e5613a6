#include "stretto/text/tokenizer_load.h"

#include <array>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/log.h"
#include "stretto/text/configured_tokens.h"
#include "stretto/text/tokenizer.h"
#include "stretto/text/tokenizer_files.h"

namespace stretto::text {
namespace {

namespace fs = std::filesystem;

// A tokenizer_config.json; {} if there is none.
struct Settings {
  nlohmann::json values = nlohmann::json::object();
  std::string name;
};

// A format of tokenizers: its main file, and an optional second file.
struct Format {
  const char* file;
  const char* other_file;  // nullptr: none
  TokenizerParts (*parse)(const fs::path& file, const Settings& settings, const TokenizerOptions& options);
};

TokenizerParts read_tokenizer_json(const fs::path& file, const Settings& settings,
                                   const TokenizerOptions& options) {
  return parse_tokenizer_json(read_json(file), file.string(), settings.values, settings.name, options);
}

TokenizerParts read_vocabulary(const fs::path& file, const Settings& settings,
                               const TokenizerOptions& options) {
  return parse_vocabulary(MappedFile(file).text(), file.string(), settings.values, settings.name, options);
}

TokenizerParts read_byte_level(const fs::path& file, const Settings& settings,
                               const TokenizerOptions& options) {
  const fs::path merges = file.parent_path() / "merges.txt";
  if (!fs::exists(merges)) {
    throw DataError("{}: there is no merges.txt next to it; expected both files of a byte-level BPE",
                    file.string());
  }
  return parse_byte_level(read_json(file), file.string(), MappedFile(merges).text(), merges.string(),
                          settings.values, settings.name, options);
}

TokenizerParts read_xlm_roberta(const fs::path& file, const Settings& settings,
                                const TokenizerOptions& /*options*/) {
  return parse_sentencepiece(MappedFile(file).text(), file.string(), SentencePieceFamily::xlm_roberta,
                             settings.values, settings.name);
}

TokenizerParts read_llama(const fs::path& file, const Settings& settings,
                          const TokenizerOptions& /*options*/) {
  return parse_sentencepiece(MappedFile(file).text(), file.string(), SentencePieceFamily::llama,
                             settings.values, settings.name);
}

// The formats in order of preference.
constexpr std::array formats = {Format{"tokenizer.json", nullptr, read_tokenizer_json},
                                Format{"vocab.txt", nullptr, read_vocabulary},
                                Format{"vocab.json", "merges.txt", read_byte_level},
                                Format{"sentencepiece.bpe.model", nullptr, read_xlm_roberta},
                                Format{"tokenizer.model", nullptr, read_llama}};

const Format* format_in(const fs::path& folder) {
  for (const Format& format : formats) {
    if (fs::exists(folder / format.file)) return &format;
  }
  return nullptr;
}

std::string expected_files() {
  std::string names;
  for (size_t i = 0; i < formats.size(); ++i) {
    names += i == 0 ? "" : i + 1 < formats.size() ? ", " : " or ";
    names += formats[i].file;
    if (formats[i].other_file != nullptr) names += std::string(" with ") + formats[i].other_file;
  }
  return names;
}

// Reads tokenizer_config.json, and special tokens that it lacks from special_tokens_map.json, which early
// folders have.
Settings settings_of(const fs::path& folder) {
  Settings settings;
  if (const fs::path config = folder / "tokenizer_config.json"; fs::exists(config))
    settings = {read_json(config), config.string()};
  const fs::path tokens = folder / "special_tokens_map.json";
  if (!fs::exists(tokens)) return settings;
  const nlohmann::json map = read_json(tokens);
  if (settings.name.empty()) settings.name = tokens.string();
  for (const auto& [key, value] : JsonField(map, tokens.string()).as_object().items()) {
    if (!settings.values.contains(key)) settings.values[key] = value;
  }
  return settings;
}

TokenizerParts parts_of_folder(const fs::path& folder, const TokenizerOptions& options) {
  if (const Format* format = format_in(folder)) {
    const Settings settings = settings_of(folder);
    TokenizerParts parts = format->parse(folder / format->file, settings, options);
    const JsonField config(settings.values, settings.name + ":");
    if (config.has("truncation_side")) parts.truncation_side = configured_side(config, "truncation_side");
    parts.eos_token = configured_token(config, "eos_token", parts.eos_token.c_str());
    return parts;
  }
  throw DataError("{}: there is no tokenizer; expected {}", folder.string(), expected_files());
}

// Reads a single file, without its folder's configuration. The extension selects tokenizer.json or a
// SentencePiece model; other files are vocabularies.
TokenizerParts parts_of_file(const fs::path& path, const TokenizerOptions& options) {
  for (const Format& format : formats) {
    if (path.filename() == format.file) return format.parse(path, {}, options);
  }
  if (path.extension() == ".model")
    return parse_sentencepiece(MappedFile(path).text(), path.string(), SentencePieceFamily::none,
                               nlohmann::json::object(), "");
  return path.extension() == ".json" ? read_tokenizer_json(path, {}, options)
                                     : read_vocabulary(path, {}, options);
}

TokenizerParts parts_of(const fs::path& path, const TokenizerOptions& options) {
  if (fs::is_directory(path)) return parts_of_folder(path, options);
  if (!fs::exists(path)) throw DataError("{}: no such file or folder; expected a tokenizer", path.string());
  if (path.filename() == "tokenizer_config.json" || path.filename() == "merges.txt")
    return parts_of_folder(path.parent_path(), options);
  return parts_of_file(path, options);
}

}  // namespace

bool has_tokenizer(const fs::path& folder) { return format_in(folder) != nullptr; }

std::vector<std::string> tokenizer_file_names() {
  std::vector<std::string> names = {"tokenizer_config.json", "special_tokens_map.json"};
  for (const Format& format : formats) {
    names.emplace_back(format.file);
    if (format.other_file != nullptr) names.emplace_back(format.other_file);
  }
  return names;
}

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
