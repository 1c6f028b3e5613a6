#include "stretto/serve/pipeline.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/temp_folder.h"
#include "stretto/models/config_json.h"
#include "stretto/tensor/safetensors.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path golden = std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/bert/gelu";

// A copy of a golden model with a vocabulary, which tests may modify.
struct ModelFolder {
  ModelFolder()
      : config(read_json(golden / "config.json")),
        weights(SafetensorsFile(golden / "model.safetensors").load_all()) {
    std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (int i = 5; i < config.at("vocab_size").get<int>(); ++i) vocabulary += fmt::format("w{}\n", i);
    write_file_atomic(folder.path() / "vocab.txt", vocabulary);
  }

  std::unique_ptr<Pipeline> load(const PipelineOptions& options = {}) const {
    write_file_atomic(folder.path() / "config.json", config.dump());
    save_safetensors(folder.path() / "model.safetensors", weights);
    return load_pipeline(folder.path(), options);
  }

  std::string error() const {
    try {
      load();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  TempFolder folder;
  nlohmann::json config;
  NamedTensors weights;
};

TEST(Pipeline, RecordsOfATextClassifier) {
  const ModelFolder model;
  const auto pipeline = model.load();
  EXPECT_FALSE(pipeline->takes_pairs());
  const std::vector<PipelineInput> inputs = {{"w5 w6"}, {"w7"}};
  const auto labels = pipeline->predict(inputs, "label"), scores = pipeline->predict(inputs, "scores"),
             logits = pipeline->predict(inputs, "logits");
  ASSERT_EQ(labels.size(), 2);
  EXPECT_EQ(labels[1].at("text"), "w7");
  double sum = 0, best = 0;
  for (const auto& [label, score] : scores[0].at("scores").items()) {
    sum += score.get<double>();
    best = std::max(best, score.get<double>());
  }
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_EQ(labels[0].at("score").get<double>(), best);
  EXPECT_EQ(logits[0].at("logits").size(), scores[0].at("scores").size());
  EXPECT_THROW(pipeline->predict(inputs, "vectors"), ConfigError);
}

TEST(Pipeline, AModelOfPairsReadsBothTexts) {
  ModelFolder model;
  write_text_pairs(model.config, true);
  const auto pipeline = model.load();
  EXPECT_TRUE(pipeline->takes_pairs());
  const std::vector<PipelineInput> inputs = {{"w5", "w6"}, {"w5", "w7"}};
  const auto records = pipeline->predict(inputs, "logits");
  EXPECT_EQ(records[0].at("text_pair"), "w6");
  EXPECT_NE(records[0].at("logits"), records[1].at("logits"));
}

TEST(Pipeline, WeightsThatAreNotFiniteAreRefusedUnlessAskedFor) {
  ModelFolder model;
  model.weights.at("bert.pooler.dense.weight")[1][2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(model.error(), HasSubstr("bert.pooler.dense.weight holds NaN or infinity"));
  const std::vector<PipelineInput> inputs = {{"w5"}};
  EXPECT_TRUE(model.load({.allow_nonfinite = true})->predict(inputs, "label")[0].at("score").is_number());
}

TEST(Pipeline, LogitsThatAreNotFiniteAreRefused) {
  ModelFolder model;
  model.weights.at("classifier.weight").fill_(std::numeric_limits<float>::max());
  const auto pipeline = model.load();
  const std::vector<PipelineInput> inputs = {{"w5"}};
  EXPECT_THROW(pipeline->predict(inputs, "label"), DataError);
}

TEST(Pipeline, RefusesModelsWithoutAHeadItKnows) {
  ModelFolder model;
  model.config["architectures"] = {"BertModel"};
  EXPECT_THAT(model.error(),
              HasSubstr("config.json: architectures: \"BertModel\" is a model without a head; expected a "
                        "fine-tuned one (...ForSequenceClassification, ...ForTokenClassification, "
                        "...ForQuestionAnswering)"));
  model.config["architectures"] = {"BertForSequenceClasification"};
  EXPECT_THAT(model.error(),
              HasSubstr("\"SequenceClasification\" is not a model head that stretto has; did you mean "
                        "\"SequenceClassification\"?"));
  model.config["architectures"] = {"BertForSequenceClassification"};
  model.weights.erase("classifier.weight");
  EXPECT_THAT(model.error(), HasSubstr("the weights lack classifier.weight; fine-tune"));
}

}  // namespace
}  // namespace stretto
