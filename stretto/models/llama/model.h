#pragma once

#include "stretto/model_config/llama.h"
#include "stretto/models/decoder.h"
#include "stretto/models/llama/rope.h"

namespace stretto {

// Hugging Face's LlamaForCausalLM and its variants.
class Llama : public Decoder {
 public:
  // Throws ConfigError if the model cannot be divided among `ranks`.
  explicit Llama(const LlamaConfig& config, const nn::TensorParallel& ranks = {});

  // Hugging Face's values: normal(0, initializer_range); biases and the padding row are zero, weights of
  // norms one.
  nn::InitialValue initial_value(const nn::LayerParameter& parameter) const override;

  WeightNames weight_names() const override;

  nlohmann::json config_json(const nlohmann::json& original) const override {
    return config_.to_json(original);
  }

 protected:
  nn::Rotation angles(const nn::PackedLayout& layout, at::ScalarType dtype) const override {
    return rope_.at(layout, dtype);
  }

 private:
  LlamaConfig config_;
  Rope rope_;
};

// Creates a model for models/registry.h.
std::shared_ptr<TextModel> make_llama(const nlohmann::json& config, const std::string& source,
                                      const TextModelOptions& options);

}  // namespace stretto
