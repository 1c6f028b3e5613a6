#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/text/bert_normalizer.h"
#include "stretto/text/bert_pre_tokenizer.h"
#include "stretto/text/configured_tokens.h"
#include "stretto/text/json_fields.h"
#include "stretto/text/tokenizer_files.h"
#include "stretto/text/unicode.h"
#include "stretto/text/utf8.h"
#include "stretto/text/wordpiece.h"

namespace stretto::text {
namespace {

std::vector<VocabularyEntry> read_lines(std::string_view text, const std::string& name) {
  std::vector<VocabularyEntry> vocabulary;
  std::string repaired;
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.empty()) throw DataError("{}: empty; expected one token per line", name);
  for (std::string_view line : split(text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto id = static_cast<int32_t>(vocabulary.size());
    if (replace_invalid_utf8(line, repaired).data() != line.data()) {
      throw DataError("{}:{}: not valid UTF-8; expected one token per line", name, id + 1);
    }
    vocabulary.push_back({std::string(line), id});
  }
  return vocabulary;
}

// Whether lower-casing changes the token; uncased vocabularies may contain capitals without a lower case,
// such as U+211D.
bool contains_upper_case(std::string_view token) {
  if (token.starts_with('[') && token.ends_with(']')) return false;
  for (size_t position = 0; position < token.size();) {
    const char32_t c = next_code_point(token, position);
    if (lower_case(c).values[0] != c) return true;
  }
  return false;
}

bool choose_lowercase(const std::vector<VocabularyEntry>& vocabulary, const std::string& name,
                      bool log_choice) {
  const auto upper = std::find_if(vocabulary.begin(), vocabulary.end(), [](const VocabularyEntry& entry) {
    return contains_upper_case(entry.token);
  });
  const bool uncased = upper == vocabulary.end();
  if (!log_choice) return uncased;
  if (uncased) {
    log::info("{}: treated as uncased: text is lower-cased, since no token has an upper-case letter", name);
  } else {
    log::info("{}: treated as cased: text keeps its case, since tokens like \"{}\" have upper-case letters",
              name, upper->token);
  }
  return uncased;
}

int32_t require_id(const std::vector<VocabularyEntry>& vocabulary, const std::string& token,
                   const std::string& name) {
  const auto last = std::find_if(vocabulary.rbegin(), vocabulary.rend(),
                                 [&](const VocabularyEntry& entry) { return entry.token == token; });
  if (last == vocabulary.rend()) {
    throw DataError(
        "{}: lacks \"{}\"; name the special tokens of this vocabulary in a tokenizer_config.json next to it",
        name, token);
  }
  return last->id;
}

}  // namespace

TokenizerParts parse_vocabulary(std::string_view lines, const std::string& name, const nlohmann::json& config,
                                const std::string& config_name, const TokenizerOptions& options) {
  const JsonField settings(config, config_name + ":");
  TokenizerParts parts;
  parts.name = name;
  auto vocabulary = read_lines(lines, name);

  BertNormalizerOptions normalizer;
  normalizer.lowercase = options.lowercase ? *options.lowercase
                         : settings.has("do_lower_case")
                             ? settings["do_lower_case"].as_bool()
                             : choose_lowercase(vocabulary, name, options.log_choices);
  normalizer.strip_accents = settings.bool_or("strip_accents", normalizer.lowercase);
  normalizer.handle_chinese_chars = settings.bool_or("tokenize_chinese_chars", true);
  parts.normalizer = std::make_unique<BertNormalizer>(normalizer);
  parts.pre_tokenizer = std::make_unique<BertPreTokenizer>();

  const std::string unk = configured_token(settings, "unk_token", "[UNK]");
  const std::string cls = configured_token(settings, "cls_token", "[CLS]");
  const std::string sep = configured_token(settings, "sep_token", "[SEP]");
  const int32_t cls_id = require_id(vocabulary, cls, name);
  const int32_t sep_id = require_id(vocabulary, sep, name);
  parts.post_processor.pieces = bert_template(cls_id, sep_id);
  for (const std::string& token : {unk, sep, configured_token(settings, "pad_token", "[PAD]"), cls,
                                   configured_token(settings, "mask_token", "[MASK]")}) {
    parts.added_tokens.push_back({.content = token, .normalized = false, .special = true});
  }
  parts.decoder = {.kind = Decoder::Kind::wordpiece, .mark = "##"};
  parts.hugging_face_class = "BertTokenizer";
  parts.model = std::make_unique<WordPiece>(Vocabulary(std::move(vocabulary), name),
                                            WordPieceOptions{.unk_token = unk}, name);
  return parts;
}

}  // namespace stretto::text
