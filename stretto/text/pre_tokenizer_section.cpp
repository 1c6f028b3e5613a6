#include "stretto/base/error.h"
#include "stretto/text/bert_pre_tokenizer.h"
#include "stretto/text/byte_level.h"
#include "stretto/text/cl100k.h"
#include "stretto/text/metaspace.h"
#include "stretto/text/tokenizer_sections.h"
#include "stretto/text/utf8.h"
#include "stretto/text/whitespace_split.h"
#include "stretto/text/whole_text.h"

namespace stretto::text {
namespace {

constexpr const char* available_pre_tokenizers =
    "BertPreTokenizer, ByteLevel, Metaspace, WhitespaceSplit and a Sequence of WhitespaceSplit and Metaspace or of Split and ByteLevel";

std::unique_ptr<PreTokenizer> read_byte_level(const JsonField& section, const JsonField& config,
                                              const TokenizerOptions& options) {
  if (!section.bool_or("use_regex", true)) {
    throw DataError(
        "{}.use_regex: false is not available without a Split before; expected true, GPT-2's regular expression",
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

// The pre-tokenizers that fit a model; with others the ids would be meaningless.
struct Fit {
  const char* model;
  const char* pre_tokenizer;
};
constexpr Fit fits[] = {{"WordPiece", "BertPreTokenizer"},
                        {"BPE", "ByteLevel"},
                        {"BPE", "Metaspace"},
                        {"Unigram", "Metaspace"},
                        {"WordLevel", "WhitespaceSplit"}};

void require_fit(const JsonField& file, const JsonField& section, const std::string& type) {
  const std::string model = model_type(file["model"]);
  std::vector<std::string> fitting;
  for (const Fit& fit : fits) {
    if (model != fit.model) continue;
    if (type == fit.pre_tokenizer) return;
    fitting.emplace_back(fit.pre_tokenizer);
  }
  if (fitting.empty()) return;  // the model is refused when it is read
  throw DataError("{}: a {} model with {} is not available; available {} {}", section.place(), model, type,
                  fitting.size() == 1 ? "is" : "are", fmt::join(fitting, " and "));
}

// The regular expressions of Split that are implemented by hand.
struct SplitPattern {
  const char* expression;
  int longest_number;  // of Cl100kPreTokenizer; 0: the words are GPT-2's
};
constexpr SplitPattern split_patterns[] = {
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     1},
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", 0},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", 0}};

// A Split followed by the spelling of bytes, as in Llama 3 and Qwen.
std::unique_ptr<PreTokenizer> read_split(const JsonField& split, const JsonField& bytes) {
  const std::string behavior = split.string_or("behavior", "");
  if (behavior != "Isolated" || split.bool_or("invert", false)) {
    throw DataError("{}.behavior: \"{}\" or invert is not available; expected \"Isolated\" without invert",
                    split.place(), behavior);
  }
  if (bytes.bool_or("use_regex", true) || bytes.bool_or("add_prefix_space", true)) {
    throw DataError("{}: behind a Split, use_regex and add_prefix_space are not available; expected false",
                    bytes.place());
  }
  const JsonField pattern = split["pattern"];
  const JsonField expression = pattern[pattern.has("Regex") ? "Regex" : "String"];
  for (const SplitPattern& known : split_patterns) {
    if (!pattern.has("Regex") || expression.as_string() != known.expression) continue;
    if (known.longest_number == 0) return std::make_unique<ByteLevelPreTokenizer>(false);
    return std::make_unique<Cl100kPreTokenizer>(known.longest_number);
  }
  throw DataError(
      "{}: \"{}\" is not available; available are the regular expressions of GPT-2, Llama 3 and Qwen2",
      expression.place(), expression.as_string());
}

// Reads WhitespaceSplit and Metaspace, as in XLM-RoBERTa and T5, or Split and ByteLevel; a sequence of one
// element is that element.
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
  if (size == 2 && type_of(0) == "Split" && type_of(1) == "ByteLevel") {
    require_fit(file, section, "ByteLevel");
    return read_split(steps[size_t{0}], steps[1]);
  }
  std::string types;
  for (size_t i = 0; i < size; ++i) types += (i > 0 ? ", " : "") + type_of(i);
  section.unavailable("Sequence of " + types, available_pre_tokenizers);
}

}  // namespace

bool splits_bytes(const JsonField& file) {
  if (!file.has("pre_tokenizer")) return false;
  const JsonField section = file["pre_tokenizer"];
  if (section["type"].as_string() != "Sequence") return section["type"].as_string() == "ByteLevel";
  const JsonField steps = section["pretokenizers"];
  for (size_t i = 0; i < steps.as_list().size(); ++i)
    if (steps[i]["type"].as_string() == "ByteLevel") return true;
  return false;
}

bool choose_prefix_space(bool here, const JsonField& config, const TokenizerOptions& options) {
  return options.add_prefix_space ? *options.add_prefix_space : config.bool_or("add_prefix_space", here);
}

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonField& file, const JsonField& config,
                                                 const TokenizerOptions& options) {
  if (!file.has("pre_tokenizer")) {
    if (model_type(file["model"]) == "BPE") return std::make_unique<WholeText>();
    throw DataError("{} pre_tokenizer: it is missing; available are {}", file.place(),
                    available_pre_tokenizers);
  }
  return read_one(file, file["pre_tokenizer"], config, options);
}

}  // namespace stretto::text
