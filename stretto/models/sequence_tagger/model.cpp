#include "stretto/models/sequence_tagger/model.h"

#include <cmath>

#include "stretto/base/error.h"
#include "stretto/model_config/heads.h"
#include "stretto/models/registry.h"
#include "stretto/nn/crf.h"
#include "stretto/nn/sequence_dropout.h"
#include "stretto/nn/sharded.h"

namespace stretto {
namespace {

using nn::RecurrentOptions;

constexpr std::string_view transformer_prefix = "transformer.";

// The numbers of dropout sites; those of further recurrent layers follow. A transformer has the lower
// numbers.
constexpr uint64_t sites_of_transformer = uint64_t{1} << 20;
enum Site : int { elements_before, words, columns_before, elements_after, columns_after, layers };

// The width of the transformer's part of a word's vector.
int64_t pooled_width(const SequenceTaggerConfig& config, const TextModel* transformer) {
  if (transformer == nullptr) return 0;
  const auto [layers, width] = *transformer->capabilities().hidden_states;
  return (config.layer_mean ? 1 : layers) * width * (config.subtoken_pooling == "first_last" ? 2 : 1);
}

}  // namespace

SequenceTagger::SequenceTagger(const SequenceTaggerConfig& config, std::shared_ptr<TextModel> transformer)
    : config_(config), transformer_(std::move(transformer)) {
  if (transformer_) {
    register_module("transformer", transformer_);
    if (!config.fine_tune)
      for (Tensor& parameter : transformer_->parameters()) parameter.set_requires_grad(false);
  }
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
  int64_t width = config.embedding_size() + pooled_width(config, transformer_.get());
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
                                                                .first_site = number_of(layers)}));
    width = rnn_->width();
  }
  const auto tags = std::ssize(config.labels);
  linear_ = register_module("linear", std::make_shared<nn::Linear>(width, tags));
  if (config.use_crf) labeller_.emplace(register_module("crf", nn::make_sharded<nn::Crf>(tags)));
  words_read_ = {.characters = config.characters,
                 .whole_words = transformer_ != nullptr,
                 .word_ids = transformer_ && words_,
                 .reads_context = transformer_ != nullptr,
                 .separator = config.context_separator ? SequenceTaggerConfig::separator : ""};
}

Capabilities SequenceTagger::capabilities() const {
  return {.word_reader = &words_read_,
          .frozen_states = transformer_ && !config_.fine_tune ? this : nullptr,
          .sequence_labeller = labeller_ ? &*labeller_ : nullptr};
}

uint64_t SequenceTagger::number_of(int site) const {
  return (transformer_ ? sites_of_transformer : 0) + static_cast<uint64_t>(site);
}

SequenceTagger::Words SequenceTagger::embed(const Batch& batch, const nn::Context& context) const {
  if (transformer_) return embed_whole_words(batch, context);
  std::vector<Tensor> parts;
  if (words_) parts.push_back(words_->forward(batch.at("input_ids")));
  if (characters_) {
    const Tensor vectors = characters_->forward(batch.at("characters"));
    parts.push_back(character_rnn_->last_states(vectors, batch.at("character_cu_seqlens")));
  }
  return {nn::PackedLayout(batch), parts.size() == 1 ? parts.front() : at::cat(parts, 1)};
}

SequenceTagger::Rows::Rows(const Batch& batch)
    : first(batch.at("words").ge(0).nonzero().squeeze(1)),
      tokens(batch.at("token_words").ge(0).nonzero().squeeze(1)),
      of_tokens(batch.at("token_words").index_select(0, tokens)) {}

SequenceTagger::Words SequenceTagger::embed_whole_words(const Batch& batch,
                                                        const nn::Context& context) const {
  Words words;
  const Rows& rows = words.rows.emplace(batch);
  std::vector<Tensor> parts;
  if (words_) parts.push_back(words_->forward(batch.at("word_ids").index_select(0, rows.first)));
  if (characters_) {
    const Tensor vectors = characters_->forward(batch.at("characters"));
    parts.push_back(
        character_rnn_->last_states(vectors, batch.at("character_cu_seqlens")).index_select(0, rows.first));
  }
  parts.push_back(transformer_states(batch, rows, context));
  words.vectors = at::cat(parts, 1);
  if (rows.first.numel() == 0) return words;
  // Packs the words as a batch; sequences without words are omitted.
  Batch packed;
  const Tensor bounds = at::searchsorted(rows.first, batch.at("cu_seqlens"));
  const Tensor kept = bounds.diff().gt(0).nonzero().squeeze(1);
  packed.tensors["cu_seqlens"] = at::cat({bounds.index_select(0, kept), bounds.slice(0, -1)});
  packed.tensors["samples"] = batch.at("samples").index_select(0, rows.first);
  // The number of a word in its sample is its position and its place.
  packed.tensors["position_ids"] = packed.tensors["places"] = batch.at("words").index_select(0, rows.first);
  words.layout.emplace(packed);
  return words;
}

// [words, pooled_width()]
Tensor SequenceTagger::transformer_states(const Batch& batch, const Rows& rows,
                                          const nn::Context& context) const {
  if (config_.fine_tune) return pooled(transformer_->forward(batch, context), rows);
  return batch.has("frozen_states") ? batch.at("frozen_states") : compute(batch, context);
}

int64_t SequenceTagger::width() const { return pooled_width(config_, transformer_.get()); }

Tensor SequenceTagger::compute(const Batch& batch, const nn::Context& context) const {
  at::NoGradGuard no_grad;
  return pooled(transformer_->forward(batch, {.kernels = context.kernels}), Rows(batch));
}

// Pools the states [T, layers * H] of each word's tokens into one vector: [words, pooled_width()].
Tensor SequenceTagger::pooled(Tensor states, const Rows& rows) const {
  const auto [count, width] = *transformer_->capabilities().hidden_states;
  if (config_.layer_mean && count > 1) states = states.view({-1, count, width}).mean(1);
  const auto first = [&] { return states.index_select(0, rows.first); };
  const auto last = [&] {
    const Tensor last_rows =
        at::zeros_like(rows.first)
            .scatter_reduce(0, rows.of_tokens, rows.tokens, "amax", /*include_self=*/false);
    return states.index_select(0, last_rows);
  };
  if (config_.subtoken_pooling == "first") return first();
  if (config_.subtoken_pooling == "last") return last();
  if (config_.subtoken_pooling == "first_last") return at::cat({first(), last()}, 1);
  const Tensor sums = at::zeros({rows.first.numel(), states.size(1)}, states.options())
                          .index_add(0, rows.of_tokens, states.index_select(0, rows.tokens));
  const Tensor counts = at::zeros({rows.first.numel()}, states.options())
                            .index_add(0, rows.of_tokens, at::ones({rows.tokens.numel()}, states.options()));
  return sums / counts.unsqueeze(1);
}

// The scores of each word's tags, [words, labels].
Tensor SequenceTagger::score(const Words& words, const nn::Context& context) const {
  const nn::PackedLayout& layout = *words.layout;
  Tensor x = nn::dropout(words.vectors, config_.dropout, number_of(elements_before), layout, context);
  x = nn::word_dropout(x, config_.word_dropout, number_of(Site::words), layout, context);
  x = nn::locked_dropout(x, config_.locked_dropout, number_of(columns_before), layout, context);
  if (reproject_) x = reproject_->forward(x);
  if (rnn_) {
    x = rnn_->forward(x, layout, context);
    x = nn::dropout(x, config_.dropout, number_of(elements_after), layout, context);
    x = nn::locked_dropout(x, config_.locked_dropout, number_of(columns_after), layout, context);
  }
  return linear_->forward(x);
}

Tensor SequenceTagger::forward(const Batch& batch, const nn::Context& context) const {
  const Words words = embed(batch, context);
  if (!transformer_) return score(words, context);
  const int64_t tokens = batch.at("input_ids").numel();
  if (!words.layout)
    return linear_->forward(at::zeros({tokens, linear_->weight.size(1)}, words.vectors.options()));
  const Tensor scores = score(words, context);
  return at::index_copy(at::zeros({tokens, scores.size(1)}, scores.options()), 0, words.rows->tokens,
                        scores.index_select(0, words.rows->of_tokens));
}

// Uniform in [-bound, bound].
double SequenceTagger::initial_bound(const std::string& name) const {
  const auto inverse_root = [](int64_t width) { return 1 / std::sqrt(static_cast<double>(width)); };
  if (name.starts_with("words.")) return std::sqrt(3.0) * inverse_root(words_->weight.size(1));
  if (name.starts_with("character_rnn.")) return inverse_root(config_.character_hidden_size);
  if (name.starts_with("rnn.")) return inverse_root(config_.hidden_size);
  return inverse_root((name.starts_with("linear.") ? linear_ : reproject_)->weight.size(1));
}

nn::InitialValue SequenceTagger::initial_value(const nn::LayerParameter& parameter) const {
  using Kind = nn::InitialValue::Kind;
  const std::string& name = parameter.name;
  if (name.starts_with(transformer_prefix)) {
    nn::LayerParameter inner = parameter;
    inner.name = name.substr(transformer_prefix.size());
    nn::InitialValue value = transformer_->initial_value(inner);
    value.drawn_as = inner.name;
    return value;
  }
  if (name.starts_with("crf.")) return {Kind::normal, 0.1};
  if (name.starts_with("characters.")) return {Kind::normal, 1};
  return {Kind::uniform, initial_bound(name)};
}

WeightNames SequenceTagger::weight_names() const {
  if (!transformer_ || config_.transformer_path.empty()) return {};
  return {.inner = {{std::string(transformer_prefix), transformer_.get(), config_.transformer_path,
                     config_.context_separator ? transformer_->limits().vocab_size : 0}}};
}

nlohmann::json SequenceTagger::config_json(const nlohmann::json& original) const {
  return config_.to_json(original);
}

std::shared_ptr<TextModel> make_sequence_tagger(const nlohmann::json& config, const std::string& source,
                                                const TextModelOptions& options) {
  SequenceTaggerConfig tagger = SequenceTaggerConfig::from_json(config, source);
  if (options.labels) tagger.labels = *options.labels;
  if (options.dropout) tagger.dropout = tagger.word_dropout = tagger.locked_dropout = *options.dropout;
  if (options.tensor_parallel.divides() && (tagger.transformer.is_null() || !tagger.fine_tune)) {
    throw ConfigError(
        "{}: of a sequence-tagger only a transformer that is trained (\"transformer\", \"fine_tune\": true) can be divided among ranks (tp); recurrent layers are whole on each rank",
        source);
  }
  if (tagger.transformer.is_null()) return nn::make_sharded<SequenceTagger>(tagger);
  const TextModelOptions of_transformer = {
      .dropout = options.dropout, .layers = tagger.layers, .tensor_parallel = options.tensor_parallel};
  return nn::make_sharded<SequenceTagger>(
      tagger, make_text_model(bundled_models(), heads::hidden_states, tagger.transformer,
                              source + ": transformer", of_transformer));
}

}  // namespace stretto
