#include <protozero/pbf_reader.hpp>

#include "stretto/base/error.h"
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

struct SentencePieceModel {
  std::vector<SentencePiece> pieces;
  int32_t model_type = 1;
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

SentencePieceModel read_sentencepiece(std::string_view bytes, const std::string& name) {
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
  if (model.model_type != 1) {
    const char* types[] = {"BPE", "word", "character"};
    const bool known = model.model_type >= 2 && model.model_type <= 4;
    throw DataError("{}: a SentencePiece model of type {} is not available; available is unigram", name,
                    known ? types[model.model_type - 2] : std::to_string(model.model_type));
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

}  // namespace

TokenizerParts parse_sentencepiece(std::string_view bytes, const std::string& name, bool fairseq,
                                   const nlohmann::json& config, const std::string& config_name) {
  const JsonField settings(config, config_name + ":");
  SentencePieceModel model = read_sentencepiece(bytes, name);
  TokenizerParts parts;
  parts.name = name;
  for (const SentencePiece& piece : model.pieces) {
    const bool control = piece.type == PieceType::control;
    if (control || piece.type == PieceType::user_defined)
      parts.added_tokens.push_back({.content = piece.text, .normalized = false, .special = control});
  }
  if (fairseq) use_fairseq_vocabulary(model, settings, name);
  std::vector<VocabularyEntry> entries;
  std::vector<double> scores;
  for (SentencePiece& piece : model.pieces) {
    entries.push_back({std::move(piece.text), static_cast<int32_t>(entries.size())});
    scores.push_back(piece.score);
  }
  parts.model = std::make_unique<Unigram>(
      Vocabulary(std::move(entries), name), std::move(scores),
      UnigramOptions{.unk_id = model.unk_id, .byte_fallback = model.byte_fallback}, name);
  if (!model.charsmap.empty())
    parts.normalizer = std::make_unique<PrecompiledNormalizer>(std::move(model.charsmap), name);
  MetaspaceOptions spaces{.split_white_space = true};
  const bool prefix = settings.bool_or("add_prefix_space", true);
  if (!prefix) spaces.prepend = MetaspaceOptions::Prepend::never;
  parts.decoder = {.kind = Decoder::Kind::metaspace, .mark = spaces.replacement, .drop_first_mark = prefix};
  parts.pre_tokenizer = std::make_unique<MetaspacePreTokenizer>(spaces);
  if (fairseq) {
    add_xlm_roberta_tokens(parts, settings);
    parts.hugging_face_class = "XLMRobertaTokenizer";
  }
  return parts;
}

}  // namespace stretto::text
