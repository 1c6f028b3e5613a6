#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stretto::text {

// Whether a folder holds a tokenizer that Tokenizer::load can try to read.
bool has_tokenizer(const std::filesystem::path& folder);

// The names of all files that tokenizers are made of, tokenizer_config.json and special_tokens_map.json included.
std::vector<std::string> tokenizer_file_names();

}  // namespace stretto::text
