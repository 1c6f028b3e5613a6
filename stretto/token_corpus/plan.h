#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "stretto/token_corpus/tokenize.h"

namespace stretto::token_corpus {

// The manifest of a corpus of which nothing is written yet. Throws IoError for files that cannot be read,
// ConfigError where the tokenizer names no end of documents.
Manifest plan_corpus(const std::vector<std::filesystem::path>& files, const text::Tokenizer& tokenizer,
                     const TokenizeOptions& options);

// How a corpus, as far as it is written, differs from one that is planned: "of another tokenizer (...)"; "":
// it does not.
std::string difference(const Manifest& written, const Manifest& planned);

}  // namespace stretto::token_corpus
