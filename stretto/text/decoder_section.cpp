#include "stretto/text/tokenizer_sections.h"

namespace stretto::text {

Decoder read_decoder(const JsonField& file) {
  if (!file.has("decoder")) return {};
  const JsonField section = file["decoder"];
  const std::string& type = section["type"].as_string();
  if (type == "WordPiece") {
    return {.kind = Decoder::Kind::wordpiece,
            .mark = section.string_or("prefix", "##"),
            .cleanup = section.bool_or("cleanup", true)};
  }
  if (type == "ByteLevel") return {.kind = Decoder::Kind::byte_level};
  if (type == "Metaspace") {
    // Files of early versions have add_prefix_space instead of prepend_scheme.
    const std::string scheme =
        section.string_or("prepend_scheme", section.bool_or("add_prefix_space", true) ? "always" : "never");
    return {.kind = Decoder::Kind::metaspace,
            .mark = section.string_or("replacement", "\u2581"),
            .drop_first_mark = scheme != "never"};
  }
  return {.kind = Decoder::Kind::unavailable, .type = section.place() + ".type: \"" + type + "\""};
}

}  // namespace stretto::text
