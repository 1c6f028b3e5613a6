#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace stretto::corpus {

struct WordVectors {
  std::string name;    // the file, for messages
  std::string format;  // "GloVe", "word2vec text" or "word2vec binary"
  int64_t dimensions = 0;
  std::vector<std::string> words;  // distinct, valid UTF-8
  std::vector<float> values;       // [words, dimensions]
  int64_t repeated = 0;            // rows skipped because their word occurred before
};

// Reads a file of word vectors. Each line is a word and its numbers, separated by spaces (GloVe); a first
// line with the numbers of words and dimensions may precede them, after which the numbers may also be
// little-endian fp32 (word2vec's text and binary formats, which gensim's save_word2vec_format writes). A word
// may contain spaces. Throws IoError, DataError with the line or the word's number; compressed files and
// those of gensim's save() are refused with advice.
WordVectors read_word_vectors(const std::filesystem::path& path);

}  // namespace stretto::corpus
