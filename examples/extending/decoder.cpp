// A family of language models that stretto does not have, for the task causal-lm and for generation: causal
// attention with positions in a table, in a layer of its own. Runs recipes like `stretto train`, then
// continues a text with the trained model.
#include <iostream>

#include <stretto/stretto.h>

namespace small {

using stretto::Tensor;
namespace nn = stretto::nn;

class SmallDecoder : public stretto::TextModel, public stretto::CausalDecoder {
 public:
  SmallDecoder(const nlohmann::json& config, const std::string& source) {
    const stretto::ConfigJson field(config, source);
    field.read("vocab_size", vocab_size_, 1, stretto::max_width);
    field.read("width", width_, 1, stretto::max_width);
    field.read("positions", positions_, 1, stretto::max_width);
    stretto::check_parameter_count({{vocab_size_, width_}, {positions_, width_}, {5 * width_, width_}},
                                   source, "vocab_size x width");
    words_ = register_module("words", std::make_shared<nn::Embedding>(vocab_size_, width_));
    places_ = register_module("places", std::make_shared<nn::Embedding>(positions_, width_));
    query_ = register_module("query", std::make_shared<nn::Linear>(width_, width_));
    key_ = register_module("key", std::make_shared<nn::Linear>(width_, width_));
    value_ = register_module("value", std::make_shared<nn::Linear>(width_, width_));
    out_ = register_module("out", std::make_shared<nn::Linear>(width_, width_));
    norm_ = register_module("norm", std::make_shared<nn::LayerNorm>(width_, 1e-5));
  }

  // With a cache in the context, as in generation, attention also reads the tokens of earlier passes.
  Tensor forward(const stretto::Batch& batch, const nn::Context& context) const override {
    const nn::PackedLayout layout(batch);
    const Tensor x =
        nn::embedding_sum({words_->lookup(batch.at("input_ids")), places_->lookup(layout.position_ids)});
    const auto one_head = [&](const auto& map) { return map->forward(x).unsqueeze(1); };
    const Tensor mixed =
        nn::packed_attention(one_head(query_), one_head(key_), one_head(value_), layout, layout, /*p=*/0,
                             /*site=*/0, context, {.causal = true});
    return norm_->forward(x + out_->forward(mixed));
  }

  // The table of words is also the head's weight.
  stretto::Loss loss(const Tensor& hidden, const Tensor& labels, const nn::Context& context) const override {
    return nn::linear_cross_entropy(hidden, words_->weight, labels, context);
  }
  Tensor logits(const Tensor& rows) const override { return nn::linear(rows, {words_->weight, {}}); }
  stretto::Capabilities capabilities() const override { return {.causal_decoder = this}; }

  nn::InitialValue initial_value(const nn::LayerParameter& parameter) const override {
    return nn::InitRule{.std = 0.1}.of(parameter);
  }
  nlohmann::json config_json(const nlohmann::json& original) const override {
    nlohmann::json json = stretto::begin_config_json(original, "small", "SmallForCausalLM");
    json.update({{"vocab_size", vocab_size_}, {"width", width_}, {"positions", positions_}});
    return json;
  }
  const std::vector<std::string>& labels() const override { return labels_; }
  stretto::TextLimits limits() const override { return {vocab_size_, positions_}; }

 private:
  int64_t vocab_size_ = 0, width_ = 32, positions_ = 128;
  std::vector<std::string> labels_ = {};
  std::shared_ptr<nn::Embedding> words_, places_;
  std::shared_ptr<nn::Linear> query_, key_, value_, out_;
  std::shared_ptr<nn::LayerNorm> norm_;
};

std::shared_ptr<stretto::TextModel> make(const nlohmann::json& config, const std::string& source,
                                         const stretto::TextModelOptions&) {
  return std::make_shared<SmallDecoder>(config, source);
}

stretto::ModelRegistry models() {
  stretto::ModelRegistry models = stretto::bundled_models();
  models.add({.name = "small", .heads = {{"CausalLM", {make}}}});
  return models;
}

}  // namespace small

int main(int argc, char** argv) {
  return stretto::run_program(argc, argv, [](const stretto::Run& run) {
    stretto::check_recipe(run.recipe, stretto::Verb::train);
    const stretto::ModelRegistry models = small::models();
    const stretto::FitResult result =
        stretto::make_task({run.recipe, run.mesh, run.device, models})->train({});
    if (run.mesh.world().rank() != 0) return result;
    const auto print = [](int64_t, const std::string& text,
                          const std::vector<stretto::GeneratedText>& found) {
      std::cout << text << found.front().text << std::endl;
    };
    const auto generator = stretto::load_text_generator(
        run.recipe.output / "model", {.generation = {.max_new_tokens = 12}, .on_text = print}, {}, models);
    generator->add("one two");
    generator->finish();
    return result;
  });
}
