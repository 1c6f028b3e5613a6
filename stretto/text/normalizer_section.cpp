#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/text/base64.h"
#include "stretto/text/bert_normalizer.h"
#include "stretto/text/precompiled_normalizer.h"
#include "stretto/text/tokenizer_sections.h"

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

std::unique_ptr<Normalizer> read_precompiled(const JsonField& section) {
  if (!section.has("precompiled_charsmap")) return std::make_unique<NoNormalizer>();
  const JsonField field = section["precompiled_charsmap"];
  auto charsmap = decode_base64(field.as_string());
  if (!charsmap) throw DataError("{}: expected base 64", field.place());
  return std::make_unique<PrecompiledNormalizer>(std::move(*charsmap), field.place());
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
  const std::string& type = section["type"].as_string();
  if (type == "BertNormalizer")
    return std::make_unique<BertNormalizer>(read_bert_normalizer(section, config, options));
  if (type == "Precompiled") return read_precompiled(section);
  section.unavailable(type, "BertNormalizer and Precompiled");
}

}  // namespace stretto::text
