#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/model_config/activations.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/heads.h"
#include "stretto/models/bert/model.h"
#include "stretto/models/golden_support.h"
#include "stretto/models/registry.h"
#include "stretto/nn/functional.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::filesystem::path families = std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden";
const std::filesystem::path roberta_folder = families / "roberta";

struct FamilyCase {
  const char* name;
  std::string head;
  bool wide;
};

// The golden loss: the sum of the cross entropies; of questions, of the means of start's and end's over each
// sequence's tokens.
Tensor loss_sum(const std::string& head, const Tensor& logits, const Batch& batch) {
  if (head != heads::question_answering) return nn::cross_entropy(logits, batch.at("labels")).sum;
  const Tensor bounds = batch.at("cu_seqlens");
  Tensor sum = at::zeros({}, logits.options());
  for (int64_t b = 0; b + 1 < bounds.numel(); ++b) {
    const Tensor scores = logits.slice(0, bounds[b].item<int64_t>(), bounds[b + 1].item<int64_t>()).t();
    sum = sum + at::cross_entropy_loss(scores, at::stack({batch.at("starts")[b], batch.at("ends")[b]}));
  }
  return sum;
}

class FamilyGolden : public ::testing::TestWithParam<FamilyCase> {};

TEST_P(FamilyGolden, LogitsLossAndEveryGradient) {
  const auto& [name, head, wide] = GetParam();
  const std::string precision = wide ? "fp64" : "fp32";
  const double tolerance = wide ? 1e-11 : 1e-5;
  const std::filesystem::path folder = families / name;
  const auto golden = SafetensorsFile(folder / "golden.safetensors").load_all();
  const auto model =
      make_text_model(bundled_models(), head, read_config_json(folder / "config.json"), "config.json");
  const WeightReport report = load_weights(*model, folder);
  EXPECT_THAT(report.missing, IsEmpty());
  EXPECT_THAT(report.unexpected, IsEmpty());
  EXPECT_EQ(trained_labels(bundled_models(), head, folder)->size(), model->labels().size());
  model->to(wide ? at::kDouble : at::kFloat);
  const Batch batch = packed_batch(golden);
  const Tensor logits = model->forward(batch, {});
  const Tensor loss = loss_sum(head, logits, batch);
  expect_golden_pass(*model, logits, loss, golden, precision, tolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Heads, FamilyGolden,
    ::testing::Values(FamilyCase{"roberta/sequence", heads::sequence_classification, true},
                      FamilyCase{"roberta/sequence", heads::sequence_classification, false},
                      FamilyCase{"roberta/token", heads::token_classification, true},
                      FamilyCase{"roberta/token", heads::token_classification, false},
                      FamilyCase{"distilbert/sequence", heads::sequence_classification, true},
                      FamilyCase{"distilbert/sequence", heads::sequence_classification, false},
                      FamilyCase{"distilbert/token", heads::token_classification, true},
                      FamilyCase{"distilbert/token", heads::token_classification, false},
                      FamilyCase{"roberta/qa", heads::question_answering, true},
                      FamilyCase{"roberta/qa", heads::question_answering, false},
                      FamilyCase{"distilbert/qa", heads::question_answering, true},
                      FamilyCase{"distilbert/qa", heads::question_answering, false},
                      FamilyCase{"electra/sequence", heads::sequence_classification, true},
                      FamilyCase{"electra/sequence", heads::sequence_classification, false},
                      FamilyCase{"electra/token", heads::token_classification, true},
                      FamilyCase{"electra/token", heads::token_classification, false},
                      FamilyCase{"electra/qa", heads::question_answering, true},
                      FamilyCase{"electra/qa", heads::question_answering, false}));

// Reading a folder that was written here returns the values written.
TEST_P(FamilyGolden, ConfigJsonIsReadAgain) {
  const auto& [name, head, wide] = GetParam();
  const nlohmann::json json = read_config_json(families / name / "config.json");
  const auto model = make_text_model(bundled_models(), head, json, "config.json");
  const nlohmann::json written = model->config_json(json);
  EXPECT_EQ(written.at("architectures"), json.at("architectures"));
  EXPECT_EQ(make_text_model(bundled_models(), head, written, "config.json")->config_json({}),
            model->config_json({}));
}

// A different value of the same type that configurations allow.
nlohmann::json changed(const nlohmann::json& value) {
  if (value.is_string()) return "relu";
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number_float()) return value.get<double>() / 2;
  return value == 0 ? 1 : 2 * value.get<int64_t>();
}

// Each key of config.json is independent: changing it changes only that key of the file that is written.
TEST(FamilyConfig, EachKeyIsReadAndWrittenByItself) {
  const auto written = [](const nlohmann::json& json) {
    const auto& heads = bundled_models().at(json.at("model_type").get<std::string>(), "model_type").heads;
    return heads.begin()->second.make(json, "config.json", {})->config_json({});
  };
  const nlohmann::json tiny = {{"vocab_size", 8},
                               {"hidden_size", 8},
                               {"num_hidden_layers", 1},
                               {"intermediate_size", 4},
                               {"dim", 8},
                               {"hidden_dim", 4},
                               {"n_layers", 1},
                               {"num_attention_heads", 2},
                               {"n_heads", 2},
                               {"d_model", 8},
                               {"encoder_layers", 1},
                               {"encoder_ffn_dim", 4},
                               {"decoder_ffn_dim", 4},
                               {"decoder_layers", 1},
                               {"encoder_attention_heads", 2},
                               {"embedding_size", 4},
                               {"max_position_embeddings", 16},
                               {"decoder_attention_heads", 2}};
  // Decoders refuse the keys of other families.
  const nlohmann::json tiny_gpt2 = {{"vocab_size", 8}, {"n_embd", 8},  {"n_layer", 1},
                                    {"n_head", 2},     {"n_inner", 4}, {"n_positions", 16}};
  const nlohmann::json tiny_llama = {{"vocab_size", 8},
                                     {"hidden_size", 8},
                                     {"num_hidden_layers", 1},
                                     {"intermediate_size", 4},
                                     {"num_attention_heads", 2},
                                     {"num_key_value_heads", 1},
                                     {"max_position_embeddings", 16}};
  const std::map<std::string, nlohmann::json> decoders = {
      {"gpt2", tiny_gpt2}, {"llama", tiny_llama}, {"mistral", tiny_llama}};
  for (const char* type :
       {"bert", "roberta", "xlm-roberta", "electra", "distilbert", "bart", "gpt2", "llama", "mistral"}) {
    nlohmann::json json = decoders.contains(type) ? decoders.at(type) : tiny;
    json["model_type"] = type;
    const nlohmann::json before = written(json);
    int keys = 0;
    for (const auto& [key, value] : before.items()) {
      if (key == "model_type" || key == "problem_type" || value.is_structured()) continue;
      nlohmann::json wanted = before;
      wanted[key] = changed(value);
      EXPECT_EQ(written(wanted), wanted) << type << ": " << key;
      ++keys;
    }
    EXPECT_GE(keys, 13) << type;
  }
}

TEST(ModelRegistry, MissingHeadsAreRefusedWithAListOfHeads) {
  const auto refusal = [](const char* type, const std::string& head) {
    return message_of<ConfigError>([&] {
      make_text_model(bundled_models(), head, {{"model_type", type}}, "config.json");
    });
  };
  EXPECT_THAT(refusal("bart", heads::token_classification),
              has_all("config.json: model_type: \"bart\"", "no head for TokenClassification",
                      "its heads: SequenceClassification"));
  EXPECT_THAT(refusal("bert", "CausalLM"),
              HasSubstr("its heads: QuestionAnswering, SequenceClassification, TokenClassification"));
}

// XLM-RoBERTa is RoBERTa under other names, so roberta's references apply to it.
TEST(Roberta, ConfigJsonKeepsTheFamily) {
  nlohmann::json json = read_config_json(roberta_folder / "sequence/config.json");
  for (const auto& [type, prefix] : {std::pair{"roberta", "RobertaFor"}, {"xlm-roberta", "XLMRobertaFor"}}) {
    for (const auto& [head, suffix] : {std::pair{heads::sequence_classification, "SequenceClassification"},
                                       {heads::token_classification, "TokenClassification"},
                                       {heads::question_answering, "QuestionAnswering"}}) {
      json["model_type"] = type;
      const auto model = make_text_model(bundled_models(), head, json, "config.json");
      EXPECT_EQ(model->config_json({}).at("model_type"), type);
      EXPECT_EQ(model->config_json({}).at("architectures"), nlohmann::json({std::string(prefix) + suffix}));
      EXPECT_EQ(model->limits().max_length, 48) << "of 50 positions, which begin at 2";
    }
  }
}

TEST(Roberta, PositionsThatDoNotExistAreRefused) {
  nlohmann::json json = read_config_json(roberta_folder / "sequence/config.json");
  json["max_position_embeddings"] = 2;
  EXPECT_THAT(message_of<ConfigError>([&] { BertConfig::from_json(json, "config.json"); }),
              HasSubstr("max_position_embeddings (2) must exceed pad_token_id + 1 (2)"));
}

// The names that config.json may have, which are checked without libtorch, are those that layers know.
TEST(Activations, EveryNameOfAConfigIsALayers) {
  for (const std::string_view name : activation_names) EXPECT_NO_THROW(nn::activation(std::string(name)));
  EXPECT_THROW(nn::activation("mish"), ConfigError);
}

}  // namespace
}  // namespace stretto
