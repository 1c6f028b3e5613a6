#include "stretto/text/tokenizer.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/text/bert_pre_tokenizer.h"
#include "stretto/text/utf8.h"

namespace stretto::text {
namespace {

void describe(std::string& out, const std::vector<TemplatePiece>& pieces) {
  for (const TemplatePiece& piece : pieces) {
    fmt::format_to(std::back_inserter(out), "{} {} {};", static_cast<int>(piece.kind), piece.type_id,
                   fmt::join(piece.ids, ","));
  }
  out += '\n';
}

// Everything that ids and offsets depend on.
std::string fingerprint_of(const TokenizerParts& parts) {
  const auto& normalizer = parts.normalizer;
  std::string all =
      fmt::format("{} {} {} {}\n{}\n{}\n{}\n", normalizer.clean_text, normalizer.handle_chinese_chars,
                  normalizer.strip_accents, normalizer.lowercase, parts.model.unk_token,
                  parts.model.continuing_subword_prefix, parts.model.max_input_chars_per_word);
  for (const auto& [token, id] : parts.vocabulary)
    fmt::format_to(std::back_inserter(all), "{} {}\n", id, token);
  for (const AddedToken& token : parts.added_tokens) {
    fmt::format_to(std::back_inserter(all), "{} {} {} {} {}\n", token.single_word, token.lstrip, token.rstrip,
                   token.normalized, token.content);
  }
  describe(all, parts.post_processor.single);
  describe(all, parts.post_processor.pair);
  return hash128_hex(all);
}

// Of two added tokens with one content the later one counts; special tokens are searched first.
std::vector<AddedToken> in_search_order(const std::vector<AddedToken>& tokens) {
  std::vector<AddedToken> ordered;
  std::unordered_set<std::string_view> seen;
  for (auto token = tokens.rbegin(); token != tokens.rend(); ++token) {
    if (!token->content.empty() && seen.insert(token->content).second) ordered.push_back(*token);
  }
  std::reverse(ordered.begin(), ordered.end());
  std::stable_partition(ordered.begin(), ordered.end(),
                        [](const AddedToken& token) { return token.special; });
  return ordered;
}

// Ids for the added tokens that the model lacks: from the size of its vocabulary on, whatever the file says.
std::vector<VocabularyEntry> entries_beyond(const WordPiece& model, const std::vector<AddedToken>& tokens) {
  std::vector<VocabularyEntry> added;
  std::unordered_set<std::string_view> seen;
  auto next = static_cast<int32_t>(model.size());
  for (const AddedToken& token : tokens) {
    if (token.content.empty() || !seen.insert(token.content).second) continue;
    if (const auto id = model.id(token.content)) {
      next = std::max(next, *id + 1);
    } else {
      added.push_back({token.content, next++});
    }
  }
  return added;
}

// The patterns that are searched in raw text, or those searched in normalised text.
std::vector<AddedTokenPattern> patterns(const Tokenizer& tokenizer, const std::vector<AddedToken>& tokens,
                                        const BertNormalizer& normalizer, bool normalized) {
  std::vector<AddedTokenPattern> result;
  for (AddedToken token : in_search_order(tokens)) {
    if (token.normalized != normalized) continue;
    const int32_t id = *tokenizer.id(token.content);
    if (normalized) {
      NormalizedText content;
      normalizer.normalize(token.content, 0, content);
      token.content = content.bytes;
    }
    result.push_back({std::move(token), id});
  }
  return result;
}

void require_tokens(const Tokenizer& tokenizer, const std::vector<TemplatePiece>& pieces,
                    const std::string& name) {
  for (const TemplatePiece& piece : pieces) {
    for (const int32_t id : piece.ids) {
      if (tokenizer.token(id)) continue;
      throw DataError("{}: post_processor: adds a token with the id {}, which the vocabulary lacks", name,
                      id);
    }
  }
}

uint32_t characters_in(std::string_view text, size_t begin, size_t end) {
  return static_cast<uint32_t>(count_code_points(text.substr(begin, end - begin)));
}

}  // namespace

// Buffers that the stages of one encode share.
struct Tokenizer::Scratch {
  std::string repaired;
  std::vector<AddedTokenMatch> raw_matches;
  NormalizedText normalized;
  std::vector<AddedTokenMatch> matches;
  std::vector<WordPieceToken> pieces;
  int32_t word = 0;          // index of the word that comes next
  bool in_one_word = false;  // the caller has split the text: all of it is the word `word`

  int32_t next_word() { return in_one_word ? word : word++; }
};

Tokenizer::Tokenizer(TokenizerParts parts)
    : fingerprint_(fingerprint_of(parts)),
      normalizer_(parts.normalizer),
      model_(std::move(parts.vocabulary), std::move(parts.model), parts.name),
      post_processor_(std::move(parts.post_processor)),
      added_(entries_beyond(model_, parts.added_tokens)),
      raw_tokens_(patterns(*this, parts.added_tokens, normalizer_, false)),
      normalized_tokens_(patterns(*this, parts.added_tokens, normalizer_, true)) {
  require_tokens(*this, post_processor_.single, parts.name);
  require_tokens(*this, post_processor_.pair, parts.name);
}

Encoding Tokenizer::encode(const Input& text, const EncodeOptions& options) const {
  return std::move(encode_all(text, nullptr, options, false).front());
}

Encoding Tokenizer::encode_pair(const Input& first, const Input& second, const EncodeOptions& options) const {
  return std::move(encode_all(first, &second, options, false).front());
}

std::vector<Encoding> Tokenizer::encode_windows(const Input& text, const EncodeOptions& options) const {
  return encode_all(text, nullptr, options, true);
}

std::vector<Encoding> Tokenizer::encode_pair_windows(const Input& first, const Input& second,
                                                     const EncodeOptions& options) const {
  return encode_all(first, &second, options, true);
}

std::vector<Encoding> Tokenizer::encode_all(const Input& first, const Input* second,
                                            const EncodeOptions& options, bool all_windows) const {
  const Sequence first_sequence = tokenize(first);
  if (second == nullptr) {
    return post_process(post_processor_.single, first_sequence, nullptr, options, Side::right, all_windows);
  }
  const Sequence second_sequence = tokenize(*second);
  return post_process(post_processor_.pair, first_sequence, &second_sequence, options, Side::right,
                      all_windows);
}

Sequence Tokenizer::tokenize(const Input& input) const {
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

// Takes the added tokens out of the raw text; the text between them is processed further.
void Tokenizer::tokenize_text(std::string_view text, Scratch& scratch, Sequence& out) const {
  text = replace_invalid_utf8(text, scratch.repaired);
  std::vector<AddedTokenMatch>& matches = scratch.raw_matches;
  raw_tokens_.find(text, matches);
  size_t position = 0;
  uint32_t character = 0;  // of the code point at `position`
  for (const auto& [begin, end, id] : matches) {
    if (begin > position) tokenize_piece(text.substr(position, begin - position), character, scratch, out);
    // A match can begin before `position`: white space of its own that the match before it took along.
    const auto first = begin >= position ? character + characters_in(text, position, begin)
                                         : character - characters_in(text, begin, position);
    character = first + characters_in(text, begin, end);
    out.push_back(id, {first, character}, scratch.next_word());
    position = end;
  }
  if (position < text.size()) tokenize_piece(text.substr(position), character, scratch, out);
}

// Normalises; takes out the added tokens that are searched in normalised text; the text between them is
// processed further.
void Tokenizer::tokenize_piece(std::string_view piece, uint32_t first_character, Scratch& scratch,
                               Sequence& out) const {
  NormalizedText& normalized = scratch.normalized;
  normalized.clear();
  normalizer_.normalize(piece, first_character, normalized);
  normalized_tokens_.find(normalized.bytes, scratch.matches);
  size_t position = 0;
  for (const auto& [begin, end, id] : scratch.matches) {
    if (begin > position) tokenize_words(position, begin, scratch, out);
    out.push_back(id, {normalized.characters[begin], normalized.characters[end - 1] + 1},
                  scratch.next_word());
    position = end;
  }
  if (position < normalized.bytes.size()) tokenize_words(position, normalized.bytes.size(), scratch, out);
}

void Tokenizer::tokenize_words(size_t begin, size_t end, Scratch& scratch, Sequence& out) const {
  const std::string_view text = std::string_view(scratch.normalized.bytes).substr(0, end);
  const std::vector<uint32_t>& characters = scratch.normalized.characters;
  split_words(text, begin, [&](size_t word_begin, size_t word_end) {
    scratch.pieces.clear();
    model_.tokenize(text, word_begin, word_end, scratch.pieces);
    const int32_t word = scratch.next_word();
    for (const WordPieceToken& piece : scratch.pieces)
      out.push_back(piece.id, {characters[piece.begin], characters[piece.end - 1] + 1}, word);
  });
}

std::optional<int32_t> Tokenizer::id(std::string_view token) const {
  if (const auto id = model_.id(token)) return id;
  const auto added =
      std::find_if(added_.begin(), added_.end(), [&](const auto& entry) { return entry.token == token; });
  return added == added_.end() ? std::nullopt : std::optional(added->id);
}

std::optional<std::string_view> Tokenizer::token(int32_t id) const {
  const auto added =
      std::lower_bound(added_.begin(), added_.end(), id,
                       [](const VocabularyEntry& entry, int32_t wanted) { return entry.id < wanted; });
  if (added != added_.end() && added->id == id) return added->token;
  return model_.token(id);
}

int32_t Tokenizer::vocab_size() const {
  return std::max(model_.id_limit(), added_.empty() ? 0 : added_.back().id + 1);
}

}  // namespace stretto::text
