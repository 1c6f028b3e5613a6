#include "stretto/text/tokenizer_stages.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/text/unicode.h"
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

}  // namespace

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
  for (const int32_t id : ids)
    if (const auto found = decoded_token(id, options)) tokens.push_back(*found);
  return decode_tokens(decoder_, tokens);
}

std::optional<std::string_view> TokenizerStages::decoded_token(int32_t id,
                                                               const DecodeOptions& options) const {
  const bool is_skipped =
      options.skip_special_tokens && std::binary_search(special_ids_.begin(), special_ids_.end(), id);
  return is_skipped ? std::nullopt : token(id);
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

}  // namespace stretto::text
