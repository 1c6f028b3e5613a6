#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

#include "stretto/text/tokenizer.h"

namespace stretto::text {

// What a tokenizer.json of Hugging Face's fast tokenizers describes. Its truncation, padding and decoder
// sections do not affect ids and are not read. `config`, a tokenizer_config.json ({} for none), overrides it on
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

}  // namespace stretto::text
