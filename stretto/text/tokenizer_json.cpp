#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/text/json_fields.h"
#include "stretto/text/tokenizer_files.h"

namespace stretto::text {
namespace {

// Throws unless `section` is of the one kind there is.
void require_type(const JsonField& section, const char* available) {
  const std::string& type = section["type"].as_string();
  if (type != available) {
    throw DataError("{}: \"{}\" is not available; available is {}", section.place() + ".type", type,
                    available);
  }
}

BertNormalizerOptions read_normalizer(const JsonField& file, const JsonField& config,
                                      const TokenizerOptions& options) {
  if (!file.has("normalizer")) {
    const bool lowercase = options.lowercase.value_or(false);
    return {.clean_text = false,
            .handle_chinese_chars = false,
            .strip_accents = lowercase,
            .lowercase = lowercase};
  }
  const JsonField section = file["normalizer"];
  require_type(section, "BertNormalizer");
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

// Files of early versions name no type; each kind has fields of its own.
std::string model_type(const JsonField& model) {
  if (model.has("type")) return model["type"].as_string();
  if (model.has("merges")) return "BPE";
  if (model.has("max_input_chars_per_word")) return "WordPiece";
  return model.has("unk_id") ? "Unigram" : "WordLevel";
}

void read_model(const JsonField& model, TokenizerParts& parts) {
  if (const std::string type = model_type(model); type != "WordPiece") {
    throw DataError("{}.type: a {} tokenizer is not available; available is WordPiece", model.place(), type);
  }
  WordPieceOptions options;
  options.unk_token = model.string_or("unk_token", "[UNK]");
  options.continuing_subword_prefix = model.string_or("continuing_subword_prefix", "##");
  if (model.has("max_input_chars_per_word")) {
    options.max_input_chars_per_word = static_cast<size_t>(model["max_input_chars_per_word"].as_id());
  }
  parts.model = options;
  parts.vocabulary = model["vocab"].as_vocabulary();
}

void read_added_tokens(const JsonField& file, TokenizerParts& parts) {
  if (!file.has("added_tokens")) return;
  const JsonField list = file["added_tokens"];
  for (size_t i = 0; i < list.as_list().size(); ++i) {
    const JsonField item = list[i];
    AddedToken token;
    token.content = item["content"].as_string();
    if (token.content.size() > longest_token) {
      throw DataError("{}.content: a token of {} bytes; expected at most {}", item.place(),
                      token.content.size(), longest_token);
    }
    token.special = item.bool_or("special", false);
    token.single_word = item.bool_or("single_word", false);
    token.lstrip = item.bool_or("lstrip", false);
    token.rstrip = item.bool_or("rstrip", false);
    token.normalized = item.bool_or("normalized", !token.special);
    token.id_in_file = item["id"].as_id();
    parts.added_tokens.push_back(std::move(token));
  }
}

std::vector<int32_t> read_special_ids(const JsonField& special_tokens, const std::string& name) {
  const JsonField ids = special_tokens[name.c_str()]["ids"];
  std::vector<int32_t> result;
  for (size_t i = 0; i < ids.as_list().size(); ++i) result.push_back(ids[i].as_id());
  return result;
}

// A text that a template leaves out would be lost without a word; one that comes twice could not be cut.
void require_once(const std::vector<TemplatePiece>& pieces, TemplatePiece::Kind kind,
                  const JsonField& place) {
  const auto count = std::count_if(pieces.begin(), pieces.end(),
                                   [&](const TemplatePiece& piece) { return piece.kind == kind; });
  if (count == 1) return;
  throw DataError("{}: expected the sequence \"{}\" once, found it {} times", place.place(),
                  kind == TemplatePiece::Kind::first ? "A" : "B", count);
}

std::vector<TemplatePiece> read_template(const JsonField& pieces, const JsonField& special_tokens,
                                         bool pair) {
  std::vector<TemplatePiece> result;
  for (size_t i = 0; i < pieces.as_list().size(); ++i) {
    const JsonField piece = pieces[i];
    if (piece.has("SpecialToken")) {
      const JsonField special = piece["SpecialToken"];
      result.push_back({TemplatePiece::Kind::special, special["type_id"].as_id(),
                        read_special_ids(special_tokens, special["id"].as_string())});
      continue;
    }
    const JsonField sequence = piece["Sequence"];
    const std::string& id = sequence["id"].as_string();
    if (id != "A" && !(id == "B" && pair)) {
      throw DataError("{}: there is no sequence \"{}\" here; expected {}", sequence.place(), id,
                      pair ? "\"A\" or \"B\"" : "\"A\"");
    }
    const auto kind = id == "A" ? TemplatePiece::Kind::first : TemplatePiece::Kind::second;
    result.push_back({kind, sequence["type_id"].as_id()});
  }
  require_once(result, TemplatePiece::Kind::first, pieces);
  if (pair) require_once(result, TemplatePiece::Kind::second, pieces);
  return result;
}

Template read_post_processor(const JsonField& file) {
  if (!file.has("post_processor")) return {};
  const JsonField section = file["post_processor"];
  const std::string& type = section["type"].as_string();
  if (type == "BertProcessing") return bert_template(section["cls"][1].as_id(), section["sep"][1].as_id());
  if (type != "TemplateProcessing") {
    throw DataError("{}.type: \"{}\" is not available; available are BertProcessing and TemplateProcessing",
                    section.place(), type);
  }
  const JsonField special_tokens = section["special_tokens"];
  return {.single = read_template(section["single"], special_tokens, false),
          .pair = read_template(section["pair"], special_tokens, true)};
}

}  // namespace

TokenizerParts parse_tokenizer_json(const nlohmann::json& file, const std::string& name,
                                    const nlohmann::json& config, const std::string& config_name,
                                    const TokenizerOptions& options) {
  const JsonField top(file, name + ":");
  if (!top.has("model")) throw DataError("{}: not a tokenizer.json: it lacks \"model\"", name);
  TokenizerParts parts;
  parts.name = name;
  read_model(top["model"], parts);
  parts.normalizer = read_normalizer(top, JsonField(config, config_name + ":"), options);
  if (!top.has("pre_tokenizer")) {
    throw DataError("{}: pre_tokenizer: none is not available; available is BertPreTokenizer", name);
  }
  require_type(top["pre_tokenizer"], "BertPreTokenizer");
  read_added_tokens(top, parts);
  parts.post_processor = read_post_processor(top);
  return parts;
}

}  // namespace stretto::text
