#include "stretto/base/error.h"
#include "stretto/text/tokenizer_sections.h"
#include "stretto/text/utf8.h"

namespace stretto::text {
namespace {

// Whether the step is one of those that are available.
bool read_step(const JsonField& section, std::vector<DecoderStep>& steps) {
  using Kind = DecoderStep::Kind;
  const std::string& type = section["type"].as_string();
  if (type == "ByteFallback") {
    steps.push_back({.kind = Kind::byte_fallback});
  } else if (type == "Fuse") {
    steps.push_back({.kind = Kind::fuse});
  } else if (type == "Replace" && section["pattern"].has("String")) {
    steps.push_back({.kind = Kind::replace,
                     .from = section["pattern"]["String"].as_string(),
                     .to = section["content"].as_string()});
  } else if (type == "Strip") {
    const JsonField content = section["content"];
    if (count_code_points(content.as_string()) != 1)
      throw DataError("{}: expected one character, found \"{}\"", content.place(), content.as_string());
    steps.push_back({.kind = Kind::strip,
                     .from = section["content"].as_string(),
                     .start = static_cast<size_t>(section["start"].as_id()),
                     .stop = static_cast<size_t>(section["stop"].as_id())});
  } else {
    return false;
  }
  return true;
}

Decoder unavailable(const JsonField& section) {
  return {.kind = Decoder::Kind::unavailable,
          .type = section.place() + ".type: \"" + section["type"].as_string() + "\""};
}

}  // namespace

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
  Decoder decoder{.kind = Decoder::Kind::steps};
  if (type != "Sequence") return read_step(section, decoder.steps) ? decoder : unavailable(section);
  const JsonField steps = section["decoders"];
  for (size_t i = 0; i < steps.as_list().size(); ++i)
    if (!read_step(steps[i], decoder.steps)) return unavailable(steps[i]);
  return decoder;
}

}  // namespace stretto::text
