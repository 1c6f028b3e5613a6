#include "stretto/text/id_encoder_state.h"
#include "stretto/text/tokenizer_stages.h"

// The stages of encoding to ids only.
namespace stretto::text {

// Does the same as tokenize_text(), for ids only. REQUIRES: valid UTF-8.
void TokenizerStages::append_ids(std::string_view text, IdEncoderState& state,
                                 std::vector<int32_t>& ids) const {
  raw_tokens_.find(text, state.raw_matches);
  size_t position = 0;
  for (const auto& [begin, end, id] : state.raw_matches) {
    if (begin > position) append_piece(text.substr(position, begin - position), position > 0, state, ids);
    ids.push_back(id);
    position = end;
  }
  if (position < text.size()) append_piece(text.substr(position), position > 0, state, ids);
}

// Does the same as tokenize_piece(), for ids only. The only use of `first_character` is whether it is 0.
void TokenizerStages::append_piece(std::string_view piece, uint32_t first_character, IdEncoderState& state,
                                   std::vector<int32_t>& ids) const {
  if (normalizer_->changes_nothing()) {
    normalized_tokens_.find(piece, state.matches);
    state.words.clear();
    if (state.matches.empty() && pre_tokenizer_->split_unchanged(piece, state.words))
      return append_each_word(piece, state, ids);
  }
  state.normalized.clear();
  normalizer_->normalize(piece, first_character, state.normalized);
  normalized_tokens_.find(state.normalized.bytes, state.matches);
  if (state.matches.empty()) return append_words(state.normalized, state, ids);
  size_t position = 0;
  const auto append_part = [&](size_t end) {
    if (end <= position) return;
    state.part.clear();
    state.part.append(state.normalized, position, end);
    append_words(state.part, state, ids);
  };
  for (const auto& [begin, end, id] : state.matches) {
    append_part(begin);
    ids.push_back(id);
    position = end;
  }
  append_part(state.normalized.bytes.size());
}

void TokenizerStages::append_words(NormalizedText& text, IdEncoderState& state,
                                   std::vector<int32_t>& ids) const {
  if (text.bytes.empty()) return;
  state.words.clear();
  pre_tokenizer_->split(text, state.buffer, state.words);
  append_each_word(text.bytes, state, ids);
}

void TokenizerStages::append_each_word(std::string_view text, IdEncoderState& state,
                                       std::vector<int32_t>& ids) const {
  for (const auto& [begin, end] : state.words) append_word(text.substr(begin, end - begin), state, ids);
}

void TokenizerStages::append_word(std::string_view word, IdEncoderState& state,
                                  std::vector<int32_t>& ids) const {
  if (word.empty()) return;
  state.cache.append(word, ids, [&](std::string_view unknown, std::vector<int32_t>& out) {
    const WordRange whole{0, static_cast<uint32_t>(unknown.size())};
    state.pieces.clear();
    model_->tokenize(unknown, {&whole, 1}, state.pieces);
    for (const TokenPiece& piece : state.pieces) out.push_back(piece.id);
  });
}

}  // namespace stretto::text
