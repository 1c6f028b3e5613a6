// Tests the values of models' parameters from folders and seeds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/heads.h"
#include "stretto/models/registry.h"
#include "stretto/nn/parameter_values.h"
#include "stretto/tensor/region_fixture.h"

namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::filesystem::path golden_models = std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden";

struct FolderCase {
  const char* folder;
  std::string head;
};

class FolderWeights : public ::testing::TestWithParam<FolderCase> {
 protected:
  std::shared_ptr<TextModel> make() const {
    const auto file = folder_ / "config.json";
    return make_text_model(bundled_models(), GetParam().head, read_config_json(file), file.string());
  }
  // The parts of all parameters equal those of a model that has all values.
  static void expect_parts(const TextModel& model, const TensorSource& source) {
    std::mt19937 random(3);
    for (const auto& item : model.named_parameters()) {
      ASSERT_TRUE(source.has(item.key())) << item.key();
      const Tensor whole = item.value().detach();
      for (int i = 0; i < 3; ++i) {
        const Region region = random_region(whole.sizes(), random);
        const Tensor values = at::empty({region.elements()}, at::kDouble);
        source.read(item.key(), region, values);
        EXPECT_TRUE(values.equal(part_of(whole, region).to(at::kDouble))) << item.key();
      }
    }
  }

  const std::filesystem::path folder_ = golden_models / GetParam().folder;
};

TEST_P(FolderWeights, AreEqualReadInPartsOrAsAWhole) {
  const auto model = make();
  const ModelWeights weights = open_weights(*model, folder_);
  EXPECT_THAT(weights.report.missing, IsEmpty());
  nn::drop_values(*model, *weights.values, at::kCPU);
  load_weights(*model, folder_);
  expect_parts(*model, *weights.values);
}

TEST_P(FolderWeights, InitialValuesAreEqualDrawnInPartsOrAsAWhole) {
  const auto model = make();
  const auto values = initial_values(*model, 5);
  nn::drop_values(*model, *values, at::kCPU);
  nn::fill_parameters(*model, *values);
  expect_parts(*model, *values);
}

INSTANTIATE_TEST_SUITE_P(
    Families, FolderWeights,
    ::testing::Values(FolderCase{"bert/gelu", heads::sequence_classification},
                      FolderCase{"bert/sharded", heads::sequence_classification},
                      FolderCase{"bert_heads/token", heads::token_classification},
                      FolderCase{"roberta/sequence", heads::sequence_classification},
                      FolderCase{"electra/qa", heads::question_answering},
                      FolderCase{"distilbert/token", heads::token_classification},
                      FolderCase{"distilbert/qa", heads::hidden_states},
                      FolderCase{"bart/gelu", heads::sequence_classification},
                      FolderCase{"gpt2/sharded", heads::causal_language_model},
                      FolderCase{"gpt2/old_names", heads::causal_language_model},
                      FolderCase{"gpt2/untied", heads::causal_language_model},
                      FolderCase{"llama/tied", heads::causal_language_model},
                      FolderCase{"llama/biases", heads::causal_language_model},
                      FolderCase{"llama/qwen3", heads::causal_language_model},
                      FolderCase{"sequence_tagger/lstm_crf", heads::token_classification},
                      FolderCase{"sequence_tagger/gru", heads::token_classification},
                      FolderCase{"sequence_tagger/transformer/tagger", heads::token_classification}));

// A transformer in a tagger has the same initial values as a separate one.
TEST(InitialValuesOfATagger, EqualThoseOfItsTransformer) {
  const auto file = golden_models / "sequence_tagger/transformer/tagger/config.json";
  const auto tagger =
      make_text_model(bundled_models(), heads::token_classification, read_config_json(file), file.string());
  nn::fill_parameters(*tagger, *initial_values(*tagger, 9));
  const auto encoder = make_text_model(bundled_models(), heads::hidden_states,
                                       read_config_json(file).at("transformer"), file.string());
  nn::fill_parameters(*encoder, *initial_values(*encoder, 9));
  const auto parameters = tagger->named_parameters();
  for (const auto& item : encoder->named_parameters())
    EXPECT_TRUE(item.value().equal(parameters["transformer." + item.key()])) << item.key();
}

TEST(ModelWeights, AnotherShapeIsNamed) {
  const auto file = golden_models / "bert/gelu/config.json";
  nlohmann::json config = read_config_json(file);
  config["vocab_size"] = 7;
  const auto model = make_text_model(bundled_models(), heads::sequence_classification, config, file.string());
  EXPECT_THAT(message_of<DataError>([&] { open_weights(*model, golden_models / "bert/gelu"); }),
              AllOf(HasSubstr("bert.embeddings.word_embeddings.weight has shape ["),
                    HasSubstr("], expected [7, "), HasSubstr("config.json and the weights do not match")));
}

TEST(InitRule, BiasesNormsAndThePaddingRow) {
  const auto file = golden_models / "bert/gelu/config.json";
  const auto model = make_text_model(bundled_models(), heads::sequence_classification, read_config_json(file),
                                     file.string());
  nn::fill_parameters(*model, *initial_values(*model, 1));
  const auto parameters = model->named_parameters();
  for (const auto& item : parameters) {
    const Tensor& values = item.value();
    if (item.key().ends_with("LayerNorm.weight")) {
      EXPECT_TRUE(values.eq(1).all().item<bool>()) << item.key();
    } else if (item.key().ends_with(".bias")) {
      EXPECT_TRUE(values.eq(0).all().item<bool>()) << item.key();
    } else {
      EXPECT_NEAR(values.std().item<double>(), 0.02, 0.004) << item.key();
    }
  }
  const Tensor words = parameters["bert.embeddings.word_embeddings.weight"];
  EXPECT_TRUE(words[0].eq(0).all().item<bool>());
  EXPECT_FALSE(words[1].eq(0).any().item<bool>());
}

}  // namespace
}  // namespace stretto
