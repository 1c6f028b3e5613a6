#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <torch/nn/module.h>

#include "stretto/nn/initial_values.h"
#include "stretto/nn/packed.h"
#include "stretto/nn/tensor_parallel.h"

namespace stretto {

// Options that override config.json.
struct TextModelOptions {
  std::optional<std::vector<std::string>> labels = {};  // unset: the labels of config.json
  std::optional<double> dropout = {};  // all dropout probabilities; unset: those of config.json
  std::string layers = "-1";           // whose hidden states are computed, see model_config/layer_numbers.h
  nn::TensorParallel tensor_parallel = {};  // the ranks among which the model is divided
};

// The limits of a model's texts.
struct TextLimits {
  int64_t vocab_size = 0;  // ids of tokens are below it
  int64_t max_length = 0;  // tokens per text
  // The states of the tokens of a text do not depend on later tokens, up to a text of this length.
  int64_t steady_length = std::numeric_limits<int64_t>::max();
  // Generation may write longer texts than max_length: positions beyond it are defined (dynamic RoPE).
  bool writes_on = false;
};

// The features of words that a model reads besides their tokens; data/features/words.h puts them into
// batches.
struct WordReader {
  // the characters that it knows (text/characters.h); "": it does not read characters
  std::string characters = {};
  bool whole_words = false;    // reads the tokens of each word as one
  bool word_ids = false;       // then also an id of each word, by a tokenizer of words in the model's folder
  bool reads_context = true;   // reads tokens together with those of surrounding words, which it does not tag
  std::string separator = {};  // a token in front of each sentence and behind it; "": none
};

// A model without a head computes the states of some layers side by side, [T, layers * width].
struct HiddenStates {
  int64_t layers = 0, width = 0;
};

// The part of forward() that training does not change: a vector per word. If the batch has frozen_states
// [words, width()], forward() uses them.
class FrozenStates {
 public:
  virtual ~FrozenStates() = default;
  virtual int64_t width() const = 0;
  // Computes the vectors of a batch of whole words, [words, width()].
  virtual Tensor compute(const Batch& batch, const nn::Context& context) const = 0;
};

// The sum of the losses of each sequence, and the number of tokens or words in it: two tensors [B] fp64 on
// the CPU.
struct SequenceLosses {
  Tensor sums, counts;
};

// Losses and tags from the logits [T, labels] of a token classification. Tags are those of tokens, or of
// words: tokens whose batch["words"] is not negative.
class SequenceLabeller {
 public:
  virtual ~SequenceLabeller() = default;

  // The training loss of batch["labels"]: a sum, and the number of tokens or words in it. `weights`: factors
  // of the losses and counts of tags (nn::cross_entropy); empty: none.
  virtual Loss loss(const Tensor& logits, const Batch& batch, const nn::Context& context,
                    const std::vector<double>& weights = {}) const = 0;

  virtual SequenceLosses losses(const Tensor& logits, const Batch& batch) const = 0;

  // The most probable tags, [T] int64.
  virtual Tensor best_tags(const Tensor& logits, const Batch& batch) const = 0;

  // The probability of each tag, [T, labels] fp64.
  virtual Tensor probabilities(const Tensor& logits, const Batch& batch) const = 0;
};

// Predicts the token after each row of forward()'s result, for texts that begin at position 0.
class CausalDecoder {
 public:
  virtual ~CausalDecoder() = default;

  // The sum of the cross entropies of `labels` [T] int64 given hidden [T, H], and the number of labels. The
  // label of a row is the next token, or -100. The logits [T, vocabulary] are never stored completely.
  virtual Loss loss(const Tensor& hidden, const Tensor& labels, const nn::Context& context) const = 0;

  // The logits [N, vocabulary] of rows [N, H].
  virtual Tensor logits(const Tensor& rows) const = 0;
};

// Interfaces that only some models have; null if this one lacks it. Valid for the lifetime of the model.
struct Capabilities {
  const WordReader* word_reader = nullptr;
  const HiddenStates* hidden_states = nullptr;
  const FrozenStates* frozen_states = nullptr;
  const SequenceLabeller* sequence_labeller = nullptr;  // null: each token is tagged separately
  const CausalDecoder* causal_decoder = nullptr;
};

class TextModel;

// How the weight files of an architecture name a model's parameters; by default as the model does.
struct WeightNames {
  // The model's head, as Hugging Face names it (model_config/heads.h). Because heads share parameter names, a
  // head is not read from a folder whose config.json names another one. "": heads are not compared.
  std::string head = {};
  std::string prefix = {};              // of the encoder: "bert."
  std::vector<std::string> parts = {};  // prefixes of names in files of the encoder only: "embeddings."
  std::function<std::string(std::string)> renamed = {};  // the current name of a weight of an older file
  // whether a weight belongs to another head and is not reported as unexpected
  std::function<bool(const std::string&)> is_leftover = {};

  // An inner model whose weights are in a separate folder. This model's folder may then lack them.
  struct Inner {
    std::string prefix;  // of its parameters in this model: "transformer."
    const TextModel* model;
    std::filesystem::path folder;
    // The rows of its token embeddings if the folder has fewer: the others begin as the mean of those.
    int64_t vocab_size = 0;
  };
  std::vector<Inner> inner = {};
};

// A model of any architecture with a head.
class TextModel : public torch::nn::Module {
 public:
  // A packed batch of B texts and T tokens (tensor/batch.h) -> logits: [B, labels] of a sequence
  // classification; [T, labels] of a token classification; [T, 2] of question answering, whether the answer
  // begins and whether it ends at each token; [T, layers * H] of hidden states. A causal decoder returns its
  // last states, [T, H].
  virtual Tensor forward(const Batch& batch, const nn::Context& context) const = 0;

  // How the initial values of a parameter are drawn if no file has them, for example by nn::InitRule.
  virtual nn::InitialValue initial_value(const nn::LayerParameter& parameter) const = 0;

  // How Hugging Face's files name the parameters.
  virtual WeightNames weight_names() const { return {}; }

  // `original` (the config.json that the model was created from) with this model's values.
  virtual nlohmann::json config_json(const nlohmann::json& original) const = 0;

  virtual const std::vector<std::string>& labels() const = 0;
  virtual TextLimits limits() const = 0;
  virtual Capabilities capabilities() const { return {}; }
};

// Differences between the weights of a folder and a model's parameters.
struct WeightReport {
  std::vector<std::string> missing;     // parameters without a weight
  std::vector<std::string> unexpected;  // weights without a parameter
};

// The result of open_weights.
struct ModelWeights {
  std::unique_ptr<TensorSource> values;  // of the model's parameters that the folder has
  WeightReport report;
};

// The weights of a Hugging Face folder under the names of the model's parameters. Files are mapped and not
// read yet. Throws DataError, as load_hf_weights does, and for a weight of another shape with both shapes.
ModelWeights open_weights(const TextModel& model, const std::filesystem::path& folder);

// Random initial values of all parameters.
std::unique_ptr<TensorSource> initial_values(const TextModel& model, uint64_t seed);

// Sets the parameters that the folder has, for models that are not bound to an engine. The other parameters
// are reported, and not changed. Throws like open_weights().
WeightReport load_weights(TextModel& model, const std::filesystem::path& folder);

}  // namespace stretto
