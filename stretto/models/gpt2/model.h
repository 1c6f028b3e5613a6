#pragma once

#include "stretto/model_config/gpt2.h"
#include "stretto/models/decoder.h"

namespace stretto {

// Hugging Face's GPT2LMHeadModel.
class Gpt2 : public Decoder {
 public:
  // Throws ConfigError if the model cannot be divided among `ranks`.
  explicit Gpt2(const Gpt2Config& config, const nn::TensorParallel& ranks = {});

  // Hugging Face's values: normal(0, initializer_range), with a standard deviation divided by sqrt(2 *
  // n_layer) for maps that are added to the states; biases are zero, weights of norms one.
  nn::InitialValue initial_value(const nn::LayerParameter& parameter) const override;

  // Accepts files of the first releases, whose names lack the "transformer." prefix and which include
  // attention masks.
  WeightNames weight_names() const override;

  nlohmann::json config_json(const nlohmann::json& original) const override {
    return config_.to_json(original);
  }

 private:
  Gpt2Config config_;
};

// Creates a model for models/registry.h.
std::shared_ptr<TextModel> make_gpt2(const nlohmann::json& config, const std::string& source,
                                     const TextModelOptions& options);

}  // namespace stretto
