#include "stretto/text/tokenizer_stages.h"
#include "stretto/text/utf8.h"

// The stages of encoding to ids with their offsets.
namespace stretto::text {
namespace {

uint32_t characters_in(std::string_view text, size_t begin, size_t end) {
  return static_cast<uint32_t>(count_code_points(text.substr(begin, end - begin)));
}

}  // namespace

// Buffers that the stages of one encode share.
struct TokenizerStages::Scratch {
  std::string repaired;
  std::vector<AddedTokenMatch> raw_matches;
  NormalizedText normalized;
  std::vector<AddedTokenMatch> matches;
  NormalizedText part;    // of `normalized`, between added tokens
  NormalizedText buffer;  // of the pre-tokenizer
  std::vector<WordRange> words;
  std::vector<TokenPiece> pieces;
  int32_t word = 0;          // index of the next word
  bool in_one_word = false;  // the caller has split the text: it is the word `word`

  int32_t next_word() { return in_one_word ? word : word++; }
};

std::vector<Encoding> TokenizerStages::encode_all(const Input& first, const Input* second,
                                                  const EncodeOptions& options, bool all_windows) const {
  const Sequence first_sequence = tokenize(first);
  const Sequence second_sequence = second == nullptr ? Sequence() : tokenize(*second);
  const auto token_of = [this](int32_t id) { return token(id).value_or(""); };
  return post_process(post_processor_, token_of, first_sequence,
                      second == nullptr ? nullptr : &second_sequence, options, truncation_side_, all_windows);
}

Sequence TokenizerStages::tokenize(const Input& input) const {
  Sequence sequence;
  Scratch scratch;
  if (!input.is_split()) {
    tokenize_text(input.text(), scratch, sequence);
    return sequence;
  }
  scratch.in_one_word = true;
  for (const std::string& word : input.words()) {
    tokenize_text(word, scratch, sequence);
    ++scratch.word;
  }
  return sequence;
}

// Splits the raw text at added tokens, and tokenizes the pieces between them.
void TokenizerStages::tokenize_text(std::string_view text, Scratch& scratch, Sequence& out) const {
  text = replace_invalid_utf8(text, scratch.repaired);
  std::vector<AddedTokenMatch>& matches = scratch.raw_matches;
  raw_tokens_.find(text, matches);
  size_t position = 0;
  uint32_t character = 0;  // of the code point at `position`
  for (const auto& [begin, end, id] : matches) {
    if (begin > position) tokenize_piece(text.substr(position, begin - position), character, scratch, out);
    // A match can begin before `position` if the previous match includes its leading white space.
    const auto first = begin >= position ? character + characters_in(text, position, begin)
                                         : character - characters_in(text, begin, position);
    character = first + characters_in(text, begin, end);
    out.push_back_added(id, {first, character}, scratch.next_word(), text.substr(begin, end - begin));
    position = end;
  }
  if (position < text.size()) tokenize_piece(text.substr(position), character, scratch, out);
}

// Normalises a piece, splits it at the added tokens that are searched in normalised text, and tokenizes the
// text between them.
void TokenizerStages::tokenize_piece(std::string_view piece, uint32_t first_character, Scratch& scratch,
                                     Sequence& out) const {
  NormalizedText& normalized = scratch.normalized;
  normalized.clear();
  normalizer_->normalize(piece, first_character, normalized);
  normalized_tokens_.find(normalized.bytes, scratch.matches);
  if (scratch.matches.empty()) return tokenize_words(normalized, scratch, out);
  size_t position = 0;
  const auto tokenize_part = [&](size_t end) {
    if (end <= position) return;
    scratch.part.clear();
    scratch.part.append(normalized, position, end);
    tokenize_words(scratch.part, scratch, out);
  };
  for (const auto& [begin, end, id] : scratch.matches) {
    tokenize_part(begin);
    out.push_back_added(id, {normalized.characters[begin], normalized.characters[end - 1] + 1},
                        scratch.next_word(), std::string_view(normalized.bytes).substr(begin, end - begin));
    position = end;
  }
  tokenize_part(normalized.bytes.size());
}

void TokenizerStages::tokenize_words(NormalizedText& text, Scratch& scratch, Sequence& out) const {
  if (text.bytes.empty()) return;
  scratch.words.clear();
  scratch.pieces.clear();
  pre_tokenizer_->split(text, scratch.buffer, scratch.words);
  model_->tokenize(text.bytes, scratch.words, scratch.pieces);
  for (const TokenPiece& piece : scratch.pieces) {
    const int32_t word = scratch.word + (scratch.in_one_word ? 0 : static_cast<int32_t>(piece.word));
    out.push_back(piece.id, {text.characters[piece.begin], text.characters[piece.end - 1] + 1}, word);
  }
  if (!scratch.in_one_word) scratch.word += static_cast<int32_t>(scratch.words.size());
}

}  // namespace stretto::text
