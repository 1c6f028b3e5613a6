#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "stretto/settings/fields.h"

namespace stretto {

// The settings of a new sequence tagger (models/sequence_tagger), whose vocabulary is made from the training
// file. Names and defaults are those of Flair's SequenceTagger and TransformerWordEmbeddings where these have
// the setting.
struct TaggerSettings {
  std::optional<std::filesystem::path> transformer = std::nullopt;  // a model folder
  std::string layers = "-1";
  bool layer_mean = true;
  std::string subtoken_pooling = "first";
  bool fine_tune = true;
  bool context_separator = false;
  std::optional<std::filesystem::path> word_vectors = std::nullopt;
  std::optional<int64_t> word_dimensions = std::nullopt;
  std::optional<bool> train_words = std::nullopt;
  int64_t min_word_count = 1;
  std::optional<bool> lowercase = std::nullopt;
  std::optional<int64_t> character_dimensions = std::nullopt;
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

  // The dimensions of random word vectors and of character vectors; 0 if there are none.
  int64_t words() const { return word_dimensions.value_or(transformer ? 0 : 100); }
  int64_t characters() const { return character_dimensions.value_or(transformer ? 0 : 25); }

  void fields(settings::Fields& field);
  bool operator==(const TaggerSettings&) const = default;
};

}  // namespace stretto
