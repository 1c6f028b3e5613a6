#include "stretto/text/configured_tokens.h"

#include "stretto/base/error.h"

namespace stretto::text {
namespace {

void read_flags(const JsonField& from, AddedToken& token) {
  token.single_word = from.bool_or("single_word", token.single_word);
  token.lstrip = from.bool_or("lstrip", token.lstrip);
  token.rstrip = from.bool_or("rstrip", token.rstrip);
  token.normalized = from.bool_or("normalized", token.normalized);
}

}  // namespace

std::string configured_token(const JsonField& config, const char* key, const char* otherwise) {
  if (!config.has(key)) return otherwise;
  const JsonField token = config[key];
  return token.is_object() ? token["content"].as_string() : token.as_string();
}

AddedToken configured_added_token(const JsonField& config, const char* key, const char* otherwise) {
  AddedToken token{.content = configured_token(config, key, otherwise), .normalized = false, .special = true};
  if (config.has("added_tokens_decoder")) {
    const JsonField by_id = config["added_tokens_decoder"];
    for (const auto& [id, value] : by_id.as_object().items()) {
      const JsonField entry(value, by_id.place() + "." + id);
      if (entry["content"].as_string() == token.content) read_flags(entry, token);
    }
  }
  if (config.has(key) && config[key].is_object()) read_flags(config[key], token);
  return token;
}

Side configured_side(const JsonField& config, const char* key) {
  const std::string side = config[key].as_string();
  if (side == "left" || side == "Left") return Side::left;
  if (side == "right" || side == "Right") return Side::right;
  throw DataError("{}: expected \"left\" or \"right\", found \"{}\"", config[key].place(), side);
}

}  // namespace stretto::text
