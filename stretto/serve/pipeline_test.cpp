#include "stretto/serve/pipeline.h"

#include <latch>
#include <limits>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/model_config/config_json.h"
#include "stretto/tensor/safetensors.h"

namespace stretto::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

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
    return message_of([&] { load(); });
  }

  TempFolder folder;
  nlohmann::json config;
  NamedTensors weights;
};

TEST(Pipeline, RecordsOfATextClassifier) {
  const ModelFolder model;
  const auto pipeline = model.load();
  EXPECT_EQ(pipeline->input_kind(), InputKind::text_or_pair);
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

TEST(Pipeline, ATruncatedTextIsMarked) {
  const ModelFolder model;
  const auto words = model.config.at("max_position_embeddings").get<int>() - 2;  // besides [CLS] and [SEP]
  std::string longest = "w5";
  for (int i = 1; i < words; ++i) longest += " w6";
  const auto pipeline = model.load();
  const auto whole = pipeline->predict(std::vector<PipelineInput>{{longest}}, "label").at(0);
  const auto truncated = pipeline->predict(std::vector<PipelineInput>{{longest + " w7"}}, "label").at(0);
  EXPECT_FALSE(whole.contains("truncated"));
  EXPECT_EQ(truncated.at("truncated"), true);
  EXPECT_EQ(truncated.at("score"), whole.at("score"));
}

TEST(Pipeline, AModelOfPairsReadsBothTexts) {
  ModelFolder model;
  write_text_pairs(model.config, true);
  const auto pipeline = model.load();
  EXPECT_EQ(pipeline->input_kind(), InputKind::text_pair);
  const std::vector<PipelineInput> inputs = {{"w5", "w6"}, {"w5", "w7"}};
  const auto records = pipeline->predict(inputs, "logits");
  EXPECT_EQ(records[0].at("text_pair"), "w6");
  EXPECT_NE(records[0].at("logits"), records[1].at("logits"));
}

// The model's folder does not state what it was trained on, like folders of other programs.
TEST(Pipeline, AModelOfUnknownInputsReadsTextsAndPairs) {
  ModelFolder model;
  const auto silent = model.load();
  write_text_pairs(model.config, true);
  const auto pairs = model.load();
  const std::vector<PipelineInput> inputs = {{"w5", "w6"}, {"w5"}};
  const auto records = silent->predict(inputs, "logits");
  EXPECT_EQ(silent->predict({inputs.data(), 1}, "logits"), pairs->predict({inputs.data(), 1}, "logits"));
  EXPECT_FALSE(records[1].contains("text_pair"));
  EXPECT_NE(records[0].at("logits"), records[1].at("logits"));
  write_text_pairs(model.config, false);
  EXPECT_EQ(model.load()->input_kind(), InputKind::text);
}

TEST(Pipeline, TheBestClassesOfAText) {
  const ModelFolder model;
  const std::vector<PipelineInput> inputs = {{"w5 w6"}};
  const auto best = model.load()->predict(inputs, "label")[0];
  const auto scores = model.load()->predict(inputs, "scores")[0].at("scores");
  const auto all = model.load({.top_k = 1000})->predict(inputs, "label")[0].at("classes");
  ASSERT_EQ(all.size(), scores.size());
  EXPECT_EQ(all[0].at("label"), best.at("label"));
  EXPECT_EQ(all[0].at("score"), best.at("score"));
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].at("score"), scores.at(all[i].at("label").get<std::string>()));
    if (i == 0) continue;
    EXPECT_LE(all[i].at("score").get<double>(), all[i - 1].at("score").get<double>());
  }
  const auto one = model.load({.top_k = 1});
  EXPECT_EQ(one->predict(inputs, "pipeline")[0], nlohmann::ordered_json::array({all[0]}));
  EXPECT_EQ(model.load()->predict(inputs, "pipeline")[0], all[0]);
}

// The error comes before weights are read: the folder has none.
TEST(Pipeline, OptionsOfAnotherTaskAreRefusedFirst) {
  const ModelFolder model;
  model.load();
  std::filesystem::remove(model.folder.path() / "model.safetensors");
  const auto error = [&](const PipelineOptions& options) {
    return message_of<ConfigError>([&] { load_pipeline(model.folder.path(), options); });
  };
  EXPECT_THAT(error({.aggregation_strategy = "first"}),
              StartsWith("aggregation_strategy is for token-classification; the model in "));
  EXPECT_THAT(error({.aggregation_strategy = "first"}), HasSubstr(" does text-classification"));
  EXPECT_THAT(
      error({.aggregation_strategy = "first", .names = {{"aggregation_strategy", "--aggregation-strategy"}}}),
      StartsWith("--aggregation-strategy is for token-classification"));
  write_file_atomic(model.folder.path() / "config.json",
                    R"({"model_type": "bert", "architectures": ["BertForTokenClassification"]})");
  EXPECT_THAT(error({.top_k = 2}),
              StartsWith("top_k is for text-classification and question-answering; the model in "));
  write_file_atomic(model.folder.path() / "config.json",
                    R"({"model_type": "bert", "architectures": ["BertForQuestionAnswering"]})");
  EXPECT_THAT(error({.top_k = 1001}), StartsWith("top_k: question answering gives from 1 to 1000 answers"));
}

TEST(Pipeline, SplitWordsHaveOffsetsInTheirText) {
  ModelFolder model;
  model.config["architectures"] = {"BertForTokenClassification"};
  model.config["id2label"] = {{"0", "O"}, {"1", "B-PER"}};
  const auto hidden = model.config.at("hidden_size").get<int64_t>();
  at::manual_seed(2);
  model.weights["classifier.weight"] = at::randn({2, hidden});
  const auto pipeline = model.load({.aggregation_strategy = "none"});
  // "é" is one code point of two bytes.
  const std::vector<PipelineInput> inputs = {
      {"é w5 w6", std::nullopt, std::vector<std::string>{"é", "w5", "w6"}}, {"é w5 w6"}};
  const auto split = pipeline->predict({inputs.data(), 1}, "scores");
  EXPECT_EQ(split, pipeline->predict({&inputs[1], 1}, "scores"));
  ASSERT_EQ(split[0].at("tokens").size(), 3);
  EXPECT_EQ(split[0].at("tokens")[2].at("start"), 5);
  EXPECT_EQ(split[0].at("tokens")[2].at("end"), 7);
}

TEST(Pipeline, AQuestionsAnswerDoesNotDependOnItsBatch) {
  ModelFolder model;
  model.config["architectures"] = {"BertForQuestionAnswering"};
  const auto hidden = model.config.at("hidden_size").get<int64_t>();
  at::manual_seed(1);
  model.weights["qa_outputs.weight"] = at::randn({2, hidden});
  model.weights["qa_outputs.bias"] = at::zeros({2});
  const auto pipeline = model.load({.top_k = 3});
  const std::vector<PipelineInput> inputs = {{"w5 w6", "w7 w8 w9"}, {"w7", "w10 w5 w6 w11 w8"}};
  const auto together = pipeline->predict(inputs, "label");
  ASSERT_EQ(together.size(), 2);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto alone = pipeline->predict({&inputs[i], 1}, "label").front();
    ASSERT_EQ(together[i].at("answers").size(), 3);
    double before = 1;
    for (size_t k = 0; k < 3; ++k) {
      const auto &found = together[i].at("answers")[k], &wanted = alone.at("answers")[k];
      const double score = found.at("score").get<double>();
      EXPECT_EQ(found.at("start"), wanted.at("start"));
      EXPECT_EQ(found.at("end"), wanted.at("end"));
      EXPECT_NEAR(score, wanted.at("score").get<double>(), 1e-5);
      EXPECT_LE(score, before);
      before = score;
    }
  }
}

// Threads that share a pipeline get the results of a single thread, also while the first of them loads the
// tokenizer of words.
TEST(Pipeline, ThreadsShareAPipeline) {
  struct Case {
    std::string architecture, output;
    std::vector<PipelineInput> inputs;
  };
  const std::vector<std::string> words = {"w5", "w6", "w9"};
  const std::vector<Case> cases = {
      {"BertForSequenceClassification", "logits", {{"w5 w6"}, {"w7", "w8 w5"}, {"w9 w9 w5 w6 w7"}}},
      {"BertForTokenClassification", "logits", {{"w5 w6 w9", std::nullopt, words}, {"w7"}, {"w8 w5 w6"}}},
      {"BertForQuestionAnswering", "label", {{"w5 w6", "w7 w8 w9"}, {"w7", "w10 w5 w6 w11 w8"}}}};
  ModelFolder model;
  const auto hidden = model.config.at("hidden_size").get<int64_t>();
  at::manual_seed(3);
  model.weights["qa_outputs.weight"] = at::randn({2, hidden});
  model.weights["qa_outputs.bias"] = at::zeros({2});
  for (const Case& task : cases) {
    SCOPED_TRACE(task.architecture);
    model.config["architectures"] = {task.architecture};
    std::vector<nlohmann::ordered_json> expected;
    for (const auto alone = model.load(); const PipelineInput& input : task.inputs)
      expected.push_back(alone->predict({&input, 1}, task.output).front());
    const auto shared = model.load();
    constexpr size_t threads = 4, rounds = 10;
    std::vector<std::vector<nlohmann::ordered_json>> found(threads);
    std::latch start(threads);
    std::vector<std::jthread> running;
    for (size_t thread = 0; thread < threads; ++thread) {
      running.emplace_back([&, thread] {
        start.arrive_and_wait();
        for (size_t round = 0; round < rounds; ++round) {
          const PipelineInput& input = task.inputs[(thread + round) % task.inputs.size()];
          found[thread].push_back(shared->predict({&input, 1}, task.output).front());
        }
      });
    }
    running.clear();
    for (size_t thread = 0; thread < threads; ++thread) {
      ASSERT_EQ(found[thread].size(), rounds);
      for (size_t round = 0; round < rounds; ++round)
        EXPECT_EQ(found[thread][round], expected[(thread + round) % task.inputs.size()]);
    }
  }
}

TEST(Pipeline, ComputesInBf16) {
  const ModelFolder model;
  const std::vector<PipelineInput> inputs = {{"w5 w6"}, {"w7 w8 w9"}};
  const auto exact = model.load()->predict(inputs, "logits"),
             rounded = model.load({.dtype = at::kBFloat16})->predict(inputs, "logits");
  bool differ = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto wanted = exact[i].at("logits").get<std::vector<double>>(),
               found = rounded[i].at("logits").get<std::vector<double>>();
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t k = 0; k < found.size(); ++k) EXPECT_NEAR(found[k], wanted[k], 0.05);
    differ |= found != wanted;
  }
  EXPECT_TRUE(differ);
}

TEST(Pipeline, WeightsThatAreNotFiniteAreRefusedUnlessAllowed) {
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

TEST(Pipeline, RefusesModelsWithoutAKnownHead) {
  ModelFolder model;
  model.config["architectures"] = {"BertModel"};
  EXPECT_THAT(model.error(), has_all("config.json: architectures: \"BertModel\"", "without a head",
                                     "(...ForSequenceClassification, ...ForTokenClassification, ",
                                     "...ForQuestionAnswering, ...ForCausalLM)"));
  model.config["architectures"] = {"BertForSequenceClasification"};
  EXPECT_THAT(model.error(), has_all("\"SequenceClasification\"", "not a model head",
                                     "did you mean \"SequenceClassification\"?"));
  model.config["architectures"] = {"BertForSequenceClassification"};
  model.weights.erase("classifier.weight");
  EXPECT_THAT(model.error(), HasSubstr("the weights lack classifier.weight; fine-tune"));
}

}  // namespace
}  // namespace stretto::serve
