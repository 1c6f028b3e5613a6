#include "stretto/models/bert/model.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/heads.h"
#include "stretto/models/golden_support.h"
#include "stretto/models/registry.h"
#include "stretto/nn/parameter_values.h"

namespace stretto {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::filesystem::path golden_folder = std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/bert";

std::shared_ptr<BertForSequenceClassification> load_case(const std::string& name) {
  auto model =
      std::make_shared<BertForSequenceClassification>(BertConfig::read(golden_folder / name / "config.json"));
  EXPECT_THAT(load_weights(*model, golden_folder / name).missing, ElementsAre());
  return model;
}

struct Golden {
  const char* name;
  const char* precision;
  at::ScalarType dtype;
  double tolerance;
};

class BertGolden : public ::testing::TestWithParam<Golden> {};

TEST_P(BertGolden, LogitsLossAndEveryGradient) {
  const auto [name, precision, dtype, tolerance] = GetParam();
  const auto golden = SafetensorsFile(golden_folder / name / "golden.safetensors").load_all();
  const auto model = load_case(name);
  model->to(dtype);
  const Batch batch = packed_batch(golden);
  const Tensor logits = model->forward(batch, {});
  const Loss loss = nn::cross_entropy(logits, batch.at("labels"));
  expect_golden_pass(*model, logits, loss.sum, golden, precision, tolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BertGolden,
    ::testing::Values(Golden{"gelu", "fp64", at::kDouble, 1e-11}, Golden{"gelu", "fp32", at::kFloat, 1e-5},
                      Golden{"gelu_new", "fp64", at::kDouble, 1e-11},
                      Golden{"gelu_new", "fp32", at::kFloat, 1e-5},
                      Golden{"relu_odd", "fp64", at::kDouble, 1e-11},
                      Golden{"relu_odd", "fp32", at::kFloat, 1e-5},
                      Golden{"silu", "fp64", at::kDouble, 1e-11}, Golden{"silu", "fp32", at::kFloat, 1e-5},
                      Golden{"pairs", "fp64", at::kDouble, 1e-11}, Golden{"pairs", "fp32", at::kFloat, 1e-5},
                      Golden{"large", "fp64", at::kDouble, 1e-11}, Golden{"large", "fp32", at::kFloat, 1e-5}),
    [](const auto& info) { return std::string(info.param.name) + "_" + info.param.precision; });

TEST(BertWeights, OldNamesAndMissingHead) {
  BertForSequenceClassification model(BertConfig::read(golden_folder / "old_names/config.json"));
  const WeightReport report = load_weights(model, golden_folder / "old_names");
  EXPECT_THAT(report.missing, ElementsAre("classifier.bias", "classifier.weight"));
  EXPECT_THAT(report.unexpected, ElementsAre());
}

TEST(BertWeights, AParameterDependsOnSeedAndNameOnly) {
  const BertConfig config = BertConfig::read(golden_folder / "gelu/config.json");
  BertForSequenceClassification all(config), one(config);
  nn::fill_parameters(all, *initial_values(all, 3));
  const Tensor drawn = one.named_parameters()["classifier.weight"];
  nn::fill_parameter("classifier.weight", drawn, {drawn.sizes().vec()}, *initial_values(one, 3));
  EXPECT_TRUE(drawn.equal(all.named_parameters()["classifier.weight"]));
  EXPECT_GT(drawn.std().item<double>(), 0);
  nn::fill_parameters(all, *initial_values(all, 4));
  EXPECT_FALSE(drawn.equal(all.named_parameters()["classifier.weight"]));
}

TEST(BertWeights, ShardedFolder) {
  BertForSequenceClassification model(BertConfig::read(golden_folder / "sharded/config.json"));
  EXPECT_THAT(load_weights(model, golden_folder / "sharded").missing, ElementsAre());
}

// "+a" before and "-a" after the backward of block a.
struct BackwardRecorder : nn::BlockObserver {
  void before_backward(nn::Block& block) override { events.push_back("+" + block.path()); }
  void after_backward(nn::Block& block) noexcept override { events.push_back("-" + block.path()); }
  std::vector<std::string> events;
};

TEST(Bert, TheModelItsEmbeddingsAndItsLayersAreBlocks) {
  const nlohmann::json config = read_config_json(golden_folder / "gelu/config.json");
  const auto model = make_text_model(bundled_models(), heads::sequence_classification, config, "config.json",
                                     {.dropout = 0.1});
  load_weights(*model, golden_folder / "gelu");
  BackwardRecorder recorder;
  std::vector<std::string> paths;
  for (nn::Block* block : nn::collect_blocks(*model)) {
    paths.push_back(block->path());
    block->observe(&recorder);
  }
  EXPECT_THAT(paths, ElementsAre("", "bert.embeddings", "bert.encoder.layer.0", "bert.encoder.layer.1"));
  const Batch batch = packed_batch(SafetensorsFile(golden_folder / "gelu/golden.safetensors").load_all());
  model->forward(batch, {.training = true}).sum().backward();
  // The model and its embeddings have no argument that requires grad: both end when backward ends, in the
  // order in which they began.
  EXPECT_THAT(recorder.events,
              ElementsAre("+", "+bert.encoder.layer.1", "-bert.encoder.layer.1", "+bert.encoder.layer.0",
                          "-bert.encoder.layer.0", "+bert.embeddings", "-", "-bert.embeddings"));
}

TEST(BertConfig, UnsupportedSettingsAreRefused) {
  const auto error_of = [](const char* text) {
    return message_of<ConfigError>(
        [&] { BertConfig::from_json(nlohmann::json::parse(text), "config.json"); });
  };
  EXPECT_THAT(error_of(R"({"model_type": "gpt2"})"),
              has_all("config.json: model_type: \"gpt2\"", "only \"bert\" is"));
  EXPECT_THAT(error_of(R"({"hidden_size": 30, "num_attention_heads": 4})"),
              HasSubstr("(30) must be a multiple"));
  EXPECT_THAT(error_of(R"({"hidden_size": "x"})"),
              HasSubstr("hidden_size: found \"x\"; expected an integer from 1 to"));
  EXPECT_THAT(error_of(R"({"hidden_dropout_prob": 1.0})"), HasSubstr("hidden_dropout_prob: found 1.0"));
  EXPECT_THAT(error_of(R"({"id2label": {"0": "a", "2": "b"}})"), HasSubstr("without gaps"));
}

// Sizes are checked before anything is allocated.
TEST(BertConfig, RefusesAbsurdSizes) {
  const auto error_of = [](const char* text) {
    return message_of<ConfigError>([&] {
      make_text_model(bundled_models(), heads::sequence_classification, nlohmann::json::parse(text),
                      "config.json");
    });
  };
  EXPECT_THAT(error_of(R"({"model_type": "bert", "num_hidden_layers": 1099511627776})"),
              has_all("num_hidden_layers: found 1099511627776", "from 0 to 10000"));
  EXPECT_THAT(error_of(R"({"model_type": "bert", "num_labels": 1099511627776})"),
              HasSubstr("num_labels: found 1099511627776"));
  EXPECT_THAT(error_of(R"({"model_type": "bert", "vocab_size": 18446744073709551615})"),
              HasSubstr("vocab_size: found 18446744073709551615"));
  EXPECT_THAT(error_of(R"({"model_type": "bert", "vocab_size": 16777216, "hidden_size": 16777216,
                           "num_attention_heads": 1})"),
              has_all("vocab_size 16777216 x hidden_size 16777216", "more than 2^40 parameters"));
  EXPECT_THAT(error_of(R"({"model_type": "bert", "num_hidden_layers": 1000, "hidden_size": 30000})"),
              HasSubstr("num_hidden_layers 1000 x hidden_size 30000"));
}

TEST(ModelRegistry, UnknownTypesAreRefusedWithTheKnownOnes) {
  const auto error_of = [](const char* text) {
    return message_of<ConfigError>([&] {
      make_text_model(bundled_models(), heads::sequence_classification, nlohmann::json::parse(text),
                      "m/config.json");
    });
  };
  const char* known =
      "bert, roberta, xlm-roberta, electra, distilbert, bart, gpt2, llama, mistral, qwen2, qwen3, "
      "sequence-tagger";
  EXPECT_THAT(
      error_of(R"({"model_type": "bertt"})"),
      has_all("m/config.json: model_type: \"bertt\"", "not a model_type", "did you mean \"bert\"?", known));
  EXPECT_THAT(error_of("{}"), has_all("m/config.json: ", "model_type is missing", known));
  EXPECT_THAT(error_of("[]"), has_all("m/config.json: ", "a JSON object", "found array"));
}

TEST(ModelConfigJson, FilesBeyondAnyConfigurationAreNotParsed) {
  const TempFolder folder;
  std::ofstream(folder.path() / "config.json") << std::string(17 << 20, ' ');
  EXPECT_THROW(read_config_json(folder.path() / "config.json"), ConfigError);
}

// The last layer skips unused rows; dropout and all other results are unchanged.
TEST(Bert, FirstTokensEqualThoseOfTheWholeForward) {
  for (const auto kernels : {nn::Kernels::fast, nn::Kernels::reference}) {
    BertConfig config = BertConfig::read(golden_folder / "gelu/config.json");
    config.set_dropout(0.2);
    BertModel model(config);
    model.to(at::kDouble);
    at::manual_seed(3);
    for (Tensor& parameter : model.parameters()) parameter.detach().normal_(0, 0.3);
    const Batch batch = packed_batch(SafetensorsFile(golden_folder / "gelu/golden.safetensors").load_all());
    const nn::PackedLayout layout(batch);
    const nn::Context context = {.training = true, .key = 4, .kernels = kernels};
    const Tensor whole = model.forward(batch, layout, context).index_select(0, layout.first_rows());
    const Tensor grad = at::randn_like(whole);
    whole.backward(grad);
    std::vector<Tensor> wanted;
    for (Tensor& parameter : model.parameters()) {
      wanted.push_back(parameter.grad().defined() ? parameter.grad().clone() : Tensor());
      parameter.mutable_grad() = Tensor();
    }
    const Tensor first = model.forward_first(batch, layout, context);
    EXPECT_LT(relative_difference(first.detach(), whole.detach()), 1e-12);
    first.backward(grad);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!wanted[i].defined()) continue;
      EXPECT_LT((model.parameters()[i].grad() - wanted[i]).abs().max().item<double>(), 1e-10) << i;
    }
  }
}

// Tokens after the last sequence change neither the logits nor a gradient.
TEST(Bert, PaddingChangesNothing) {
  const auto golden = SafetensorsFile(golden_folder / "gelu/golden.safetensors").load_all();
  const Batch batch = packed_batch(golden);
  Batch padded = batch;
  for (const char* name : {"input_ids", "token_type_ids", "position_ids", "samples"}) {
    const Tensor& tokens = batch.at(name);
    padded.tensors[name] = at::cat({tokens, tokens.slice(0, 0, 1).expand({5})});
  }
  for (const auto kernels : {nn::Kernels::fast, nn::Kernels::reference}) {
    const auto run = [&](const Batch& input) {
      const auto model = load_case("gelu");
      model->to(at::kDouble);
      const nn::Context context = {.training = true, .key = 5, .kernels = kernels};
      const Tensor logits = model->forward(input, context);
      nn::cross_entropy(logits, batch.at("labels")).sum.backward();
      std::vector<Tensor> results = {logits.detach()};
      for (const Tensor& parameter : model->parameters()) results.push_back(parameter.grad());
      return results;
    };
    const auto wanted = run(batch), found = run(padded);
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_LT((found[i] - wanted[i]).abs().max().item<double>(), 1e-12) << i;
  }
}

TEST(Bert, RecomputingActivationsDoesNotChangeResults) {
  BertConfig config = BertConfig::read(golden_folder / "gelu/config.json");
  config.set_dropout(0.2);
  const Batch batch = packed_batch(SafetensorsFile(golden_folder / "gelu/golden.safetensors").load_all());
  const auto run = [&](int64_t recompute_every) {
    BertForSequenceClassification model(config);
    load_weights(model, golden_folder / "gelu");
    const Tensor logits =
        model.forward(batch, {.training = true, .key = 7, .recompute_every = recompute_every});
    nn::cross_entropy(logits, batch.at("labels")).sum.backward();
    std::vector<Tensor> results = {logits.detach()};
    for (const Tensor& parameter : model.parameters()) results.push_back(parameter.grad());
    return results;
  };
  const auto kept = run(0);
  for (const int64_t every : {1, 2}) {
    const auto recomputed = run(every);
    for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(at::equal(recomputed[i], kept[i])) << i;
  }
}

TEST(Bert, DropoutOfASampleDoesNotDependOnItsBatch) {
  const auto golden = SafetensorsFile(golden_folder / "gelu/golden.safetensors").load_all();
  const auto model = load_case("gelu");
  BertConfig config = model->config();
  config.set_dropout(0.2);
  BertForSequenceClassification dropping(config);
  load_weights(dropping, golden_folder / "gelu");
  dropping.to(at::kDouble);
  const Batch all = packed_batch(golden);
  const Tensor together = dropping.forward(all, {.training = true, .key = 5});
  const int64_t begin = all.at("cu_seqlens")[2].item<int64_t>(),
                end = all.at("cu_seqlens")[3].item<int64_t>();
  Batch alone;
  for (const char* name : {"input_ids", "token_type_ids", "position_ids", "samples"}) {
    alone.tensors[name] = all.at(name).slice(0, begin, end);
  }
  alone.tensors["cu_seqlens"] = at::tensor({int64_t{0}, end - begin});
  EXPECT_LT(relative_difference(dropping.forward(alone, {.training = true, .key = 5})[0], together[2]),
            1e-12);
  EXPECT_GT(relative_difference(dropping.forward(alone, {.training = true, .key = 6})[0], together[2]), 1e-3);
}

}  // namespace
}  // namespace stretto
