#include "stretto/text/post_processor.h"

#include "stretto/base/error.h"
#include "stretto/text/truncation.h"

namespace stretto::text {
namespace {

size_t special_count(const std::vector<TemplatePiece>& pieces) {
  size_t count = 0;
  for (const TemplatePiece& piece : pieces) count += piece.ids.size();
  return count;
}

// How many tokens of the texts an encoding may hold.
size_t room_for_texts(const std::vector<TemplatePiece>& pieces, const EncodeOptions& options) {
  const size_t special = options.special_tokens ? special_count(pieces) : 0;
  if (*options.max_length < special) {
    throw ConfigError(
        "tokenizer: a maximum length of {} leaves no room for the {} special tokens; ask for {} or more",
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

Encoding join(const std::vector<TemplatePiece>& pieces, const Sequence& first, const Sequence* second,
              const Window& window, bool special_tokens) {
  Encoding out;
  for (const TemplatePiece& piece : pieces) {
    if (piece.kind == TemplatePiece::Kind::first) {
      append_tokens(out, piece, first, window.first);
    } else if (piece.kind == TemplatePiece::Kind::second) {
      append_tokens(out, piece, *second, window.second);
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

void Sequence::push_back(int32_t id, Offset offset, int32_t word_id) {
  ids.push_back(id);
  offsets.push_back(offset);
  word_ids.push_back(word_id);
}

std::vector<Encoding> post_process(const std::vector<TemplatePiece>& pieces, const Sequence& first,
                                   const Sequence* second, const EncodeOptions& options, Side side,
                                   bool all_windows) {
  std::vector<Window> windows = {{{0, first.size()}, {0, second == nullptr ? 0 : second->size()}}};
  if (options.max_length && options.truncation != Truncation::do_not_truncate) {
    const size_t room = room_for_texts(pieces, options);
    const auto second_size = second == nullptr ? std::nullopt : std::optional(second->size());
    windows = plan_windows(first.size(), second_size, room, options, options.truncation_side.value_or(side),
                           all_windows);
  }
  std::vector<Encoding> encodings;
  for (const Window& window : windows)
    encodings.push_back(join(pieces, first, second, window, options.special_tokens));
  return encodings;
}

}  // namespace stretto::text
