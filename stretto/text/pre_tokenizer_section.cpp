#include "stretto/base/error.h"
#include "stretto/text/bert_pre_tokenizer.h"
#include "stretto/text/byte_level.h"
#include "stretto/text/metaspace.h"
#include "stretto/text/tokenizer_sections.h"
#include "stretto/text/utf8.h"
#include "stretto/text/whitespace_split.h"

namespace stretto::text {
namespace {

constexpr const char* available_pre_tokenizers =
    "BertPreTokenizer, ByteLevel, Metaspace, WhitespaceSplit and a Sequence of WhitespaceSplit and Metaspace";

std::unique_ptr<PreTokenizer> read_byte_level(const JsonField& section, const JsonField& config,
                                              const TokenizerOptions& options) {
  if (!section.bool_or("use_regex", true)) {
    throw DataError("{}.use_regex: false is not available; expected true, GPT-2's regular expression",
                    section.place());
  }
  const bool here = section.bool_or("add_prefix_space", true);
  return std::make_unique<ByteLevelPreTokenizer>(choose_prefix_space(here, config, options));
}

std::unique_ptr<PreTokenizer> read_metaspace(const JsonField& section, bool split_white_space) {
  MetaspaceOptions options{.split_white_space = split_white_space};
  options.replacement = section.string_or("replacement", options.replacement.c_str());
  if (options.replacement.empty() || count_code_points(options.replacement) != 1)
    throw DataError("{}.replacement: expected one character, found \"{}\"", section.place(),
                    options.replacement);
  options.split = section.bool_or("split", true);
  // Files of early versions have add_prefix_space instead of prepend_scheme.
  const std::string scheme =
      section.string_or("prepend_scheme", section.bool_or("add_prefix_space", true) ? "always" : "never");
  using Prepend = MetaspaceOptions::Prepend;
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    throw DataError("{}.prepend_scheme: expected \"always\", \"first\" or \"never\", found \"{}\"",
                    section.place(), scheme);
  }
  options.prepend = scheme == "always"  ? Prepend::always
                    : scheme == "first" ? Prepend::first
                                        : Prepend::never;
  return std::make_unique<MetaspacePreTokenizer>(options);
}

// The pre-tokenizer that a model requires: others would give wrong ids.
struct Fit {
  const char* model;
  const char* pre_tokenizer;
};
constexpr Fit fits[] = {{"WordPiece", "BertPreTokenizer"},
                        {"BPE", "ByteLevel"},
                        {"Unigram", "Metaspace"},
                        {"WordLevel", "WhitespaceSplit"}};

void require_fit(const JsonField& file, const JsonField& section, const std::string& type) {
  const std::string model = model_type(file["model"]);
  for (const Fit& fit : fits) {
    if (model != fit.model || type == fit.pre_tokenizer) continue;
    throw DataError("{}: a {} model with {} is not available; available is {}", section.place(), model, type,
                    fit.pre_tokenizer);
  }
}

// Reads a sequence of WhitespaceSplit and Metaspace (XLM-RoBERTa, T5), or of a single pre-tokenizer.
std::unique_ptr<PreTokenizer> read_sequence(const JsonField& file, const JsonField& section,
                                            const JsonField& config, const TokenizerOptions& options);

std::unique_ptr<PreTokenizer> read_one(const JsonField& file, const JsonField& section,
                                       const JsonField& config, const TokenizerOptions& options) {
  const std::string& type = section["type"].as_string();
  if (type == "Sequence") return read_sequence(file, section, config, options);
  if (type != "BertPreTokenizer" && type != "ByteLevel" && type != "Metaspace" && type != "WhitespaceSplit")
    section.unavailable(type, available_pre_tokenizers);
  require_fit(file, section, type);
  if (type == "ByteLevel") return read_byte_level(section, config, options);
  if (type == "Metaspace") return read_metaspace(section, false);
  if (type == "WhitespaceSplit") return std::make_unique<WhitespaceSplit>();
  return std::make_unique<BertPreTokenizer>();
}

std::unique_ptr<PreTokenizer> read_sequence(const JsonField& file, const JsonField& section,
                                            const JsonField& config, const TokenizerOptions& options) {
  const JsonField steps = section["pretokenizers"];
  const size_t size = steps.as_list().size();
  if (size == 1) return read_one(file, steps[size_t{0}], config, options);
  const auto type_of = [&](size_t i) { return steps[i]["type"].as_string(); };
  if (size == 2 && type_of(0) == "WhitespaceSplit" && type_of(1) == "Metaspace") {
    require_fit(file, section, "Metaspace");
    return read_metaspace(steps[1], true);
  }
  std::string types;
  for (size_t i = 0; i < size; ++i) types += (i > 0 ? ", " : "") + type_of(i);
  section.unavailable("Sequence of " + types, available_pre_tokenizers);
}

}  // namespace

bool choose_prefix_space(bool here, const JsonField& config, const TokenizerOptions& options) {
  return options.add_prefix_space ? *options.add_prefix_space : config.bool_or("add_prefix_space", here);
}

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonField& file, const JsonField& config,
                                                 const TokenizerOptions& options) {
  if (!file.has("pre_tokenizer")) {
    throw DataError("{} pre_tokenizer: it is missing; available are {}", file.place(),
                    available_pre_tokenizers);
  }
  return read_one(file, file["pre_tokenizer"], config, options);
}

}  // namespace stretto::text
