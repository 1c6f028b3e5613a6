#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "stretto/config/recipe.h"
#include "stretto/declare/fields.h"

namespace stretto {

// A tagger of words (models/sequence_tagger) whose vocabulary is made from the training file: the content of a model.config that has the
// model_type sequence-tagger and no vocab_size. Names and defaults are those of Flair's SequenceTagger where it has them.
struct NewTaggerConfig {
  std::string model_type = "sequence-tagger";
  std::optional<std::filesystem::path> word_vectors = std::nullopt;
  int64_t word_dimensions = 100;
  std::optional<bool> train_words = std::nullopt;
  int64_t min_word_count = 1;
  std::optional<bool> lowercase = std::nullopt;
  int64_t character_dimensions = 25;
  int64_t character_hidden_size = 25;
  bool reproject_embeddings = true;
  std::string rnn_type = "LSTM";
  int64_t hidden_size = 256;
  int64_t rnn_layers = 1;
  bool bidirectional = true;
  bool use_crf = true;
  double dropout = 0;
  double word_dropout = 0.05;
  double locked_dropout = 0.5;

  void fields(declare::Fields& field);
  bool operator==(const NewTaggerConfig&) const = default;
};

// Whether model.config is such a file. Throws nothing: another file is read where it is used.
bool is_new_tagger(const ModelConfig& model);

// Its settings. Relative paths in it start at the working directory. Throws ConfigError with file, line and column for unknown
// keys, wrong types, values out of range and settings that exclude each other. REQUIRES: is_new_tagger.
NewTaggerConfig read_new_tagger(const ModelConfig& model);

}  // namespace stretto
