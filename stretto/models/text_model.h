#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <torch/nn/module.h>

#include "stretto/base/error.h"
#include "stretto/nn/packed.h"
#include "stretto/nn/sharded.h"
#include "stretto/tensor/hf_folder.h"

namespace stretto {

namespace nn {
class Crf;
}

// What is computed from the hidden states of an encoder; in Hugging Face's names of architectures, behind "For".
// hidden_states: no head, but the states of some layers, side by side.
enum class Head { sequence_classification, token_classification, question_answering, hidden_states };

// "SequenceClassification", "TokenClassification", "QuestionAnswering"; "" without a head.
const char* name_of(Head head);

// Options that override config.json.
struct TextModelOptions {
  std::optional<std::vector<std::string>> labels = {};  // unset: those of config.json
  std::optional<double> dropout = {};  // all dropout probabilities; unset: those of config.json
  std::string layers = "-1";           // of hidden_states, see layer_states.h
};

// A model of any architecture with a head.
class TextModel : public torch::nn::Module {
 public:
  // A packed batch of B texts and T tokens (tensor/batch.h) -> logits: [B, labels] of a sequence classification; [T, labels] of
  // a token classification; [T, 2] of question answering, whether the answer begins and whether it ends at each token;
  // [T, layers * H] of hidden states.
  virtual Tensor forward(const Batch& batch, const nn::Context& context) const = 0;

  // Initialises the parameters `names` with random weights, which depend on the seed and the name only.
  virtual void initialize(uint64_t seed, const std::vector<std::string>& names) = 0;

  // Loads the weights of a Hugging Face folder, also under older names. Weights that the folder lacks are not changed
  // but reported.
  virtual WeightReport load_weights(const std::filesystem::path& folder) = 0;

  // load_weights() then only maps the files: parameters have the data types of the files, and are converted by the caller.
  void keep_file_types() { keeps_file_types_ = true; }
  bool keeps_file_types() const { return keeps_file_types_; }

  // `original` (the config.json that the model was created from) with this model's values.
  virtual nlohmann::json config_json(const nlohmann::json& original) const = 0;

  virtual const std::vector<std::string>& labels() const = 0;

  // The characters that the model reads besides tokens (text/characters.h), which the batch holds as data::CharacterRows; "": none.
  virtual std::string characters() const { return ""; }

  // The layers and the width H of hidden states.
  struct StatesShape {
    int64_t layers = 0, width = 0;
  };
  virtual StatesShape states_shape() const { return {}; }

  // Whether the model reads the words that tokens are parts of: the batch holds their data::WordRows. `word_ids`: also an id of
  // each word, by a tokenizer of words in the model's folder.
  struct WholeWords {
    bool any = false, word_ids = false;
  };
  virtual WholeWords whole_words() const { return {}; }

  // Whether tokens are read together with those of neighbouring words to which no tag belongs.
  virtual bool reads_context() const { return true; }

  // The part of forward() that no training changes: a vector of width frozen_width() of each word, 0 if there is none. forward() takes
  // it from the batch's frozen_states [words, frozen_width()] where they are given.
  virtual int64_t frozen_width() const { return 0; }
  virtual Tensor frozen_states(const Batch& /*batch*/, const nn::Context& /*context*/) const {
    throw Error("the model has no frozen states");
  }

  // What turns the logits of a token classification into tags of whole sequences; null: each token by itself. See tagging.h.
  virtual std::shared_ptr<const nn::Sharded<nn::Crf>> crf() const { return nullptr; }

  virtual int64_t vocab_size() const = 0;
  virtual int64_t max_length() const = 0;  // tokens per text

 private:
  bool keeps_file_types_ = false;
};

}  // namespace stretto
