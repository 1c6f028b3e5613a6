#include "stretto/model_config/heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"
#include "stretto/model_config/config_json.h"
#include "stretto/models/bert/model.h"
#include "stretto/models/golden_support.h"
#include "stretto/models/registry.h"

namespace stretto {
namespace {

using ::testing::ElementsAre;
using ::testing::Not;

const std::filesystem::path heads_folder =
    std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/bert_heads";

std::shared_ptr<TextModel> load_head(const std::string& head, const std::filesystem::path& folder) {
  const auto model =
      make_text_model(bundled_models(), head, read_config_json(folder / "config.json"), "config.json");
  const WeightReport report = load_weights(*model, folder);
  EXPECT_THAT(report.missing, ElementsAre());
  EXPECT_THAT(report.unexpected, ElementsAre());
  return model;
}

struct HeadCase {
  const char* precision;
  at::ScalarType dtype;
  double tolerance;
};

class BertHeads : public ::testing::TestWithParam<HeadCase> {};

TEST_P(BertHeads, TokenClassificationEqualsTransformers) {
  const auto [precision, dtype, tolerance] = GetParam();
  const auto golden = SafetensorsFile(heads_folder / "token/golden.safetensors").load_all();
  const auto model = load_head(heads::token_classification, heads_folder / "token");
  model->to(dtype);
  const Batch batch = packed_batch(golden);
  const Tensor logits = model->forward(batch, {});
  const Loss loss = nn::cross_entropy(logits, batch.at("labels"));
  expect_golden_pass(*model, logits, loss.sum, golden, precision, tolerance);
}

TEST_P(BertHeads, QuestionAnsweringEqualsTransformers) {
  const auto [precision, dtype, tolerance] = GetParam();
  const auto golden = SafetensorsFile(heads_folder / "qa/golden.safetensors").load_all();
  const auto model = load_head(heads::question_answering, heads_folder / "qa");
  model->to(dtype);
  const Batch batch = packed_batch(golden);
  const Tensor logits = model->forward(batch, {});
  // All sequences of the batch have the same length.
  const Tensor by_sequence = logits.view({3, -1, 2});
  const Tensor loss =
      (at::cross_entropy_loss(by_sequence.select(2, 0), batch.at("starts"), {}, at::Reduction::Sum) +
       at::cross_entropy_loss(by_sequence.select(2, 1), batch.at("ends"), {}, at::Reduction::Sum)) /
      2;
  expect_golden_pass(*model, logits, loss, golden, precision, tolerance);
}

INSTANTIATE_TEST_SUITE_P(Precisions, BertHeads,
                         ::testing::Values(HeadCase{"fp64", at::kDouble, 1e-11},
                                           HeadCase{"fp32", at::kFloat, 1e-5}),
                         [](const auto& info) { return info.param.precision; });

TEST(BertHead, AnotherHeadsWeightsAreNotLoaded) {
  // Both heads are named classifier and have the same shape here.
  const std::filesystem::path folder = std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/bert/gelu";
  const nlohmann::json config = read_config_json(folder / "config.json");
  const auto model = make_text_model(bundled_models(), heads::token_classification, config, "config.json");
  EXPECT_THAT(load_weights(*model, folder).missing, ElementsAre("classifier.bias", "classifier.weight"));
  EXPECT_FALSE(trained_labels(bundled_models(), heads::token_classification, folder).has_value());
  EXPECT_TRUE(trained_labels(bundled_models(), heads::sequence_classification, folder).has_value());
  EXPECT_FALSE(trained_labels(bundled_models(), heads::question_answering, folder).has_value());
  EXPECT_TRUE(trained_labels(bundled_models(), heads::question_answering, heads_folder / "qa").has_value());
}

TEST(BertHead, ConfigJsonNamesTheArchitecture) {
  const auto tagger = load_head(heads::token_classification, heads_folder / "token");
  const nlohmann::json config = tagger->config_json({});
  EXPECT_EQ(config.at("architectures"), nlohmann::json({"BertForTokenClassification"}));
  EXPECT_EQ(config.at("id2label").size(), 5u);
  EXPECT_FALSE(config.contains("problem_type"));
  const auto answerer = load_head(heads::question_answering, heads_folder / "qa");
  EXPECT_EQ(answerer->config_json({}).at("architectures"), nlohmann::json({"BertForQuestionAnswering"}));
}

}  // namespace
}  // namespace stretto
