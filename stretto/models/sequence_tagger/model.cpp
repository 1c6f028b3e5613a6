#include "stretto/models/sequence_tagger/model.h"

#include <cmath>

#include <ATen/CPUGeneratorImpl.h>

#include "stretto/base/hash.h"
#include "stretto/nn/sequence_dropout.h"

namespace stretto {
namespace {

using nn::RecurrentOptions;

// The sites of dropouts; those of further recurrent layers follow.
enum class Site : uint64_t {
  elements_before,
  words,
  columns_before,
  elements_behind,
  columns_behind,
  layers
};

constexpr uint64_t number_of(Site site) { return static_cast<uint64_t>(site); }

}  // namespace

SequenceTagger::SequenceTagger(const SequenceTaggerConfig& config) : config_(config) {
  if (config.word_dimensions > 0) {
    words_ = register_module(
        "words", std::make_shared<nn::Embedding>(config.vocab_size, config.word_dimensions, /*sparse=*/true));
    words_->weight.requires_grad_(config.train_words);
  }
  if (!config.characters.empty()) {
    characters_ = register_module(
        "characters", std::make_shared<nn::Embedding>(config.character_count(), config.character_dimensions));
    character_rnn_ = register_module(
        "character_rnn", std::make_shared<nn::Recurrent>(RecurrentOptions{
                             .input = config.character_dimensions, .hidden = config.character_hidden_size}));
  }
  int64_t width = config.embedding_size();
  if (config.reproject_embeddings)
    reproject_ = register_module("reproject", std::make_shared<nn::Linear>(width, width));
  if (config.rnn_type != "none") {
    const auto cell = config.rnn_type == "LSTM" ? RecurrentOptions::Cell::lstm : RecurrentOptions::Cell::gru;
    rnn_ = register_module(
        "rnn", std::make_shared<nn::Recurrent>(RecurrentOptions{.cell = cell,
                                                                .input = width,
                                                                .hidden = config.hidden_size,
                                                                .layers = config.rnn_layers,
                                                                .bidirectional = config.bidirectional,
                                                                .dropout = config.dropout,
                                                                .first_site = number_of(Site::layers)}));
    width = rnn_->width();
  }
  const auto tags = std::ssize(config.labels);
  linear_ = register_module("linear", std::make_shared<nn::Linear>(width, tags));
  if (config.use_crf) crf_ = register_module("crf", nn::make_sharded<nn::Crf>(tags));
}

Tensor SequenceTagger::embed(const Batch& batch) const {
  std::vector<Tensor> parts;
  if (words_) parts.push_back(words_->forward(batch.at("input_ids")));
  if (characters_) {
    const Tensor vectors = characters_->forward(batch.at("characters"));
    parts.push_back(character_rnn_->last_states(vectors, batch.at("character_cu_seqlens")));
  }
  return parts.size() == 1 ? parts.front() : at::cat(parts, 1);
}

Tensor SequenceTagger::forward(const Batch& batch, const nn::Context& context) const {
  const nn::PackedLayout layout(batch);
  Tensor x = nn::dropout(embed(batch), config_.dropout, number_of(Site::elements_before), layout, context);
  x = nn::word_dropout(x, config_.word_dropout, number_of(Site::words), layout, context);
  x = nn::locked_dropout(x, config_.locked_dropout, number_of(Site::columns_before), layout, context);
  if (reproject_) x = reproject_->forward(x);
  if (rnn_) {
    x = rnn_->forward(x, layout, context);
    x = nn::dropout(x, config_.dropout, number_of(Site::elements_behind), layout, context);
    x = nn::locked_dropout(x, config_.locked_dropout, number_of(Site::columns_behind), layout, context);
  }
  return linear_->forward(x);
}

// Uniform in [-bound, bound].
double SequenceTagger::initial_bound(const std::string& name, const Tensor& parameter) const {
  const auto inverse_root = [](int64_t width) { return 1 / std::sqrt(static_cast<double>(width)); };
  if (name.starts_with("words.") || name.starts_with("characters."))
    return std::sqrt(3.0) * inverse_root(parameter.size(1));
  if (name.starts_with("character_rnn.")) return inverse_root(config_.character_hidden_size);
  if (name.starts_with("rnn.")) return inverse_root(config_.hidden_size);
  return inverse_root((name.starts_with("linear.") ? linear_ : reproject_)->weight.size(1));
}

void SequenceTagger::initialize(uint64_t seed, const std::vector<std::string>& names) {
  at::NoGradGuard no_grad;
  const auto parameters = named_parameters();
  for (const std::string& name : names) {
    const Tensor& parameter = parameters[name];
    at::Generator random = at::detail::createCPUGenerator(hash64(name, seed));
    if (name.starts_with("crf.")) {
      parameter.normal_(0, 0.1, random);
    } else {
      const double bound = initial_bound(name, parameter);
      parameter.uniform_(-bound, bound, random);
    }
  }
}

WeightReport SequenceTagger::load_weights(const std::filesystem::path& folder) {
  NamedTensors parameters;
  for (const auto& item : named_parameters()) parameters[item.key()] = item.value();
  return set_weights(load_hf_weights(folder), parameters, folder.string(), /*convert=*/!keeps_file_types());
}

nlohmann::json SequenceTagger::config_json(const nlohmann::json& original) const {
  return config_.to_json(original);
}

std::shared_ptr<TextModel> make_sequence_tagger(const nlohmann::json& config, const std::string& source,
                                                const TextModelOptions& options) {
  SequenceTaggerConfig tagger = SequenceTaggerConfig::from_json(config, source);
  if (options.labels) tagger.labels = *options.labels;
  if (options.dropout) tagger.dropout = tagger.word_dropout = tagger.locked_dropout = *options.dropout;
  return nn::make_sharded<SequenceTagger>(tagger);
}

}  // namespace stretto
