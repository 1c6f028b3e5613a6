#pragma once

#include <string>

#include "stretto/text/added_tokens.h"
#include "stretto/text/encoding.h"
#include "stretto/text/json_fields.h"

namespace stretto::text {

// The special token that a tokenizer_config.json has under `key` ("mask_token"), a string or an object with "content"; else
// `otherwise`.
std::string configured_token(const JsonField& config, const char* key, const char* otherwise);

// The same, as it is searched in a text, with the flags (lstrip, ...) that the configuration gives it there or among its
// added_tokens_decoder.
AddedToken configured_added_token(const JsonField& config, const char* key, const char* otherwise);

// Where encodings are cut or filled: truncation_side of a tokenizer_config.json, direction in a tokenizer.json. Throws DataError
// unless "left" or "right", which tokenizer.json writes with a capital.
Side configured_side(const JsonField& config, const char* key);

}  // namespace stretto::text
