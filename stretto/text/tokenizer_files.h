#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

#include "stretto/text/tokenizer_parts.h"

namespace stretto::text {

// What a tokenizer.json of Hugging Face's fast tokenizers describes. Of its truncation and padding
// sections only the side counts, as EncodeOptions decide the rest. `config`, a tokenizer_config.json ({} for none), overrides it on
// case, accents and Chinese characters, as in transformers; a difference is logged. Throws DataError, with the name and the path of the value, when something is malformed or names
// a kind that is not available.
TokenizerParts parse_tokenizer_json(const nlohmann::json& file, const std::string& name,
                                    const nlohmann::json& config, const std::string& config_name,
                                    const TokenizerOptions& options);

// A vocabulary of one token per line, ids by line from 0, with the settings of a tokenizer_config.json ({}
// for none). Logs the choice of case where `options` and the settings leave it open. Throws DataError as
// above.
TokenizerParts parse_vocabulary(std::string_view lines, const std::string& name, const nlohmann::json& config,
                                const std::string& config_name, const TokenizerOptions& options);

// vocab.json (ids by token) and merges.txt (a rule per line) of byte-level BPE, with the settings of a tokenizer_config.json ({}
// for none). Without tokenizer_class there, the special tokens in the vocabulary decide between GPT-2 and RoBERTa (BART); the
// choice is logged. Throws DataError as above.
TokenizerParts parse_byte_level(const nlohmann::json& vocabulary, const std::string& name,
                                std::string_view merges, const std::string& merges_name,
                                const nlohmann::json& config, const std::string& config_name,
                                const TokenizerOptions& options);

// A SentencePiece model file of type unigram: ids are the positions of its pieces, no template. With `fairseq`, XLM-RoBERTa's
// vocabulary, special tokens and template, as transformers derives them from a sentencepiece.bpe.model. Throws DataError as above.
TokenizerParts parse_sentencepiece(std::string_view bytes, const std::string& name, bool fairseq,
                                   const nlohmann::json& config, const std::string& config_name);

}  // namespace stretto::text
