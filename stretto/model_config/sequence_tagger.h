#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace stretto {

class ModelOutline;

// The configuration of a sequence tagger (Huang et al. 2015; Lample et al. 2016), with the names and defaults
// of Flair's SequenceTagger where it has them.
struct SequenceTaggerConfig {
  static constexpr const char* model_type = "sequence-tagger";
  static constexpr const char* separator = "[FLERT]";  // Flair's, of context_separator

  // The config.json of an encoder whose states are part of a word's vector; null: no encoder.
  nlohmann::json transformer;
  // the folder of its weights before training; "": they are in the tagger's folder
  std::string transformer_path;
  std::string layers = "-1";               // see layer_numbers.h
  bool layer_mean = true;                  // averages several layers; false: concatenates them
  std::string subtoken_pooling = "first";  // last, first_last, mean: the vector of a word with several tokens
  bool fine_tune = true;
  bool context_separator = false;  // the transformer reads `separator` in front of a sentence and behind it

  int64_t vocab_size = 0;         // of the word embedding table
  int64_t word_dimensions = 100;  // 0: words are represented by their characters only
  bool train_words = true;
  std::string characters;             // the known characters; "": words are represented by their vectors only
  int64_t character_dimensions = 25;  // of a character's vector
  int64_t character_hidden_size = 25;  // of each direction of the LSTM over a word's characters
  bool reproject_embeddings = true;    // a linear map of the words' vectors
  std::string rnn_type = "LSTM";       // GRU, or none: a linear map of each word's vector
  int64_t hidden_size = 256;           // of each direction
  int64_t rnn_layers = 1;
  bool bidirectional = true;
  bool use_crf = true;
  double dropout = 0;               // the probability of dropping an element, also between layers
  double word_dropout = 0.05;       // the probability of dropping a word
  double locked_dropout = 0.5;      // the probability of dropping an element in all words of a sentence
  std::vector<std::string> labels;  // id2label: the tags

  int64_t character_count() const;  // the number of character ids, including 0 for unknown characters
  int64_t embedding_size() const;   // the width of a word's vector without the transformer's states

  // Throws ConfigError with `source` and the key for values out of range.
  static SequenceTaggerConfig from_json(const nlohmann::json& json, const std::string& source);
  nlohmann::json to_json(const nlohmann::json& original) const;

  // The parameters of a model with `head`, see outline.h; nullopt if the family has no such head.
  std::optional<ModelOutline> outline(std::string_view head) const;
};

}  // namespace stretto
