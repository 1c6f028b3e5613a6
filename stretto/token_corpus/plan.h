#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "stretto/token_corpus/tokenize.h"

namespace stretto::token_corpus {

// The manifest of a corpus before anything is written. Throws IoError for files that cannot be read,
// ConfigError if the tokenizer has no end-of-document token.
Manifest plan_corpus(const std::vector<std::filesystem::path>& files, const text::Tokenizer& tokenizer,
                     const TokenizeOptions& options);

// Describes how a partly written corpus differs from a planned one: "of another tokenizer (...)"; "" if it
// does not differ.
std::string difference(const Manifest& written, const Manifest& planned);

}  // namespace stretto::token_corpus
