#include "stretto/text/post_processor.h"

#include <algorithm>
#include <string_view>

#include "stretto/base/error.h"
#include "stretto/text/truncation.h"
#include "stretto/text/unicode.h"
#include "stretto/text/utf8.h"

namespace stretto::text {
namespace {

constexpr char32_t byte_level_space = 0x120;

size_t special_count(const std::vector<TemplatePiece>& pieces) {
  size_t count = 0;
  for (const TemplatePiece& piece : pieces) count += piece.ids.size();
  return count;
}

// The maximum number of tokens of the texts in an encoding.
size_t room_for_texts(const std::vector<TemplatePiece>& pieces, const EncodeOptions& options) {
  const size_t special = options.special_tokens ? special_count(pieces) : 0;
  if (*options.max_length < special) {
    throw ConfigError(
        "tokenizer: a maximum length of {} leaves no room for the {} special tokens; set it to {} or more",
        *options.max_length, special, special);
  }
  return *options.max_length - special;
}

void append_special(Encoding& out, const TemplatePiece& piece) {
  const size_t size = out.size() + piece.ids.size();
  out.ids.insert(out.ids.end(), piece.ids.begin(), piece.ids.end());
  out.type_ids.resize(size, piece.type_id);
  out.offsets.resize(size);
  out.word_ids.resize(size, -1);
  out.sequence_ids.resize(size, -1);
  out.special_tokens_mask.resize(size, 1);
}

void append_tokens(Encoding& out, const TemplatePiece& piece, const Sequence& sequence,
                   const TokenRange& range) {
  const size_t size = out.size() + range.size();
  const auto append = [&](auto& to, const auto& from) {
    to.insert(to.end(), from.begin() + static_cast<ptrdiff_t>(range.begin),
              from.begin() + static_cast<ptrdiff_t>(range.end));
  };
  append(out.ids, sequence.ids);
  append(out.offsets, sequence.offsets);
  append(out.word_ids, sequence.word_ids);
  out.type_ids.resize(size, piece.type_id);
  out.sequence_ids.resize(size, piece.kind == TemplatePiece::Kind::first ? 0 : 1);
  out.special_tokens_mask.resize(size, 0);
}

bool is_space(char32_t c) { return c == byte_level_space || is_whitespace(c); }

// The number of spaces at the beginning or end of a token.
size_t leading_spaces(std::string_view token) {
  size_t count = 0;
  for (size_t position = 0; position < token.size(); ++count) {
    if (!is_space(next_code_point(token, position))) break;
  }
  return count;
}
size_t trailing_spaces(std::string_view token) {
  size_t count = 0;
  for (size_t end = token.size(); end > 0; ++count) {
    do {
      --end;
    } while (!is_lead_byte(token[end]));
    size_t position = end;
    if (!is_space(next_code_point(token, position))) break;
  }
  return count;
}

// Trims the offsets of the tokens of one text in one encoding, which begin at `begin` in it and at `first` in
// `sequence`.
void trim_offsets(Encoding& encoding, size_t begin, const Sequence& sequence, size_t first,
                  bool add_prefix_space, const TokenOfId& token_of) {
  auto taken = sequence.taken_spaces.begin();
  for (size_t i = begin; i < encoding.size(); ++i) {
    const size_t index = first + (i - begin);
    while (taken != sequence.taken_spaces.end() && taken->index < index) ++taken;
    const bool added = taken != sequence.taken_spaces.end() && taken->index == index;
    const std::string_view token = added ? "" : token_of(encoding.ids[i]);
    size_t leading = added ? taken->leading : leading_spaces(token);
    const size_t trailing = added ? taken->trailing : trailing_spaces(token);
    Offset& offset = encoding.offsets[i];
    // One space may have been inserted before the text or, in a split text, before the word, whose offset is
    // 0.
    if ((i == begin || offset.begin == 0) && add_prefix_space && leading == 1) leading = 0;
    offset.begin = static_cast<uint32_t>(std::min<size_t>(offset.begin + leading, offset.end));
    if (offset.end >= trailing)
      offset.end = std::max(offset.end - static_cast<uint32_t>(trailing), offset.begin);
  }
}

Encoding join(const std::vector<TemplatePiece>& pieces, const OffsetTrimming& trimming,
              const TokenOfId& token_of, const Sequence& first, const Sequence* second, const Window& window,
              bool special_tokens) {
  Encoding out;
  for (const TemplatePiece& piece : pieces) {
    const size_t begin = out.size();
    const bool of_first = piece.kind == TemplatePiece::Kind::first;
    if (piece.kind != TemplatePiece::Kind::special) {
      const Sequence& sequence = of_first ? first : *second;
      const TokenRange& range = of_first ? window.first : window.second;
      append_tokens(out, piece, sequence, range);
      if (trimming.trim) trim_offsets(out, begin, sequence, range.begin, trimming.add_prefix_space, token_of);
    } else if (special_tokens) {
      append_special(out, piece);
    }
  }
  return out;
}

}  // namespace

Template bert_template(int32_t cls_id, int32_t sep_id) {
  using Kind = TemplatePiece::Kind;
  const TemplatePiece cls{Kind::special, 0, {cls_id}};
  const TemplatePiece sep{Kind::special, 0, {sep_id}};
  return {.single = {cls, {Kind::first}, sep},
          .pair = {cls, {Kind::first}, sep, {Kind::second, 1}, {Kind::special, 1, {sep_id}}}};
}

Template roberta_template(int32_t cls_id, int32_t sep_id) {
  using Kind = TemplatePiece::Kind;
  const TemplatePiece cls{Kind::special, 0, {cls_id}};
  const TemplatePiece sep{Kind::special, 0, {sep_id}};
  return {.single = {cls, {Kind::first}, sep}, .pair = {cls, {Kind::first}, sep, sep, {Kind::second}, sep}};
}

void Sequence::push_back(int32_t id, Offset offset, int32_t word_id) {
  ids.push_back(id);
  offsets.push_back(offset);
  word_ids.push_back(word_id);
}

void Sequence::push_back_added(int32_t id, Offset offset, int32_t word_id, std::string_view match) {
  const size_t leading = leading_spaces(match);
  const size_t trailing = trailing_spaces(match);
  if (leading + trailing > 0) taken_spaces.push_back({size(), leading, trailing});
  push_back(id, offset, word_id);
}

std::vector<Encoding> post_process(const PostProcessor& processor, const TokenOfId& token_of,
                                   const Sequence& first, const Sequence* second,
                                   const EncodeOptions& options, Side side, bool all_windows) {
  const auto& pieces = second == nullptr ? processor.pieces.single : processor.pieces.pair;
  std::vector<Window> windows = {{{0, first.size()}, {0, second == nullptr ? 0 : second->size()}}};
  if (options.max_length && options.truncation != Truncation::do_not_truncate) {
    const size_t room = room_for_texts(pieces, options);
    const auto second_size = second == nullptr ? std::nullopt : std::optional(second->size());
    windows = plan_windows(first.size(), second_size, room, options, options.truncation_side.value_or(side),
                           all_windows);
  }
  std::vector<Encoding> encodings;
  for (const Window& window : windows)
    encodings.push_back(
        join(pieces, processor.offsets, token_of, first, second, window, options.special_tokens));
  return encodings;
}

}  // namespace stretto::text
