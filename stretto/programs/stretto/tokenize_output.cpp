#include "stretto/programs/stretto/tokenize_output.h"

#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto::cli {
namespace {

using nlohmann::ordered_json;

void append_number(int64_t number, std::string& out) { out.append(fmt::format_int(number).c_str()); }

// Appends the index of a word or a text; tokens of the template have none.
void append_index(int64_t index, std::string& out) {
  if (index < 0) {
    out += '-';
  } else {
    append_number(index, out);
  }
}

void append_token(const text::Tokenizer& tokenizer, const text::Encoding& encoding, size_t i,
                  TokenizeOutput output, std::string& out) {
  switch (output) {
    case TokenizeOutput::ids:
      return append_number(encoding.ids[i], out);
    case TokenizeOutput::tokens:
      out += tokenizer.token(encoding.ids[i]).value_or("?");
      return;
    case TokenizeOutput::offsets:
      append_number(encoding.offsets[i].begin, out);
      out += ':';
      return append_number(encoding.offsets[i].end, out);
    case TokenizeOutput::type_ids:
      return append_number(encoding.type_ids[i], out);
    case TokenizeOutput::word_ids:
      return append_index(encoding.word_ids[i], out);
    case TokenizeOutput::sequence_ids:
      return append_index(encoding.sequence_ids[i], out);
    case TokenizeOutput::json:
    case TokenizeOutput::text:
      return;
  }
}

ordered_json indices(const auto& values) {
  ordered_json list = ordered_json::array();
  for (const auto value : values) list.push_back(value < 0 ? ordered_json() : ordered_json(value));
  return list;
}

ordered_json as_json(const text::Tokenizer& tokenizer, const text::Encoding& encoding) {
  ordered_json tokens = ordered_json::array(), offsets = ordered_json::array();
  for (const int32_t id : encoding.ids) tokens.push_back(tokenizer.token(id).value_or("?"));
  for (const auto& [begin, end] : encoding.offsets) offsets.push_back({begin, end});
  return {{"input_ids", encoding.ids},
          {"tokens", std::move(tokens)},
          {"token_type_ids", encoding.type_ids},
          {"offset_mapping", std::move(offsets)},
          {"word_ids", indices(encoding.word_ids)},
          {"sequence_ids", indices(encoding.sequence_ids)},
          {"special_tokens_mask", encoding.special_tokens_mask}};
}

}  // namespace

void append_encodings(const text::Tokenizer& tokenizer, std::span<const text::Encoding> windows,
                      TokenizeOutput output, bool as_list, std::string& out) {
  if (output == TokenizeOutput::json) {
    ordered_json list = ordered_json::array();
    for (const text::Encoding& window : windows) list.push_back(as_json(tokenizer, window));
    out += (as_list ? list : list.front()).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  } else {
    for (const text::Encoding& window : windows) {
      if (&window != &windows.front()) out += '\t';
      for (size_t i = 0; i < window.size(); ++i) {
        if (i > 0) out += ' ';
        append_token(tokenizer, window, i, output, out);
      }
    }
  }
  out += '\n';
}

void append_text(const text::Tokenizer& tokenizer, std::string_view line, bool skip_special,
                 const std::string& place, std::string& out) {
  std::vector<int32_t> ids;
  if (line.ends_with('\r')) line.remove_suffix(1);
  for (const std::string_view word : split(line, ' ')) {
    if (word.empty()) continue;
    const auto id = parse_int(word);
    if (!id || *id < 0 || *id >= tokenizer.vocab_size() || !tokenizer.token(static_cast<int32_t>(*id))) {
      throw DataError(
          "{}: \"{}\" is not the id of a token; expected ids from 0 to {} with a space between them", place,
          word, tokenizer.vocab_size() - 1);
    }
    ids.push_back(static_cast<int32_t>(*id));
  }
  out += tokenizer.decode(ids, {.skip_special_tokens = skip_special});
  out += '\n';
}

}  // namespace stretto::cli
