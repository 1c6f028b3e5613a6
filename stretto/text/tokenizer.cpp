#include "stretto/text/tokenizer.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/text/id_encoder_state.h"
#include "stretto/text/tokenizer_parts.h"
#include "stretto/text/unicode.h"
#include "stretto/text/utf8.h"

namespace stretto::text {

// The stages of encoding and decoding, in the order of the files.
class TokenizerStages {
 public:
  explicit TokenizerStages(TokenizerParts parts);

  std::vector<Encoding> encode_all(const Input& first, const Input* second, const EncodeOptions& options,
                                   bool all_windows) const;
  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options) const;
  std::optional<int32_t> id(std::string_view token) const;
  std::optional<std::string_view> token(int32_t id) const;
  std::optional<int32_t> cls_id() const;
  int32_t vocab_size() const;
  const std::string& fingerprint() const { return fingerprint_; }
  const std::string& hugging_face_class() const { return hugging_face_class_; }
  const SavedLengths& saved_lengths() const { return saved_lengths_; }
  bool lowercase() const { return normalizer_->lowercase(); }
  TemplateIds template_ids() const;
  std::optional<int32_t> eos_id() const { return eos_id_; }
  bool reads_any_bytes() const { return model_->reads_any_bytes(); }
  bool reads_in_parts() const { return reads_in_parts_; }
  void append_ids(std::string_view text, IdEncoderState& state, std::vector<int32_t>& ids) const;
  void append_word(std::string_view word, IdEncoderState& state, std::vector<int32_t>& ids) const;

 private:
  struct Scratch;
  Sequence tokenize(const Input& input) const;
  void tokenize_text(std::string_view text, Scratch& scratch, Sequence& out) const;
  void tokenize_piece(std::string_view piece, uint32_t first_character, Scratch& scratch,
                      Sequence& out) const;
  void tokenize_words(NormalizedText& text, Scratch& scratch, Sequence& out) const;
  void append_piece(std::string_view piece, uint32_t first_character, IdEncoderState& state,
                    std::vector<int32_t>& ids) const;
  void append_words(NormalizedText& text, IdEncoderState& state, std::vector<int32_t>& ids) const;
  void append_each_word(std::string_view text, IdEncoderState& state, std::vector<int32_t>& ids) const;

  std::string fingerprint_;
  std::unique_ptr<Normalizer> normalizer_;
  std::unique_ptr<PreTokenizer> pre_tokenizer_;
  std::unique_ptr<Model> model_;
  PostProcessor post_processor_;
  Decoder decoder_;
  Side truncation_side_;
  SavedLengths saved_lengths_;
  std::string hugging_face_class_;
  bool reads_in_parts_;
  std::vector<VocabularyEntry> added_;  // added tokens that the model's vocabulary lacks
  std::vector<int32_t> special_ids_;    // sorted
  AddedTokenMatcher raw_tokens_;
  AddedTokenMatcher normalized_tokens_;
  std::optional<int32_t> eos_id_;
};

namespace {

void describe(std::string& out, const std::vector<TemplatePiece>& pieces) {
  for (const TemplatePiece& piece : pieces) {
    fmt::format_to(std::back_inserter(out), "{} {} {};", static_cast<int>(piece.kind), piece.type_id,
                   fmt::join(piece.ids, ","));
  }
  out += '\n';
}

// A hash of everything that affects ids and offsets.
std::string fingerprint_of(const TokenizerParts& parts) {
  std::string all = parts.normalizer->description() + "\n" + parts.model->description() +
                    parts.pre_tokenizer->description();
  for (const auto& [token, id] : parts.model->vocabulary().entries())
    fmt::format_to(std::back_inserter(all), "{} {}\n", id, token);
  for (const AddedToken& token : parts.added_tokens) {
    fmt::format_to(std::back_inserter(all), "{} {} {} {} {}\n", token.single_word, token.lstrip, token.rstrip,
                   token.normalized, token.content);
  }
  const PostProcessor& post_processor = parts.post_processor;
  describe(all, post_processor.pieces.single);
  describe(all, post_processor.pieces.pair);
  if (post_processor.offsets.trim)
    all += post_processor.offsets.add_prefix_space ? "trim but prefix\n" : "trim\n";
  return hash128_hex(all);
}

// The later one of two added tokens with the same content is used; special tokens are searched first.
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

// Assigns ids to the added tokens that the model lacks, from the size of its vocabulary on, regardless of the
// ids in the file.
std::vector<VocabularyEntry> entries_beyond(const Vocabulary& model, const std::vector<AddedToken>& tokens) {
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

// The patterns to search in raw text, or in normalised text.
std::vector<AddedTokenPattern> patterns(const TokenizerStages& tokenizer,
                                        const std::vector<AddedToken>& tokens, const Normalizer& normalizer,
                                        bool normalized) {
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

void require_tokens(const TokenizerStages& tokenizer, const std::vector<TemplatePiece>& pieces,
                    const std::string& name) {
  for (const TemplatePiece& piece : pieces) {
    for (const int32_t id : piece.ids) {
      if (tokenizer.token(id)) continue;
      throw DataError("{}: post_processor: adds a token with the id {}, which the vocabulary lacks", name,
                      id);
    }
  }
}

// The ids of special added tokens.
std::vector<int32_t> special_ids(const TokenizerStages& tokenizer, const std::vector<AddedToken>& tokens) {
  std::vector<int32_t> ids;
  for (const AddedToken& token : in_search_order(tokens)) {
    if (token.special) ids.push_back(*tokenizer.id(token.content));
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

// An added token that contains white space, or includes the white space after it, can extend over a cut
// before a space.
bool keeps_to_its_part(const AddedToken& token) {
  for (size_t position = 0; position < token.content.size();) {
    if (is_whitespace(next_code_point(token.content, position))) return false;
  }
  return !token.rstrip;
}

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

TokenizerStages::TokenizerStages(TokenizerParts parts)
    : fingerprint_(fingerprint_of(parts)),
      normalizer_(std::move(parts.normalizer)),
      pre_tokenizer_(std::move(parts.pre_tokenizer)),
      model_(std::move(parts.model)),
      post_processor_(std::move(parts.post_processor)),
      decoder_(std::move(parts.decoder)),
      truncation_side_(parts.truncation_side),
      saved_lengths_(parts.saved_lengths),
      hugging_face_class_(std::move(parts.hugging_face_class)),
      reads_in_parts_(normalizer_->works_in_parts() && pre_tokenizer_->works_in_parts() &&
                      std::ranges::all_of(parts.added_tokens, keeps_to_its_part)),
      added_(entries_beyond(model_->vocabulary(), parts.added_tokens)),
      special_ids_(special_ids(*this, parts.added_tokens)),
      raw_tokens_(patterns(*this, parts.added_tokens, *normalizer_, false)),
      normalized_tokens_(patterns(*this, parts.added_tokens, *normalizer_, true)) {
  require_tokens(*this, post_processor_.pieces.single, parts.name);
  require_tokens(*this, post_processor_.pieces.pair, parts.name);
  eos_id_ = parts.eos_token.empty() ? std::nullopt : id(parts.eos_token);
}

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

TemplateIds TokenizerStages::template_ids() const {
  TemplateIds around;
  bool behind = false;
  for (const TemplatePiece& piece : post_processor_.pieces.single) {
    if (piece.kind == TemplatePiece::Kind::first) behind = true;
    std::vector<int32_t>& side = behind ? around.after : around.before;
    if (piece.kind == TemplatePiece::Kind::special)
      side.insert(side.end(), piece.ids.begin(), piece.ids.end());
  }
  return around;
}

std::string TokenizerStages::decode(std::span<const int32_t> ids, const DecodeOptions& options) const {
  std::vector<std::string_view> tokens;
  for (const int32_t id : ids) {
    const auto found = token(id);
    if (!found) continue;
    if (options.skip_special_tokens && std::binary_search(special_ids_.begin(), special_ids_.end(), id))
      continue;
    tokens.push_back(*found);
  }
  return decode_tokens(decoder_, tokens);
}

std::optional<int32_t> TokenizerStages::id(std::string_view token) const {
  if (const auto id = model_->vocabulary().id(token)) return id;
  const auto added =
      std::find_if(added_.begin(), added_.end(), [&](const auto& entry) { return entry.token == token; });
  return added == added_.end() ? std::nullopt : std::optional(added->id);
}

std::optional<std::string_view> TokenizerStages::token(int32_t id) const {
  const auto added =
      std::lower_bound(added_.begin(), added_.end(), id,
                       [](const VocabularyEntry& entry, int32_t wanted) { return entry.id < wanted; });
  if (added != added_.end() && added->id == id) return added->token;
  return model_->vocabulary().token(id);
}

std::optional<int32_t> TokenizerStages::cls_id() const {
  const TemplatePiece& first = post_processor_.pieces.single.front();
  return first.kind == TemplatePiece::Kind::special && !first.ids.empty() ? std::optional(first.ids[0])
                                                                          : std::nullopt;
}

int32_t TokenizerStages::vocab_size() const {
  return std::max(model_->vocabulary().id_limit(), added_.empty() ? 0 : added_.back().id + 1);
}

Tokenizer::Tokenizer(TokenizerParts parts)
    : stages_(std::make_unique<const TokenizerStages>(std::move(parts))) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Encoding Tokenizer::encode(const Input& text, const EncodeOptions& options) const {
  return std::move(stages_->encode_all(text, nullptr, options, false).front());
}

Encoding Tokenizer::encode_pair(const Input& first, const Input& second, const EncodeOptions& options) const {
  return std::move(stages_->encode_all(first, &second, options, false).front());
}

std::vector<Encoding> Tokenizer::encode_windows(const Input& text, const EncodeOptions& options) const {
  return stages_->encode_all(text, nullptr, options, true);
}

std::vector<Encoding> Tokenizer::encode_pair_windows(const Input& first, const Input& second,
                                                     const EncodeOptions& options) const {
  return stages_->encode_all(first, &second, options, true);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, const DecodeOptions& options) const {
  return stages_->decode(ids, options);
}

std::optional<int32_t> Tokenizer::id(std::string_view token) const { return stages_->id(token); }
std::optional<std::string_view> Tokenizer::token(int32_t id) const { return stages_->token(id); }
std::optional<int32_t> Tokenizer::cls_id() const { return stages_->cls_id(); }
int32_t Tokenizer::vocab_size() const { return stages_->vocab_size(); }
const std::string& Tokenizer::fingerprint() const { return stages_->fingerprint(); }
const std::string& Tokenizer::hugging_face_class() const { return stages_->hugging_face_class(); }
const SavedLengths& Tokenizer::saved_lengths() const { return stages_->saved_lengths(); }
bool Tokenizer::lowercase() const { return stages_->lowercase(); }
TemplateIds Tokenizer::template_ids() const { return stages_->template_ids(); }
std::optional<int32_t> Tokenizer::eos_id() const { return stages_->eos_id(); }
bool Tokenizer::reads_any_bytes() const { return stages_->reads_any_bytes(); }
bool Tokenizer::reads_in_parts() const { return stages_->reads_in_parts(); }
void Tokenizer::append_ids(std::string_view text, IdEncoderState& state, std::vector<int32_t>& ids) const {
  stages_->append_ids(text, state, ids);
}
void Tokenizer::append_word(std::string_view word, IdEncoderState& state, std::vector<int32_t>& ids) const {
  stages_->append_word(word, state, ids);
}

}  // namespace stretto::text
