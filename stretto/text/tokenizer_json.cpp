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

// Lengths and strides are the caller's, as in transformers, which keeps but the side.
void read_truncation(const JsonField& file, TokenizerParts& parts) {
  if (!file.has("truncation")) return;
  const JsonField section = file["truncation"];
  section.as_object();
  if (section.has("direction")) parts.truncation_side = configured_side(section, "direction");
}

// Batches are packed, so nothing is filled: read for its errors only.
void check_padding(const JsonField& file) {
  if (!file.has("padding")) return;
  const JsonField section = file["padding"];
  section.as_object();
  if (section.has("direction")) configured_side(section, "direction");
  if (section.has("pad_id")) section["pad_id"].as_id();
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
  check_padding(top);
  if (model_type(top["model"]) == "WordPiece") parts.hugging_face_class = "BertTokenizer";
  return parts;
}

}  // namespace stretto::text
