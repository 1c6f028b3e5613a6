#include "stretto/text/post_processor.h"

#include <algorithm>

#include "stretto/base/error.h"

namespace stretto::text {
namespace {

struct Lengths {
  size_t first;
  size_t second;
};

// The shorter text stays whole while it fits into half the room; when neither does, the longer gets the odd
// token. Texts of equal length count the first as the shorter.
Lengths longest_first(size_t first, size_t second, size_t room) {
  if (first + second <= room) return {first, second};
  const bool swapped = first > second;
  size_t shorter = std::min(first, second);
  size_t longer = shorter > room ? shorter : std::max(shorter, room - shorter);
  if (shorter + longer > room) {
    shorter = room / 2;
    longer = shorter + room % 2;
  }
  return swapped ? Lengths{longer, shorter} : Lengths{shorter, longer};
}

void cut(Sequence& sequence, size_t size) {
  sequence.ids.resize(std::min(size, sequence.ids.size()));
  sequence.offsets.resize(sequence.ids.size());
}

void truncate_pair(Sequence& first, Sequence* second, size_t room) {
  if (second == nullptr) return cut(first, room);
  const Lengths lengths = longest_first(first.ids.size(), second->ids.size(), room);
  cut(first, lengths.first);
  cut(*second, lengths.second);
}

size_t special_count(const std::vector<TemplatePiece>& pieces) {
  size_t count = 0;
  for (const TemplatePiece& piece : pieces) count += piece.ids.size();
  return count;
}

}  // namespace

Template bert_template(int32_t cls_id, int32_t sep_id) {
  using Kind = TemplatePiece::Kind;
  const TemplatePiece cls{Kind::special, 0, {cls_id}};
  const TemplatePiece sep{Kind::special, 0, {sep_id}};
  return {.single = {cls, {Kind::first}, sep},
          .pair = {cls, {Kind::first}, sep, {Kind::second, 1}, {Kind::special, 1, {sep_id}}}};
}

void Encoding::push_back(int32_t id, int32_t type_id, Offset offset, bool special) {
  ids.push_back(id);
  type_ids.push_back(type_id);
  offsets.push_back(offset);
  special_tokens_mask.push_back(special);
}

void Sequence::push_back(int32_t id, Offset offset) {
  ids.push_back(id);
  offsets.push_back(offset);
}

Encoding post_process(const std::vector<TemplatePiece>& pieces, Sequence& first, Sequence* second,
                      const EncodeOptions& options) {
  if (options.max_length) {
    const size_t special = options.special_tokens ? special_count(pieces) : 0;
    if (*options.max_length < special) {
      throw ConfigError(
          "tokenizer: a maximum length of {} leaves no room for the {} special tokens; ask for {} or more",
          *options.max_length, special, special);
    }
    truncate_pair(first, second, *options.max_length - special);
  }
  Encoding out;
  for (const TemplatePiece& piece : pieces) {
    if (piece.kind == TemplatePiece::Kind::special) {
      if (!options.special_tokens) continue;
      for (const int32_t id : piece.ids) out.push_back(id, piece.type_id, {}, true);
      continue;
    }
    const Sequence& sequence = piece.kind == TemplatePiece::Kind::first ? first : *second;
    for (size_t i = 0; i < sequence.ids.size(); ++i) {
      out.push_back(sequence.ids[i], piece.type_id, sequence.offsets[i], false);
    }
  }
  return out;
}

}  // namespace stretto::text
