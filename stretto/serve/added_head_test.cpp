// A program's own family and pipeline are found by a head that stretto does not know.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/data/packing.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/heads.h"
#include "stretto/serve/served_model.h"
#include "stretto/tensor/safetensors.h"

namespace stretto::serve {
namespace {

using ::testing::HasSubstr;

constexpr const char* text_cost = "TextCost";

// A model whose result is the sum of the costs of a text's tokens, [B, 1].
class CostModel : public TextModel {
 public:
  CostModel() : costs_(register_parameter("costs", at::zeros({10}))) {}

  Tensor forward(const Batch& batch, const nn::Context&) const override {
    const Tensor sums = at::cat({at::zeros({1}), costs_.index_select(0, batch.at("input_ids")).cumsum(0)});
    return sums.index_select(0, batch.at("cu_seqlens")).diff().unsqueeze(1);
  }
  nn::InitialValue initial_value(const nn::LayerParameter&) const override { return {}; }
  nlohmann::json config_json(const nlohmann::json& original) const override {
    return begin_config_json(original, "costs", heads::architecture("Costs", text_cost));
  }
  const std::vector<std::string>& labels() const override { return labels_; }
  TextLimits limits() const override { return {costs_.numel(), 64}; }

 private:
  std::vector<std::string> labels_ = {"cost"};
  Tensor costs_;
};

class CostPipeline : public Pipeline {
 public:
  CostPipeline(const std::filesystem::path& folder, const PipelineOptions& options,
               const ModelRegistry& models)
      : served_(folder, text_cost, options, models) {}
  InputKind input_kind() const override { return InputKind::text; }
  std::vector<nlohmann::ordered_json> predict(std::span<const PipelineInput> inputs,
                                              const std::string&) const override {
    at::NoGradGuard no_grad;
    std::vector<nlohmann::ordered_json> records;
    for (const PipelineInput& input : inputs) {
      const text::Encoding encoding = served_.tokenizer.encode(input.text);
      const std::vector<data::TokenSequence> sequences = {{encoding.ids, encoding.type_ids, 0}};
      const Tensor cost = served_.model->forward(data::pack_sequences(sequences), {});
      records.push_back({{"text", input.text}, {"cost", cost.item<double>()}});
    }
    return records;
  }

 private:
  ServedModel served_;
};

TEST(AddedHead, IsFoundByItsName) {
  const TempFolder folder;
  CostModel model;
  write_file_atomic(folder.path() / "config.json", model.config_json({}).dump());
  write_file_atomic(folder.path() / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ngood\nbad\nfilm\n");
  save_safetensors(folder.path() / "model.safetensors", {{"costs", at::arange(10, at::kFloat)}});

  ModelRegistry models = bundled_models();
  const auto make_model = [](const nlohmann::json&, const std::string&, const TextModelOptions&) {
    return std::make_shared<CostModel>();
  };
  models.add({.name = "costs", .heads = {{text_cost, {make_model, "costs"}}}});
  PipelineRegistry pipelines = bundled_pipelines();
  pipelines.add(
      {text_cost, "text-cost", {"cost"}, {}, [](const auto& path, const auto& options, const auto& known) {
         return std::make_unique<CostPipeline>(path, options, known);
       }});

  const std::vector<PipelineInput> inputs = {{"good film"}, {"bad"}};
  const auto records = load_pipeline(folder.path(), {}, models, pipelines)->predict(inputs, "cost");
  EXPECT_EQ(records[0].at("cost"), 2 + 5 + 7 + 3) << "[CLS] good film [SEP]";
  EXPECT_EQ(records[1].at("cost"), 2 + 6 + 3);
  EXPECT_EQ(trained_labels(models, text_cost, folder.path())->size(), 2) << "as of any config.json";

  EXPECT_THAT(message_of<ConfigError>([&] { load_pipeline(folder.path(), {}, models); }),
              HasSubstr("\"TextCost\" is not a model head"));
  EXPECT_THAT(message_of<ConfigError>([&] {
                make_text_model(models, heads::sequence_classification, model.config_json({}), "config.json");
              }),
              HasSubstr("no head for SequenceClassification; its heads: TextCost"));
}

}  // namespace
}  // namespace stretto::serve
