#include "stretto/models/bart/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/model_config/config_json.h"
#include "stretto/models/golden_support.h"
#include "stretto/models/registry.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::filesystem::path bart_golden = std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/bart";

BartConfig bart_config(const std::string& name) {
  const std::filesystem::path file = bart_golden / name / "config.json";
  return BartConfig::from_json(read_config_json(file), file.string());
}

std::shared_ptr<BartForSequenceClassification> load_bart(const std::string& name, double dropout = 0) {
  BartConfig config = bart_config(name);
  config.set_dropout(dropout);
  auto model = std::make_shared<BartForSequenceClassification>(config);
  const WeightReport report = load_weights(*model, bart_golden / name);
  EXPECT_THAT(report.missing, IsEmpty());
  EXPECT_THAT(report.unexpected, IsEmpty());
  return model;
}

class BartGolden : public ::testing::TestWithParam<std::tuple<const char*, const char*, nn::Kernels>> {};

TEST_P(BartGolden, LogitsLossAndEveryGradient) {
  const auto [name, precision, kernels] = GetParam();
  const bool wide = precision == std::string("fp64");
  const double tolerance = wide ? 1e-11 : 1e-5;
  const auto golden = SafetensorsFile(bart_golden / name / "golden.safetensors").load_all();
  const auto model = load_bart(name);
  model->to(wide ? at::kDouble : at::kFloat);
  const Batch batch = packed_batch(golden);
  const Tensor logits = model->forward(batch, {.kernels = kernels});
  const Loss loss = nn::cross_entropy(logits, batch.at("labels"));
  expect_golden_pass(*model, logits, loss.sum, golden, precision, tolerance);
}

INSTANTIATE_TEST_SUITE_P(Cases, BartGolden,
                         ::testing::Combine(::testing::Values("gelu", "relu_odd"),
                                            ::testing::Values("fp64", "fp32"),
                                            ::testing::Values(nn::Kernels::fast, nn::Kernels::reference)));

TEST(Bart, RecomputingActivationsDoesNotChangeResults) {
  const Batch batch = packed_batch(SafetensorsFile(bart_golden / "gelu/golden.safetensors").load_all());
  const auto run = [&](int64_t recompute_every) {
    const auto model = load_bart("gelu", 0.2);
    const Tensor logits =
        model->forward(batch, {.training = true, .key = 7, .recompute_every = recompute_every});
    nn::cross_entropy(logits, batch.at("labels")).sum.backward();
    std::vector<Tensor> results = {logits.detach()};
    for (const Tensor& parameter : model->parameters()) results.push_back(parameter.grad());
    return results;
  };
  const auto kept = run(0);
  for (const int64_t every : {1, 2}) {
    const auto recomputed = run(every);
    for (size_t i = 0; i < kept.size(); ++i)
      EXPECT_TRUE(at::allclose(recomputed[i], kept[i], 1e-6, 1e-7)) << i;
  }
}

TEST(Bart, DropoutOfASampleDoesNotDependOnItsBatch) {
  const auto golden = SafetensorsFile(bart_golden / "gelu/golden.safetensors").load_all();
  const auto model = load_bart("gelu", 0.2);
  model->to(at::kDouble);
  const Batch all = packed_batch(golden);
  const Tensor together = model->forward(all, {.training = true, .key = 5});
  const int64_t begin = all.at("cu_seqlens")[1].item<int64_t>(),
                end = all.at("cu_seqlens")[2].item<int64_t>();
  Batch alone;
  for (const char* name : {"input_ids", "position_ids", "samples"})
    alone.tensors[name] = all.at(name).slice(0, begin, end);
  alone.tensors["cu_seqlens"] = at::tensor({int64_t{0}, end - begin});
  EXPECT_LT(relative_difference(model->forward(alone, {.training = true, .key = 5})[0], together[1]), 1e-12);
  EXPECT_GT(relative_difference(model->forward(alone, {.training = true, .key = 6})[0], together[1]), 1e-4);
  EXPECT_LT(
      relative_difference(
          model->forward(all, {.training = true, .key = 5, .kernels = nn::Kernels::reference}), together),
      1e-11);
}

TEST(Bart, ATextWithoutEosIsRefused) {
  const auto model = load_bart("gelu");
  Batch batch = packed_batch(SafetensorsFile(bart_golden / "gelu/golden.safetensors").load_all());
  batch.tensors["input_ids"] = batch.at("input_ids").clone().fill_(7);
  EXPECT_THAT(message_of<DataError>([&] { model->forward(batch, {}); }),
              HasSubstr("does not end with eos_token_id (2)"));
}

TEST(BartConfig, UnsupportedVariantsAreRefused) {
  const auto error_of = [](const nlohmann::json& change) -> std::string {
    nlohmann::json json = {{"model_type", "bart"}, {"d_model", 32}, {"vocab_size", 60}};
    json.update(change);
    try {
      BartConfig::from_json(json, "config.json");
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of(nlohmann::json::object()), "");
  EXPECT_THAT(error_of({{"scale_embedding", true}}), HasSubstr("scale_embedding: true is not supported"));
  EXPECT_THAT(error_of({{"encoder_layerdrop", 0.1}}), HasSubstr("encoder_layerdrop"));
  EXPECT_THAT(error_of({{"normalize_before", true}}), HasSubstr("normalize_before"));
  EXPECT_THAT(error_of({{"decoder_attention_heads", 5}}),
              HasSubstr("multiple of decoder_attention_heads (5)"));
  EXPECT_THAT(error_of({{"eos_token_id", 60}}), HasSubstr("eos_token_id"));
  EXPECT_THAT(error_of({{"decoder_layers", 0}}), HasSubstr("decoder_layers"));
  EXPECT_THAT(error_of({{"encoder_layers", 1000}, {"encoder_ffn_dim", 1 << 24}, {"d_model", 1 << 16}}),
              HasSubstr("encoder_layers 1000"));
  EXPECT_EQ(BartConfig::from_json({{"model_type", "bart"}}, "c").num_labels(), 3)
      << "as Hugging Face's default";
}

}  // namespace
}  // namespace stretto
