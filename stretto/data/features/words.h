#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "stretto/tensor/batch.h"
#include "stretto/text/characters.h"
#include "stretto/text/tokenizer.h"

// The inputs of taggers for the words of a text, in training and in serving: text -> windows -> features ->
// batch.
namespace stretto::data {

// The inputs of a model besides tokens.
struct WordInputs {
  text::Characters characters = {};        // the model's characters; empty: the model reads none
  bool whole_words = false;                // the model reads the tokens of each word as one
  const text::Tokenizer* words = nullptr;  // gives the ids of words to read; null: none
};

// The features of one window of a text, which is a sample. Vectors are by token, except `characters`.
struct WordFeatures {
  std::vector<int32_t> words;  // the word of the token if it is predicted in this window, else negative
  // The characters of all tokens, one token after the other, and their number per token. With whole_words,
  // the first token of a word has all characters of the word.
  std::vector<int32_t> characters, character_counts;
  std::vector<int32_t> word_ids;  // the id of the word that begins at the token; 0: none
};

// Computes the features of the windows of one text (Tokenizer::encode_windows); consecutive windows share
// `stride` tokens. `words`: the words of the text, indexed by word_ids; offsets are within words. Each word
// is predicted in the window in which its first token is farthest from both ends; ties go to the first
// window.
std::vector<WordFeatures> word_features(std::span<const text::Encoding> windows,
                                        std::span<const std::string> words, size_t stride,
                                        const WordInputs& inputs);

// Whether token t is the first one of a word that is predicted in this window. words: WordFeatures::words.
bool begins_word(std::span<const int32_t> words, size_t t);

// Features of one sample. Vectors that a model does not read are empty.
struct WordSample {
  std::span<const int32_t> ids, words, characters = {}, character_counts = {}, word_ids = {};
  int64_t sample = 0;  // its dataset index
};

// The features that the samples of a batch have.
struct WordColumns {
  bool characters = false, whole_words = false;
};

// Packs a batch (see Batch), padded to a multiple of `multiple_of` tokens, with words [T]: at the first token
// of a word its number within the sample, else -1. With columns.characters it also has characters [C] and
// character_cu_seqlens [T + 1]: the characters of token t are character_cu_seqlens[t] to
// character_cu_seqlens[t + 1]. With columns.whole_words it also has token_words [T], the number of each
// token's word within the batch, or -1; and word_ids [T], the id of the word that begins at a token, or 0.
// All are int64; padding belongs to no word.
Batch pack_words(std::span<const WordSample> samples, const WordColumns& columns, int64_t multiple_of = 1);

}  // namespace stretto::data
