#include "stretto/models/sequence_tagger/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/models/config_json.h"
#include "stretto/models/golden_support.h"
#include "stretto/models/registry.h"
#include "stretto/models/tagging.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

const std::filesystem::path taggers =
    std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/sequence_tagger";

std::shared_ptr<TextModel> golden_tagger(const std::string& name, at::ScalarType dtype) {
  const auto model = make_text_model(bundled_models(), Head::token_classification,
                                     read_config_json(taggers / name / "config.json"), "config.json");
  const WeightReport report = model->load_weights(taggers / name);
  EXPECT_THAT(report.missing, IsEmpty());
  EXPECT_THAT(report.unexpected, IsEmpty());
  model->to(dtype);
  return model;
}

Batch tagger_batch(const NamedTensors& golden) {
  Batch batch = packed_batch(golden);
  for (const char* name : {"words", "characters", "character_cu_seqlens"})
    batch.tensors[name] = golden.at(name);
  return batch;
}

class TaggerGolden : public ::testing::TestWithParam<std::tuple<const char*, bool>> {};

TEST_P(TaggerGolden, LogitsLossTagsAndEveryGradient) {
  const auto& [name, wide] = GetParam();
  const std::string precision = wide ? "fp64" : "fp32";
  const double tolerance = wide ? 1e-11 : 1e-5;
  const auto golden = SafetensorsFile(taggers / name / "golden.safetensors").load_all();
  const auto model = golden_tagger(name, wide ? at::kDouble : at::kFloat);
  const Batch batch = tagger_batch(golden);
  const Tensor logits = model->forward(batch, {});
  EXPECT_LT(relative_difference(logits.detach(), golden.at(precision + ".logits")), tolerance);
  const Loss loss = tag_loss(*model, logits, batch, {});
  EXPECT_LT(relative_difference(loss.sum.detach(), golden.at(precision + ".loss_sum")), tolerance);
  EXPECT_EQ(loss.count, 10) << "words";
  const SequenceLosses losses = tag_losses(*model, logits.detach(), batch);
  EXPECT_LT(relative_difference(losses.sums.sum(), golden.at(precision + ".loss_sum")), tolerance);
  EXPECT_TRUE(at::equal(losses.counts, at::tensor({3.0, 1.0, 6.0}, at::kDouble)));
  loss.sum.backward();
  expect_golden_gradients(*model, golden, precision, tolerance);
  if (golden.contains("tags")) {
    EXPECT_TRUE(at::equal(best_tags(*model, logits.detach(), batch), golden.at("tags")));
  }
}

INSTANTIATE_TEST_SUITE_P(All, TaggerGolden,
                         ::testing::Combine(::testing::Values("lstm_crf", "gru"), ::testing::Bool()));

// Rows that are no words to tag take no part in the field: the others are scored as a sequence by themselves.
TEST(SequenceTagger, OnlyWordsAreTagged) {
  const auto golden = SafetensorsFile(taggers / "lstm_crf/golden.safetensors").load_all();
  const auto model = golden_tagger("lstm_crf", at::kDouble);
  Batch batch = tagger_batch(golden);
  at::NoGradGuard no_grad;
  const Tensor logits = model->forward(batch, {});
  batch.tensors["words"] = at::tensor({-1, 0, 1, -1, 0, -1, 1, 2, -1, 3}, at::kLong);
  const std::vector<int64_t> rows = {1, 2, 4, 6, 7, 9};
  Batch words;
  words.tensors = {{"words", at::zeros({6}, at::kLong)},
                   {"cu_seqlens", at::tensor({0, 2, 6}, at::kLong)},
                   {"labels", batch.at("labels").index({at::tensor(rows)})}};
  const Tensor kept = logits.index({at::tensor(rows)});
  const SequenceLosses found = tag_losses(*model, logits, batch), wanted = tag_losses(*model, kept, words);
  EXPECT_TRUE(at::equal(found.counts, at::tensor({2.0, 0.0, 4.0}, at::kDouble)));
  EXPECT_EQ(found.sums[0].item<double>(), wanted.sums[0].item<double>());
  EXPECT_EQ(found.sums[1].item<double>(), 0);
  EXPECT_EQ(found.sums[2].item<double>(), wanted.sums[1].item<double>());
  EXPECT_EQ(tag_loss(*model, logits, batch, {}).count, 6);
  const Tensor tags = best_tags(*model, logits, batch),
               probabilities = tag_probabilities(*model, logits, batch);
  EXPECT_TRUE(at::equal(tags.index({at::tensor(rows)}), best_tags(*model, kept, words)));
  EXPECT_EQ(tags[3].item<int64_t>(), 0);
  EXPECT_NEAR(probabilities[4].sum().item<double>(), 1, 1e-12);
  EXPECT_EQ(probabilities[3].sum().item<double>(), 0);
}

nlohmann::json tagger_json(const nlohmann::json& changes) {
  nlohmann::json json = read_config_json(taggers / "lstm_crf/config.json");
  json.update(changes);
  return json;
}

TEST(SequenceTagger, ConfigJsonIsReadAgain) {
  const nlohmann::json json = tagger_json({{"dropout", 0.2}, {"train_words", false}, {"rnn_type", "GRU"}});
  const auto written = SequenceTaggerConfig::from_json(json, "config.json").to_json(json);
  EXPECT_EQ(SequenceTaggerConfig::from_json(written, "config.json").to_json({}),
            SequenceTaggerConfig::from_json(json, "config.json").to_json({}));
  EXPECT_EQ(written.at("characters"), "abcdé");
  EXPECT_EQ(SequenceTaggerConfig::from_json(json, "").character_count(), 6);
}

TEST(SequenceTagger, ConfigurationsThatCannotBeAreRefused) {
  const auto refusal = [](const nlohmann::json& changes) {
    try {
      SequenceTaggerConfig::from_json(tagger_json(changes), "config.json");
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal({{"rnn_type", "RNN"}}),
              HasSubstr("rnn_type: found \"RNN\"; expected LSTM, GRU or none"));
  EXPECT_THAT(refusal({{"word_dimensions", 0}, {"characters", ""}}), HasSubstr("words have no vectors"));
  EXPECT_THAT(refusal({{"use_crf", 1}}), HasSubstr("use_crf: found 1; expected true or false"));
  EXPECT_THAT(refusal({{"vocab_size", nullptr}}), HasSubstr("vocab_size is missing"));
  EXPECT_THAT(refusal({{"rnn_layers", 9999}, {"hidden_size", 16'000'000}}), HasSubstr("2^40 parameters"));
}

// What is left when parts are switched off.
TEST(SequenceTagger, PartsCanBeLeftOut) {
  const auto names = [](const nlohmann::json& changes) {
    const auto model =
        make_text_model(bundled_models(), Head::token_classification, tagger_json(changes), "");
    std::vector<std::string> all;
    for (const auto& item : model->named_parameters()) all.push_back(item.key());
    model->initialize(1, all);
    const auto golden = SafetensorsFile(taggers / "lstm_crf/golden.safetensors").load_all();
    EXPECT_TRUE(at::isfinite(model->forward(tagger_batch(golden), {})).all().item<bool>());
    return all;
  };
  EXPECT_THAT(
      names({{"rnn_type", "none"}, {"reproject_embeddings", false}, {"characters", ""}, {"use_crf", false}}),
      ::testing::ElementsAre("words.weight", "linear.weight", "linear.bias"));
  EXPECT_THAT(names({{"word_dimensions", 0}}), ::testing::Not(::testing::Contains("words.weight")));
  const auto frozen = make_text_model(bundled_models(), Head::token_classification,
                                      tagger_json({{"train_words", false}}), "");
  EXPECT_FALSE(frozen->named_parameters()["words.weight"].requires_grad());
}

}  // namespace
}  // namespace stretto
