#include "stretto/config/new_tagger.h"

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/declare/read.h"
#include "stretto/declare/rule.h"
#include "stretto/declare/yaml.h"

namespace stretto {
namespace {

constexpr double largest_tagger = 1e6;  // of any size

}  // namespace

void NewTaggerConfig::fields(declare::Fields& field) {
  field("model_type", model_type, "the family", declare::one_of({"sequence-tagger"}));
  field(
      "word_vectors", word_vectors,
      "file of word vectors: GloVe's or word2vec's text, or word2vec's binary form; its words are the vocabulary; unset: random vectors of the words of data.train");
  field("word_dimensions", word_dimensions, "elements of a random word vector; 0: none",
        declare::at_least(0).at_most(largest_tagger));
  field("train_words", train_words,
        "train the word vectors too; unset: random ones, but not those of word_vectors");
  field("min_word_count", min_word_count,
        "random vectors: words that occur less often in data.train are unknown",
        declare::at_least(1).at_most(largest_tagger));
  field("lowercase", lowercase,
        "look words up in lower case; unset: if word_vectors has no word with an upper-case letter");
  field("character_dimensions", character_dimensions, "elements of a character's vector; 0: no characters",
        declare::at_least(0).at_most(largest_tagger));
  field("character_hidden_size", character_hidden_size,
        "state of each direction of the LSTM over a word's characters",
        declare::at_least(1).at_most(largest_tagger));
  field("reproject_embeddings", reproject_embeddings,
        "a linear map between the vectors and the recurrent layer");
  field("rnn_type", rnn_type, "the layer over the words of a sentence",
        declare::one_of({"LSTM", "GRU", "none"}));
  field("hidden_size", hidden_size, "its state in each direction",
        declare::at_least(1).at_most(largest_tagger));
  field("rnn_layers", rnn_layers, "the number of such layers", declare::at_least(1).at_most(100));
  field("bidirectional", bidirectional, "in both directions, or from the first word to the last only");
  field("use_crf", use_crf,
        "choose the tags of a sentence together, by a conditional random field; off: each by itself");
  field("dropout", dropout, "dropout of single elements, also between recurrent layers",
        declare::at_least(0).below(1));
  field("word_dropout", word_dropout, "dropout of whole words", declare::at_least(0).below(1));
  field("locked_dropout", locked_dropout, "dropout of the same elements in all words of a sentence",
        declare::at_least(0).below(1));
}

bool is_new_tagger(const ModelConfig& model) {
  if (!model.config) return false;
  try {
    const auto json = nlohmann::json::parse(read_file(*model.config));
    return json.is_object() && json.value("model_type", "") == "sequence-tagger" &&
           !json.contains("vocab_size");
  } catch (const std::exception&) {
    return false;
  }
}

NewTaggerConfig read_new_tagger(const ModelConfig& model) {
  NewTaggerConfig tagger;
  const declare::YamlNode document = declare::parse_yaml(read_file(*model.config), model.config->string());
  const declare::Origins origins = declare::read_fields(declare::fields_of(tagger), document);
  const auto refuse = [&](const char* setting, const char* why) {
    throw ConfigError("{}: {}", origins.label(setting), why);
  };
  if (!tagger.word_vectors && tagger.word_dimensions == 0 && tagger.character_dimensions == 0)
    refuse("word_dimensions",
           "words have neither vectors nor characters; set this or character_dimensions to more than 0");
  for (const char* other : {"word_dimensions", "min_word_count"}) {
    if (tagger.word_vectors && origins.given(other))
      refuse(other, "the vocabulary and its vectors are those of word_vectors; remove one");
  }
  if (tagger.word_vectors && !std::filesystem::is_regular_file(*tagger.word_vectors))
    throw ConfigError("{}: {} is not a file (relative paths start at the working directory)",
                      origins.label("word_vectors"), tagger.word_vectors->string());
  return tagger;
}

}  // namespace stretto
