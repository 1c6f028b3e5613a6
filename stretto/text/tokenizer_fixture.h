#pragma once

#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/text/tokenizer_parts.h"

// Small tokenizers, loaded from folders with their files.
namespace stretto::text {

inline constexpr const char* uncased_vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nmap\n##s\ncafe\n";

inline nlohmann::json small_json() {
  return nlohmann::json::parse(R"({
    "truncation": {"max_length": 3}, "padding": {"strategy": "BatchLongest"},
    "added_tokens": [{"id": 1, "content": "[SEP]", "special": true, "normalized": false}],
    "normalizer": {"type": "BertNormalizer", "lowercase": true, "strip_accents": null},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 1], "cls": ["[CLS]", 2]},
    "model": {"type": "WordPiece", "unk_token": "[UNK]",
              "vocab": {"[UNK]": 0, "[SEP]": 1, "[CLS]": 2, "the": 3, "map": 4, "##s": 5}}
  })");
}

// The files of a small RoBERTa: "ab" and " ab" are words, "é" is two bytes.
inline nlohmann::json small_bpe() {
  return nlohmann::json::parse(R"({
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
    "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 1], "cls": ["<s>", 0], "trim_offsets": true,
                       "add_prefix_space": false},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "merges": ["a b", "Ġ ab", "Ã ©"],
              "vocab": {"<s>": 0, "</s>": 1, "a": 2, "b": 3, "Ġ": 4, "Ã": 5, "©": 6, "ab": 7, "Ġab": 8, "Ã©": 9}}
  })");
}

// The tokenizer loaded from a folder with these files; empty content: without the file.
inline Tokenizer load_vocabulary(const std::string& vocabulary, const std::string& config = "",
                                 const TokenizerOptions& options = {}) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "vocab.txt", vocabulary);
  if (!config.empty()) write_file_atomic(folder.path() / "tokenizer_config.json", config);
  return Tokenizer::load(folder.path(), options);
}

inline Tokenizer load_json(const nlohmann::json& file, const TokenizerOptions& options = {}) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "tokenizer.json", file.dump());
  return Tokenizer::load(folder.path(), options);
}

inline std::string vocabulary_error(const std::string& vocabulary, const std::string& config = "") {
  return message_of<DataError>([&] { load_vocabulary(vocabulary, config); });
}

inline std::string json_error(const nlohmann::json& file) {
  return message_of<DataError>([&] { load_json(file); });
}

}  // namespace stretto::text
