#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

#include "stretto/text/tokenizer_parts.h"

namespace stretto::text {

// Parses a tokenizer.json of Hugging Face's fast tokenizers. Only the side of its truncation and padding
// sections is used, since EncodeOptions decide the rest. `config`, a tokenizer_config.json ({} for none),
// overrides case, accents and Chinese characters, as in transformers; differences are logged. Throws
// DataError, with the name and the path of the value, for malformed values and unavailable types.
TokenizerParts parse_tokenizer_json(const nlohmann::json& file, const std::string& name,
                                    const nlohmann::json& config, const std::string& config_name,
                                    const TokenizerOptions& options);

// Parses a vocabulary with one token per line, numbered from 0, and the settings of a tokenizer_config.json
// ({} for none). Logs the choice of case if `options` and the settings do not determine it. Throws DataError
// like parse_tokenizer_json.
TokenizerParts parse_vocabulary(std::string_view lines, const std::string& name, const nlohmann::json& config,
                                const std::string& config_name, const TokenizerOptions& options);

// Parses vocab.json (ids by token) and merges.txt (a rule per line) of byte-level BPE, with the settings of a
// tokenizer_config.json ({} for none). Without tokenizer_class, the special tokens in the vocabulary decide
// between GPT-2 and RoBERTa (BART); the choice is logged. Throws DataError like parse_tokenizer_json.
TokenizerParts parse_byte_level(const nlohmann::json& vocabulary, const std::string& name,
                                std::string_view merges, const std::string& merges_name,
                                const nlohmann::json& config, const std::string& config_name,
                                const TokenizerOptions& options);

// Parses a SentencePiece model file of type unigram or BPE. Ids are the positions of its pieces. The file has
// no template; `family` selects the special tokens and templates that transformers gives a
// sentencepiece.bpe.model of XLM-RoBERTa (with its vocabulary) or a tokenizer.model of Llama 2. Throws
// DataError as above.
enum class SentencePieceFamily { none, xlm_roberta, llama };
TokenizerParts parse_sentencepiece(std::string_view bytes, const std::string& name,
                                   SentencePieceFamily family, const nlohmann::json& config,
                                   const std::string& config_name);

}  // namespace stretto::text
