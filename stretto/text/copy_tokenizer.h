#pragma once

#include <filesystem>
#include <optional>

namespace stretto::text {

// The subfolder of a model's folder with the tokenizer of its words, for models that read tokens and whole
// words.
inline constexpr const char* words_folder = "words";

// Copies a tokenizer's files (those of the folder `source`, or that one file) and its words_folder into
// `folder`, in the form that Hugging Face's from_pretrained expects. Writes a tokenizer_config.json with the
// class and `lowercase` if there is none, and sets `add_prefix_space` in it if the tokenizer's ids depend on
// that. Throws IoError, and DataError if the class is needed and the files are not a tokenizer.
void copy_tokenizer(const std::filesystem::path& source, bool lowercase, const std::filesystem::path& folder,
                    std::optional<bool> add_prefix_space = {});

}  // namespace stretto::text
