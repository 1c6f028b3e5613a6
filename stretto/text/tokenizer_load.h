#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stretto::text {

// Whether a folder has the files of a tokenizer that Tokenizer::load supports.
bool has_tokenizer(const std::filesystem::path& folder);

// The names of all files of tokenizers, including tokenizer_config.json and special_tokens_map.json.
std::vector<std::string> tokenizer_file_names();

}  // namespace stretto::text
