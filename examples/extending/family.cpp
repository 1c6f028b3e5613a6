// A model family that stretto does not have, for its tasks: the mean of a text's word vectors and a linear
// layer (Joulin et al. 2016). Runs recipes like `stretto train`, with model.config or model.path naming a
// folder of the family.
#include <stretto/stretto.h>

namespace words {

using stretto::Tensor;

class MeanOfWords : public stretto::TextModel {
 public:
  MeanOfWords(const nlohmann::json& config, const std::string& source,
              const stretto::TextModelOptions& options)
      : labels_(options.labels.value_or(stretto::read_labels(config, source))) {
    const stretto::ConfigJson field(config, source);
    field.read("vocab_size", vocab_size_, 1, stretto::max_width);
    field.read("width", width_, 1, stretto::max_width);
    stretto::check_parameter_count({{vocab_size_, width_}}, source, "vocab_size x width");
    words_ = register_module("words", std::make_shared<stretto::nn::Embedding>(vocab_size_, width_));
    out_ = register_module("out", std::make_shared<stretto::nn::Linear>(width_, std::ssize(labels_)));
  }

  // A packed batch: the tokens of all texts one after the other; sequence b is rows cu_seqlens[b] to
  // cu_seqlens[b + 1].
  Tensor forward(const stretto::Batch& batch, const stretto::nn::Context& context) const override {
    const stretto::nn::PackedLayout layout(batch);
    const Tensor lengths = layout.cu_seqlens.diff();
    const Tensor vectors = words_->forward(batch.at("input_ids")).slice(0, 0, lengths.sum().item<int64_t>());
    const Tensor sums = at::zeros({layout.batch, width_}, vectors.options())
                            .index_add(0, at::repeat_interleave(lengths), vectors);
    const Tensor means = sums / lengths.unsqueeze(1);
    return out_->forward(stretto::nn::dropout(means, 0.1, /*site=*/0, layout.first_tokens(), context));
  }

  stretto::nn::InitialValue initial_value(const stretto::nn::LayerParameter& parameter) const override {
    return stretto::nn::InitRule{.std = 0.1, .table = "words.weight", .padding_row = 0}.of(parameter);
  }

  nlohmann::json config_json(const nlohmann::json& original) const override {
    nlohmann::json json =
        stretto::begin_config_json(original, "mean-of-words", "MeanOfWordsForSequenceClassification");
    json["vocab_size"] = vocab_size_;
    json["width"] = width_;
    stretto::write_labels(json, labels_);
    return json;
  }

  const std::vector<std::string>& labels() const override { return labels_; }
  stretto::TextLimits limits() const override { return {vocab_size_, 4096}; }

 private:
  std::vector<std::string> labels_;
  int64_t vocab_size_ = 0, width_ = 16;
  std::shared_ptr<stretto::nn::Embedding> words_;
  std::shared_ptr<stretto::nn::Linear> out_;
};

std::shared_ptr<stretto::TextModel> make(const nlohmann::json& config, const std::string& source,
                                         const stretto::TextModelOptions& options) {
  return stretto::nn::make_sharded<MeanOfWords>(config, source, options);
}

// A registry of the bundled families and this one.
stretto::ModelRegistry models() {
  stretto::ModelRegistry models = stretto::bundled_models();
  models.add({.name = "mean-of-words", .heads = {{"SequenceClassification", {make, "out.weight"}}}});
  return models;
}

}  // namespace words

int main(int argc, char** argv) {
  return stretto::run_program(argc, argv, [](const stretto::Run& run) {
    stretto::check_recipe(run.recipe, stretto::Verb::train);  // run_program has not required model and data
    const stretto::ModelRegistry models = words::models();
    const auto task = stretto::make_task({run.recipe, run.mesh, run.device, models});
    const stretto::FitResult result = task->train({});
    if (!result.stopped && run.recipe.data.test) task->test();
    return result;
  });
}
