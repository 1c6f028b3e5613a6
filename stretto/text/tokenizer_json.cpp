#include <algorithm>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/text/configured_tokens.h"
#include "stretto/text/tokenizer_files.h"
#include "stretto/text/tokenizer_sections.h"

namespace stretto::text {
namespace {

void read_added_tokens(const JsonField& file, TokenizerParts& parts) {
  if (!file.has("added_tokens")) return;
  const JsonField list = file["added_tokens"];
  for (size_t i = 0; i < list.as_list().size(); ++i) {
    const JsonField item = list[i];
    AddedToken token;
    token.content = item["content"].as_string();
    if (token.content.size() > longest_token) {
      throw DataError("{}.content: a token of {} bytes; expected at most {}", item.place(),
                      token.content.size(), longest_token);
    }
    token.special = item.bool_or("special", false);
    token.single_word = item.bool_or("single_word", false);
    token.lstrip = item.bool_or("lstrip", false);
    token.rstrip = item.bool_or("rstrip", false);
    token.normalized = item.bool_or("normalized", !token.special);
    token.id_in_file = item["id"].as_id();
    parts.added_tokens.push_back(std::move(token));
  }
}

size_t length_of(const JsonField& section, const char* key) {
  const double length = section[key].as_number();
  if (!(length >= 0) || length != std::floor(length))
    throw DataError("{}.{}: expected a number of tokens, found {}", section.place(), key, length);
  return static_cast<size_t>(std::min(length, 1e15));
}

Truncation strategy_of(const JsonField& section) {
  const std::string name = section.string_or("strategy", "LongestFirst");
  if (name == "LongestFirst") return Truncation::longest_first;
  if (name == "OnlyFirst") return Truncation::only_first;
  if (name == "OnlySecond") return Truncation::only_second;
  throw DataError("{}.strategy: expected LongestFirst, OnlyFirst or OnlySecond, found \"{}\"",
                  section.place(), name);
}

void read_truncation(const JsonField& file, TokenizerParts& parts) {
  if (!file.has("truncation")) return;
  const JsonField section = file["truncation"];
  section.as_object();
  if (section.has("direction")) parts.truncation_side = configured_side(section, "direction");
  if (!section.has("max_length")) return;
  parts.saved_lengths.truncation = {.max_length = length_of(section, "max_length"),
                                    .truncation = strategy_of(section),
                                    .stride = section.has("stride") ? length_of(section, "stride") : 0};
}

void read_padding(const JsonField& file, TokenizerParts& parts) {
  if (!file.has("padding")) return;
  const JsonField section = file["padding"];
  section.as_object();
  if (section.has("direction")) configured_side(section, "direction");
  if (section.has("pad_id")) section["pad_id"].as_id();
  if (!section.has("strategy") || !section["strategy"].is_object()) return;  // BatchLongest
  if (section["strategy"].has("Fixed")) parts.saved_lengths.padding = length_of(section["strategy"], "Fixed");
}

}  // namespace

TokenizerParts parse_tokenizer_json(const nlohmann::json& file, const std::string& name,
                                    const nlohmann::json& config, const std::string& config_name,
                                    const TokenizerOptions& options) {
  const JsonField top(file, name + ":");
  const JsonField settings(config, config_name + ":");
  if (!top.has("model")) throw DataError("{}: not a tokenizer.json: it lacks \"model\"", name);
  TokenizerParts parts;
  parts.name = name;
  parts.model = read_model(top, name);
  parts.normalizer = read_normalizer(top, settings, options);
  parts.pre_tokenizer = read_pre_tokenizer(top, settings, options);
  read_added_tokens(top, parts);
  parts.post_processor = read_post_processor(top, settings, options);
  parts.decoder = read_decoder(top);
  read_truncation(top, parts);
  read_padding(top, parts);
  if (model_type(top["model"]) == "WordPiece") parts.hugging_face_class = "BertTokenizer";
  return parts;
}

}  // namespace stretto::text
