#include "stretto/text/add_token.h"

#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/text/tokenizer.h"

namespace stretto::text {
namespace {

namespace fs = std::filesystem;

void add_to_tokenizer_json(const fs::path& file, const std::string& token, int32_t id) {
  nlohmann::json json = read_json(file);
  json["added_tokens"].push_back({{"id", id},
                                  {"content", token},
                                  {"single_word", false},
                                  {"lstrip", false},
                                  {"rstrip", false},
                                  {"normalized", false},
                                  {"special", true}});
  write_file_atomic(file, json.dump() + "\n");
}

void add_to_lines(const fs::path& file, const std::string& token) {
  std::string lines = read_file(file);
  if (!lines.ends_with('\n')) lines += '\n';
  write_file_atomic(file, lines + token + "\n");
}

void add_to_vocabulary_json(const fs::path& file, const std::string& token, int32_t id) {
  nlohmann::json json = read_json(file);
  json[token] = id;
  write_file_atomic(file, json.dump() + "\n");
}

// By this transformers' tokenizers know that a token of their vocabulary is never split.
void name_as_special(const fs::path& folder, const std::string& token) {
  const fs::path file = folder / "tokenizer_config.json";
  nlohmann::ordered_json config = nlohmann::ordered_json::object();
  if (fs::exists(file)) config = read_json(file);
  auto& tokens = config["additional_special_tokens"];
  if (!tokens.is_array()) tokens = nlohmann::json::array();
  tokens.push_back(token);
  write_file_atomic(file, config.dump(2) + "\n");
}

}  // namespace

int32_t add_special_token(const fs::path& folder, const std::string& token) {
  const Tokenizer tokenizer = Tokenizer::load(folder);
  if (const auto known = tokenizer.id(token)) return *known;
  const int32_t id = tokenizer.vocab_size();
  if (fs::exists(folder / "tokenizer.json")) {
    add_to_tokenizer_json(folder / "tokenizer.json", token, id);
  } else if (fs::exists(folder / "vocab.txt")) {
    add_to_lines(folder / "vocab.txt", token);
    name_as_special(folder, token);
  } else if (fs::exists(folder / "vocab.json")) {
    add_to_vocabulary_json(folder / "vocab.json", token, id);
    name_as_special(folder, token);
  }
  if (Tokenizer::load(folder).id(token) == id) return id;
  throw DataError(
      "{}: the token {} cannot be added to this tokenizer; save it with a tokenizer.json (AutoTokenizer.from_pretrained(...).save_pretrained(...) of transformers)",
      folder.string(), token);
}

}  // namespace stretto::text
