#include <algorithm>
#include <map>
#include <optional>

#include <openssl/evp.h>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/utf8.h"
#include "stretto/text/bert_normalizer.h"
#include "stretto/text/precompiled_normalizer.h"
#include "stretto/text/replace_normalizer.h"
#include "stretto/text/simple_normalizers.h"
#include "stretto/text/tokenizer_sections.h"
#include "stretto/text/unicode_normalizer.h"

namespace stretto::text {
namespace {

BertNormalizerOptions read_bert_normalizer(const JsonField& section, const JsonField& config,
                                           const TokenizerOptions& options) {
  const auto read = [&](const char* key, const char* config_key, bool otherwise) {
    const bool here = section.bool_or(key, otherwise);
    const bool wanted = config.bool_or(config_key, here);
    if (wanted != here) {
      log::info("{}.{}: {} is overridden by {} {}: {}", section.place(), key, here, config.place(),
                config_key, wanted);
    }
    return wanted;
  };
  BertNormalizerOptions normalizer;
  normalizer.clean_text = section.bool_or("clean_text", true);
  normalizer.handle_chinese_chars = read("handle_chinese_chars", "tokenize_chinese_chars", true);
  normalizer.lowercase = options.lowercase ? *options.lowercase : read("lowercase", "do_lower_case", true);
  normalizer.strip_accents = read("strip_accents", "strip_accents", normalizer.lowercase);
  return normalizer;
}

// Decodes padded base 64 (RFC 4648); nullopt if it is malformed. EVP_DecodeBlock itself skips white space at
// both ends, accepts "=" anywhere as zero bits, and writes bytes for the padding.
std::optional<std::string> decode_base64(std::string_view text) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string_view padding = text.substr(std::min(text.find_first_not_of(digits), text.size()));
  if (text.size() % 4 != 0 || (!padding.empty() && padding != "=" && padding != "==")) return std::nullopt;
  std::string bytes(text.size() / 4 * 3, '\0');
  ::EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                    reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  bytes.erase(bytes.size() - std::min(padding.size(), bytes.size()));
  return bytes;
}

std::unique_ptr<Normalizer> read_precompiled(const JsonField& section) {
  if (!section.has("precompiled_charsmap")) return std::make_unique<NoNormalizer>();
  const JsonField field = section["precompiled_charsmap"];
  auto charsmap = decode_base64(field.as_string());
  if (!charsmap)
    throw DataError("{}: expected base 64, found \"{}\"", field.place(), cut_utf8(field.as_string(), 40));
  return std::make_unique<PrecompiledNormalizer>(std::move(*charsmap), field.place());
}

std::unique_ptr<Normalizer> read_replace(const JsonField& section) {
  const JsonField pattern = section["pattern"];
  const bool is_regex = pattern.has("Regex");
  const JsonField field = pattern[is_regex ? "Regex" : "String"];
  return std::make_unique<ReplaceNormalizer>(field.as_string(), is_regex, section["content"].as_string(),
                                             field.place());
}

const std::map<std::string, UnicodeForm> unicode_forms = {
    {"NFC", {.compatibility = false, .compose = true}},
    {"NFD", {.compatibility = false, .compose = false}},
    {"NFKC", {.compatibility = true, .compose = true}},
    {"NFKD", {.compatibility = true, .compose = false}}};

std::unique_ptr<Normalizer> read_one_normalizer(const JsonField& section, const JsonField& config,
                                                const TokenizerOptions& options) {
  const std::string& type = section["type"].as_string();
  if (type == "BertNormalizer")
    return std::make_unique<BertNormalizer>(read_bert_normalizer(section, config, options));
  if (type == "Precompiled") return read_precompiled(section);
  if (type == "Replace") return read_replace(section);
  if (type == "Lowercase") return std::make_unique<LowercaseNormalizer>();
  if (type == "StripAccents") return std::make_unique<StripAccentsNormalizer>();
  if (type == "Strip")
    return std::make_unique<StripNormalizer>(section["strip_left"].as_bool(),
                                             section["strip_right"].as_bool());
  if (type == "Prepend") return std::make_unique<PrependNormalizer>(section["prepend"].as_string());
  if (const auto form = unicode_forms.find(type); form != unicode_forms.end())
    return std::make_unique<UnicodeNormalizer>(form->second);
  if (type != "Sequence") {
    section.unavailable(
        type,
        "BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, Precompiled, Prepend, Replace, Sequence, Strip and StripAccents");
  }
  const JsonField list = section["normalizers"];
  std::vector<std::unique_ptr<Normalizer>> steps;
  for (size_t i = 0; i < list.as_list().size(); ++i)
    steps.push_back(read_one_normalizer(list[i], config, options));
  return std::make_unique<NormalizerSequence>(std::move(steps));
}

}  // namespace

std::unique_ptr<Normalizer> read_normalizer(const JsonField& file, const JsonField& config,
                                            const TokenizerOptions& options) {
  if (!file.has("normalizer")) {
    if (model_type(file["model"]) != "WordPiece") return std::make_unique<NoNormalizer>();
    const bool lowercase = options.lowercase.value_or(false);
    return std::make_unique<BertNormalizer>(BertNormalizerOptions{.clean_text = false,
                                                                  .handle_chinese_chars = false,
                                                                  .strip_accents = lowercase,
                                                                  .lowercase = lowercase});
  }
  const JsonField section = file["normalizer"];
  auto normalizer = read_one_normalizer(section, config, options);
  const bool wordpiece = model_type(file["model"]) == "WordPiece";
  if (wordpiece && options.lowercase && normalizer->lowercase() != *options.lowercase) {
    throw ConfigError("{}: {} text in lower case; lowercase: {} needs a BertNormalizer there",
                      section.place(), normalizer->lowercase() ? "puts" : "does not put", *options.lowercase);
  }
  return normalizer;
}

}  // namespace stretto::text
