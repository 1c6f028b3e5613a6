#include <array>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/text/bpe.h"
#include "stretto/text/byte_level.h"
#include "stretto/text/configured_tokens.h"
#include "stretto/text/tokenizer_files.h"
#include "stretto/text/utf8.h"

// Reads vocab.json and merges.txt, the files of GPT-2's, RoBERTa's and BART's tokenizers without a
// tokenizer.json.
namespace stretto::text {
namespace {

enum class Family { gpt2, roberta };

// One rule per line: two tokens with a space between them. The first line may be a comment, "#version: 0.2".
Merges read_merges(std::string_view text, const std::string& name) {
  Merges merges;
  int64_t number = 0;
  std::string repaired;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with("#version")) continue;
    if (replace_invalid_utf8(line, repaired).data() != line.data())
      throw DataError("{}:{}: not valid UTF-8; expected two tokens with a space between them", name, number);
    const size_t space = line.find(' ');
    const bool two = space != std::string_view::npos && space > 0 && space + 1 < line.size() &&
                     line.find(' ', space + 1) == std::string_view::npos;
    if (!two) {
      throw DataError("{}:{}: found \"{}\"; expected two tokens with a space between them", name, number,
                      line);
    }
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

// Chooses between the two families, whose files differ in the special tokens only.
Family choose_family(const Vocabulary& vocabulary, const JsonField& config, const std::string& name,
                     bool log_choice) {
  static constexpr std::array<std::pair<const char*, Family>, 6> classes = {
      {{"GPT2Tokenizer", Family::gpt2},
       {"GPT2TokenizerFast", Family::gpt2},
       {"RobertaTokenizer", Family::roberta},
       {"RobertaTokenizerFast", Family::roberta},
       {"BartTokenizer", Family::roberta},
       {"BartTokenizerFast", Family::roberta}}};
  if (config.has("tokenizer_class")) {
    const std::string& wanted = config["tokenizer_class"].as_string();
    for (const auto& [known, family] : classes) {
      if (wanted == known) return family;
    }
    throw DataError(
        "{} tokenizer_class: \"{}\" is not available from vocab.json and merges.txt; available are GPT2Tokenizer, RobertaTokenizer and BartTokenizer; save it with transformers as tokenizer.json",
        config.place(), wanted);
  }
  if (vocabulary.id("<s>") && vocabulary.id("</s>")) {
    if (log_choice) log::info("{}: treated as RoBERTa's or BART's: its vocabulary has <s> and </s>", name);
    return Family::roberta;
  }
  if (vocabulary.id("<|endoftext|>")) {
    if (log_choice)
      log::info("{}: treated as GPT-2's: its vocabulary has <|endoftext|>, not <s> and </s>", name);
    return Family::gpt2;
  }
  throw DataError(
      "{}: lacks <|endoftext|> (GPT-2) and <s>, </s> (RoBERTa, BART); name tokenizer_class and the special tokens in a tokenizer_config.json next to it",
      name);
}

void add_gpt2(TokenizerParts& parts, const JsonField& config) {
  if (config.bool_or("add_bos_token", false))
    throw DataError("{} add_bos_token: true is not available; expected false", config.place());
  for (const char* key : {"unk_token", "bos_token", "eos_token"})
    parts.added_tokens.push_back(configured_added_token(config, key, "<|endoftext|>"));
  parts.eos_token = configured_token(config, "eos_token", "<|endoftext|>");
  if (config.has("pad_token")) parts.added_tokens.push_back(configured_added_token(config, "pad_token", ""));
}

void add_roberta(TokenizerParts& parts, const JsonField& config, bool prefix_space) {
  for (const auto& [key, content] :
       {std::pair("bos_token", "<s>"), std::pair("cls_token", "<s>"), std::pair("pad_token", "<pad>"),
        std::pair("eos_token", "</s>"), std::pair("sep_token", "</s>"), std::pair("unk_token", "<unk>"),
        std::pair("mask_token", "<mask>")}) {
    parts.added_tokens.push_back(configured_added_token(config, key, content));
  }
  parts.eos_token = configured_token(config, "eos_token", "</s>");
  const Vocabulary& vocabulary = parts.model->vocabulary();
  const auto id_of = [&](const char* key, const char* content) {
    return vocabulary.required_id(configured_token(config, key, content), key, parts.name);
  };
  parts.post_processor = {
      .pieces = roberta_template(id_of("cls_token", "<s>"), id_of("sep_token", "</s>")),
      .offsets = {.trim = config.bool_or("trim_offsets", true), .add_prefix_space = prefix_space}};
}

}  // namespace

TokenizerParts parse_byte_level(const nlohmann::json& vocabulary, const std::string& name,
                                std::string_view merges, const std::string& merges_name,
                                const nlohmann::json& config, const std::string& config_name,
                                const TokenizerOptions& options) {
  const JsonField settings(config, config_name + ":");
  TokenizerParts parts;
  parts.name = name;
  parts.model = std::make_unique<Bpe>(Vocabulary(JsonField(vocabulary, name).as_vocabulary(), name),
                                      read_merges(merges, merges_name), BpeOptions(), merges_name);
  const bool prefix_space = options.add_prefix_space.value_or(settings.bool_or("add_prefix_space", false));
  parts.pre_tokenizer = std::make_unique<ByteLevelPreTokenizer>(prefix_space);
  parts.decoder = {.kind = Decoder::Kind::byte_level};
  if (choose_family(parts.model->vocabulary(), settings, name, options.log_choices) == Family::gpt2) {
    add_gpt2(parts, settings);
    parts.hugging_face_class = "GPT2Tokenizer";
  } else {
    add_roberta(parts, settings, prefix_space);
    parts.hugging_face_class = "RobertaTokenizer";
  }
  return parts;
}

}  // namespace stretto::text
