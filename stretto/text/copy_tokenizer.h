#pragma once

#include <filesystem>
#include <optional>

namespace stretto::text {

// The folder, in that of a model that reads tokens and whole words, of the tokenizer of its words.
inline constexpr const char* words_folder = "words";

// Copies a tokenizer's files (those of the folder `source`, or that one file) into `folder`, as Hugging Face's
// from_pretrained expects them. Where there is no tokenizer_config.json one is written, with the class and
// `lowercase`. `add_prefix_space` is written there too if the tokenizer's ids depend on it. Throws IoError, and DataError if the
// class is needed and the files are no tokenizer. A folder's words_folder is copied too.
void copy_tokenizer(const std::filesystem::path& source, bool lowercase, const std::filesystem::path& folder,
                    std::optional<bool> add_prefix_space = {});

}  // namespace stretto::text
