#pragma once

#include <string>

#include "stretto/text/added_tokens.h"
#include "stretto/text/encoding.h"
#include "stretto/text/json_fields.h"

namespace stretto::text {

// The special token that a tokenizer_config.json has under `key` ("mask_token"), a string or an object with
// "content"; else `otherwise`.
std::string configured_token(const JsonField& config, const char* key, const char* otherwise);

// The special token with its flags (lstrip, ...), which the configuration has under `key` or in
// added_tokens_decoder.
AddedToken configured_added_token(const JsonField& config, const char* key, const char* otherwise);

// The side of truncation or padding: truncation_side of a tokenizer_config.json, direction in a
// tokenizer.json. Throws DataError unless it is "left" or "right", capitalised in tokenizer.json.
Side configured_side(const JsonField& config, const char* key);

}  // namespace stretto::text
