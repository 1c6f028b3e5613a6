#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace stretto::text {

// Adds a special token to the tokenizer whose files are in `folder`, with the lowest id that is free behind
// the others, unless it has the token already. Returns its id. Throws DataError for files that cannot take
// one: a SentencePiece model without a tokenizer.json; and IoError.
int32_t add_special_token(const std::filesystem::path& folder, const std::string& token);

}  // namespace stretto::text
