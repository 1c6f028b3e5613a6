#include <algorithm>
#include <cctype>

#include <protozero/pbf_reader.hpp>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/text/bpe.h"
#include "stretto/text/configured_tokens.h"
#include "stretto/text/metaspace.h"
#include "stretto/text/precompiled_normalizer.h"
#include "stretto/text/tokenizer_files.h"
#include "stretto/text/unigram.h"
#include "stretto/text/utf8.h"

// Reads SentencePiece's model files, protocol buffers of sentencepiece_model.proto.
namespace stretto::text {
namespace {

enum class PieceType { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

struct SentencePiece {
  std::string text;
  float score = 0;
  PieceType type = PieceType::normal;
};

constexpr int32_t unigram_type = 1, bpe_type = 2;

struct SentencePieceModel {
  std::vector<SentencePiece> pieces;
  int32_t model_type = unigram_type;
  int32_t unk_id = 0;
  bool byte_fallback = false;
  std::string charsmap;
};

SentencePiece read_piece(protozero::pbf_reader message) {
  SentencePiece piece;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case protozero::tag_and_type(1, protozero::pbf_wire_type::length_delimited):
        piece.text = message.get_string();
        break;
      case protozero::tag_and_type(2, protozero::pbf_wire_type::fixed32):
        piece.score = message.get_float();
        break;
      case protozero::tag_and_type(3, protozero::pbf_wire_type::varint):
        piece.type = static_cast<PieceType>(message.get_enum());
        break;
      default:
        message.skip();
    }
  }
  return piece;
}

void read_trainer(protozero::pbf_reader message, SentencePieceModel& model) {
  while (message.next()) {
    switch (message.tag_and_type()) {
      case protozero::tag_and_type(3, protozero::pbf_wire_type::varint):
        model.model_type = message.get_enum();
        break;
      case protozero::tag_and_type(35, protozero::pbf_wire_type::varint):
        model.byte_fallback = message.get_bool();
        break;
      case protozero::tag_and_type(40, protozero::pbf_wire_type::varint):
        model.unk_id = message.get_int32();
        break;
      default:
        message.skip();
    }
  }
}

void read_normalizer_spec(protozero::pbf_reader message, SentencePieceModel& model) {
  while (message.next()) {
    if (message.tag_and_type() == protozero::tag_and_type(2, protozero::pbf_wire_type::length_delimited)) {
      model.charsmap = message.get_bytes();
    } else {
      message.skip();
    }
  }
}

// Llama 3's tokenizer.model: lines of a token in base 64 and its rank, as tiktoken reads them.
void refuse_tiktoken(std::string_view bytes, const std::string& name) {
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || space == 0 || !parse_int(line.substr(space + 1))) return;
  const bool is_base64 = std::ranges::all_of(line.substr(0, space), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '+' || c == '/' || c == '=';
  });
  if (!is_base64) return;
  throw DataError(
      "{}: not a SentencePiece model, but tokens and ranks as tiktoken reads them, without the model's special tokens; use the folder with the tokenizer.json of this model, which Hugging Face's hub has",
      name);
}

SentencePieceModel read_sentencepiece(std::string_view bytes, const std::string& name) {
  refuse_tiktoken(bytes, name);
  SentencePieceModel model;
  try {
    protozero::pbf_reader message(bytes.data(), bytes.size());
    while (message.next()) {
      switch (message.tag_and_type()) {
        case protozero::tag_and_type(1, protozero::pbf_wire_type::length_delimited):
          model.pieces.push_back(read_piece(message.get_message()));
          break;
        case protozero::tag_and_type(2, protozero::pbf_wire_type::length_delimited):
          read_trainer(message.get_message(), model);
          break;
        case protozero::tag_and_type(3, protozero::pbf_wire_type::length_delimited):
          read_normalizer_spec(message.get_message(), model);
          break;
        default:
          message.skip();
      }
    }
  } catch (const protozero::exception& error) {
    throw DataError("{}: not a SentencePiece model: {}; expected a protocol buffer", name, error.what());
  }
  if (model.pieces.empty()) throw DataError("{}: not a SentencePiece model: it holds no pieces", name);
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const std::string& text = model.pieces[i].text;
    if (find_invalid_utf8(text) < text.size()) throw DataError("{}: piece {} is not valid UTF-8", name, i);
  }
  if (model.model_type != unigram_type && model.model_type != bpe_type) {
    const char* types[] = {"word", "character"};
    const bool known = model.model_type == 3 || model.model_type == 4;
    throw DataError("{}: a SentencePiece model of type {} is not available; available are unigram and BPE",
                    name, known ? types[model.model_type - 3] : std::to_string(model.model_type));
  }
  return model;
}

// Applies the vocabulary of fairseq, with which XLM-RoBERTa was trained: four special tokens replace the
// file's first three.
void use_fairseq_vocabulary(SentencePieceModel& model, const JsonField& config, const std::string& name) {
  if (config.has("tokenizer_class")) {
    const std::string& wanted = config["tokenizer_class"].as_string();
    if (wanted != "XLMRobertaTokenizer" && wanted != "XLMRobertaTokenizerFast") {
      throw DataError(
          "{} tokenizer_class: \"{}\" is not available from sentencepiece.bpe.model; available is XLMRobertaTokenizer; save it with transformers as tokenizer.json",
          config.place(), wanted);
    }
  }
  if (model.pieces.size() < 3)
    throw DataError("{}: holds {} pieces; expected at least 3", name, model.pieces.size());
  std::vector<SentencePiece> pieces;
  for (const auto& [key, content] : {std::pair("bos_token", "<s>"), std::pair("pad_token", "<pad>"),
                                     std::pair("eos_token", "</s>"), std::pair("unk_token", "<unk>")}) {
    pieces.push_back({configured_token(config, key, content)});
  }
  pieces.insert(pieces.end(), model.pieces.begin() + 3, model.pieces.end());
  pieces.push_back({configured_token(config, "mask_token", "<mask>")});
  model.pieces = std::move(pieces);
  model.unk_id = 3;
}

void add_xlm_roberta_tokens(TokenizerParts& parts, const JsonField& config) {
  for (const auto& [key, content] :
       {std::pair("bos_token", "<s>"), std::pair("pad_token", "<pad>"), std::pair("eos_token", "</s>"),
        std::pair("unk_token", "<unk>"), std::pair("mask_token", "<mask>")}) {
    parts.added_tokens.push_back(configured_added_token(config, key, content));
  }
  const Vocabulary& vocabulary = parts.model->vocabulary();
  const auto id_of = [&](const char* key, const char* content) {
    return vocabulary.required_id(configured_token(config, key, content), key, parts.name);
  };
  parts.eos_token = configured_token(config, "eos_token", "</s>");
  parts.post_processor.pieces = roberta_template(id_of("bos_token", "<s>"), id_of("eos_token", "</s>"));
}

// Derives the merge rules from the pieces as transformers does: every two pieces that form a piece, ordered
// by that piece and then by the length of the first.
Merges merges_of(const Vocabulary& vocabulary) {
  Merges merges;
  for (const auto& [token, id] : vocabulary.entries()) {
    const std::string_view text = token;
    for (size_t middle = 1; middle < text.size(); ++middle) {
      const std::string_view left = text.substr(0, middle), right = text.substr(middle);
      if (is_lead_byte(right.front()) && vocabulary.id(left) && vocabulary.id(right))
        merges.emplace_back(left, right);
    }
  }
  return merges;
}

Vocabulary vocabulary_of(SentencePieceModel& model, const std::string& name) {
  std::vector<VocabularyEntry> entries;
  for (SentencePiece& piece : model.pieces)
    entries.push_back({std::move(piece.text), static_cast<int32_t>(entries.size())});
  return Vocabulary(std::move(entries), name);
}

// Makes the pieces the vocabulary of a unigram model.
void use_unigram(SentencePieceModel& model, const JsonField& config, TokenizerParts& parts) {
  std::vector<double> scores;
  for (const SentencePiece& piece : model.pieces) scores.push_back(piece.score);
  parts.model = std::make_unique<Unigram>(
      vocabulary_of(model, parts.name), std::move(scores),
      UnigramOptions{.unk_id = model.unk_id, .byte_fallback = model.byte_fallback}, parts.name);
  if (!model.charsmap.empty())
    parts.normalizer = std::make_unique<PrecompiledNormalizer>(std::move(model.charsmap), parts.name);
  MetaspaceOptions spaces{.split_white_space = true};
  const bool prefix = config.bool_or("add_prefix_space", true);
  if (!prefix) spaces.prepend = MetaspaceOptions::Prepend::never;
  parts.decoder = {.kind = Decoder::Kind::metaspace, .mark = spaces.replacement, .drop_first_mark = prefix};
  parts.pre_tokenizer = std::make_unique<MetaspacePreTokenizer>(spaces);
}

// Builds Llama's tokenizer as in transformers, which inserts a space at the beginning of the text.
void use_bpe(SentencePieceModel& model, const JsonField& config, TokenizerParts& parts) {
  if (!model.charsmap.empty()) {
    throw DataError(
        "{}: a SentencePiece model of type BPE with a normalizer is not available; save it with transformers as tokenizer.json",
        parts.name);
  }
  if (model.unk_id < 0 || model.unk_id >= std::ssize(model.pieces))
    throw DataError("{}: unk_id is {}; expected one of {} pieces", parts.name, model.unk_id,
                    model.pieces.size());
  const std::string unknown = model.pieces[static_cast<size_t>(model.unk_id)].text;
  Vocabulary vocabulary = vocabulary_of(model, parts.name);
  const Merges merges = merges_of(vocabulary);
  parts.model = std::make_unique<Bpe>(
      std::move(vocabulary), merges,
      BpeOptions{.byte_level = false, .byte_fallback = true, .unk_token = unknown, .fuse_unk = true},
      parts.name);
  MetaspaceOptions spaces{.split = false};
  const bool prefix = config.bool_or("add_prefix_space", true);
  using Prepend = MetaspaceOptions::Prepend;
  spaces.prepend = !prefix                           ? Prepend::never
                   : config.bool_or("legacy", false) ? Prepend::always
                                                     : Prepend::first;
  parts.pre_tokenizer = std::make_unique<MetaspacePreTokenizer>(spaces);
  using Kind = DecoderStep::Kind;
  parts.decoder = {.kind = Decoder::Kind::steps,
                   .steps = {{.kind = Kind::replace, .from = spaces.replacement, .to = " "},
                             {.kind = Kind::byte_fallback},
                             {.kind = Kind::fuse}}};
  if (prefix) parts.decoder.steps.push_back({.kind = Kind::strip, .from = " ", .start = 1});
}

void add_llama_tokens(TokenizerParts& parts, const JsonField& config) {
  for (const auto& [key, content] :
       {std::pair("unk_token", "<unk>"), std::pair("bos_token", "<s>"), std::pair("eos_token", "</s>")})
    parts.added_tokens.push_back(configured_added_token(config, key, content));
  if (config.has("pad_token")) parts.added_tokens.push_back(configured_added_token(config, "pad_token", ""));
  using Kind = TemplatePiece::Kind;
  const auto token = [&](const char* key, const char* content, int32_t type) -> TemplatePiece {
    return {Kind::special,
            type,
            {parts.model->vocabulary().required_id(configured_token(config, key, content), key, parts.name)}};
  };
  Template pieces{.single = {}, .pair = {}};
  for (const int32_t type : {0, 1}) {
    if (config.bool_or("add_bos_token", true)) pieces.pair.push_back(token("bos_token", "<s>", type));
    pieces.pair.push_back({type == 0 ? Kind::first : Kind::second, type});
    if (config.bool_or("add_eos_token", false)) pieces.pair.push_back(token("eos_token", "</s>", type));
    if (type == 0) pieces.single = pieces.pair;
  }
  parts.post_processor.pieces = std::move(pieces);
}

}  // namespace

TokenizerParts parse_sentencepiece(std::string_view bytes, const std::string& name,
                                   SentencePieceFamily family, const nlohmann::json& config,
                                   const std::string& config_name) {
  const JsonField settings(config, config_name + ":");
  SentencePieceModel model = read_sentencepiece(bytes, name);
  const bool is_bpe = model.model_type == bpe_type;
  if (family != SentencePieceFamily::none && is_bpe != (family == SentencePieceFamily::llama)) {
    throw DataError(
        "{}: a SentencePiece model of type {} under this name is not available; expected {}", name,
        is_bpe ? "BPE" : "unigram",
        is_bpe ? "unigram, XLM-RoBERTa's" : "BPE, Llama's; save it with transformers as tokenizer.json");
  }
  TokenizerParts parts;
  parts.name = name;
  for (const SentencePiece& piece : model.pieces) {
    const bool control = piece.type == PieceType::control;
    if (control || piece.type == PieceType::user_defined)
      parts.added_tokens.push_back({.content = piece.text, .normalized = false, .special = control});
  }
  if (family == SentencePieceFamily::xlm_roberta) use_fairseq_vocabulary(model, settings, name);
  is_bpe ? use_bpe(model, settings, parts) : use_unigram(model, settings, parts);
  if (family == SentencePieceFamily::xlm_roberta) {
    add_xlm_roberta_tokens(parts, settings);
    parts.hugging_face_class = "XLMRobertaTokenizer";
  }
  if (family == SentencePieceFamily::llama) {
    add_llama_tokens(parts, settings);
    parts.hugging_face_class = "LlamaTokenizer";
  }
  return parts;
}

}  // namespace stretto::text
