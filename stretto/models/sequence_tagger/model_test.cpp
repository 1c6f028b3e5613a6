#include "stretto/models/sequence_tagger/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/base/tensor_layout.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/heads.h"
#include "stretto/models/capabilities.h"
#include "stretto/models/golden_support.h"
#include "stretto/models/registry.h"
#include "stretto/nn/initial_values.h"
#include "stretto/nn/tensor_parallel.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::filesystem::path taggers =
    std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/sequence_tagger";

std::shared_ptr<TextModel> golden_tagger(const std::string& name, at::ScalarType dtype,
                                         const nn::TensorParallel& ranks = {}) {
  const auto model = make_text_model(bundled_models(), heads::token_classification,
                                     read_config_json(taggers / name / "config.json"), "config.json",
                                     {.tensor_parallel = ranks});
  const WeightReport report = load_weights(*model, taggers / name);
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
  const Loss loss = labeller_of(*model).loss(logits, batch, {});
  EXPECT_EQ(loss.count, 10) << "words";
  const SequenceLosses losses = labeller_of(*model).losses(logits.detach(), batch);
  EXPECT_LT(relative_difference(losses.sums.sum(), golden.at(precision + ".loss_sum")), tolerance);
  EXPECT_TRUE(at::equal(losses.counts, at::tensor({3.0, 1.0, 6.0}, at::kDouble)));
  expect_golden_pass(*model, logits, loss.sum, golden, precision, tolerance);
  if (golden.contains("tags")) {
    EXPECT_TRUE(at::equal(labeller_of(*model).best_tags(logits.detach(), batch), golden.at("tags")));
  }
}

INSTANTIATE_TEST_SUITE_P(All, TaggerGolden,
                         ::testing::Combine(::testing::Values("lstm_crf", "gru"), ::testing::Bool()));

// Rows that are not words are ignored: the other rows are scored as a separate sequence.
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
  const SequenceLosses found = labeller_of(*model).losses(logits, batch),
                       wanted = labeller_of(*model).losses(kept, words);
  EXPECT_TRUE(at::equal(found.counts, at::tensor({2.0, 0.0, 4.0}, at::kDouble)));
  EXPECT_EQ(found.sums[0].item<double>(), wanted.sums[0].item<double>());
  EXPECT_EQ(found.sums[1].item<double>(), 0);
  EXPECT_EQ(found.sums[2].item<double>(), wanted.sums[1].item<double>());
  EXPECT_EQ(labeller_of(*model).loss(logits, batch, {}).count, 6);
  const Tensor tags = labeller_of(*model).best_tags(logits, batch),
               probabilities = labeller_of(*model).probabilities(logits, batch);
  EXPECT_TRUE(at::equal(tags.index({at::tensor(rows)}), labeller_of(*model).best_tags(kept, words)));
  EXPECT_EQ(tags[3].item<int64_t>(), 0);
  EXPECT_NEAR(probabilities[4].sum().item<double>(), 1, 1e-12);
  EXPECT_EQ(probabilities[3].sum().item<double>(), 0);
}

const std::filesystem::path of_transformer = taggers / "transformer";

Batch transformer_batch(const NamedTensors& golden) {
  Batch batch = packed_batch(golden);
  for (const char* name : {"words", "token_words", "word_ids", "characters", "character_cu_seqlens"})
    batch.tensors[name] = golden.at(name);
  batch.tensors["token_type_ids"] = at::zeros_like(golden.at("ids"));
  return batch;
}

// The loss of Flair's tagger on words, characters and a BERT, and the gradient of every weight, including the
// BERT's.
TEST(TransformerTagger, LossAndGradientsEqualFlairs) {
  const auto golden = SafetensorsFile(of_transformer / "golden.safetensors").load_all();
  const auto model = golden_tagger("transformer/tagger", at::kFloat);
  const Batch batch = transformer_batch(golden);
  const Loss loss = labeller_of(*model).loss(model->forward(batch, {}), batch, {});
  const Tensor mean = loss.sum / loss.count;
  EXPECT_LT(relative_difference(mean.detach(), golden.at("loss")), 1e-5);
  mean.backward();
  expect_golden_gradients(*model, golden, "fp32", 1e-4);
}

// The transformer's layers are on two ranks, all others whole on each.
TEST(TransformerTagger, IsDividedAmongRanks) {
  const Batch batch = transformer_batch(SafetensorsFile(of_transformer / "golden.safetensors").load_all());
  const auto loss_of = [&](const TextModel& model) {
    const Loss loss = labeller_of(model).loss(model.forward(batch, {}), batch, {});
    loss.sum.backward();
    return loss.sum.item<double>();
  };
  const auto whole = golden_tagger("transformer/tagger", at::kDouble);
  const double expected = loss_of(*whole);
  const auto of_whole = whole->named_parameters();
  for (const bool sequence : {false, true}) {
    comm::run_rank_threads(2, [&](Group& group) {
      const auto model = golden_tagger("transformer/tagger", at::kDouble, {&group, sequence});
      EXPECT_NEAR(loss_of(*model) / expected, 1, 1e-11);
      int divided = 0;
      for (const nn::LayerParameter& parameter : nn::layer_parameters(*model)) {
        const TensorLayout layout = parameter.layout();
        const Tensor gradient = parameter.tensor.grad().contiguous();
        if (!layout.cuts.empty() && layout.cuts[0].copies > 1) group.all_reduce(gradient).wait();
        divided += layout.local() != layout.global;
        for (const LocalRun& run : layout.runs()) {
          const Tensor own = gradient.view({-1}).slice(0, run.local, run.local + run.elements),
                       wanted = of_whole[parameter.name].grad().view({-1}).slice(0, run.global,
                                                                                 run.global + run.elements);
          EXPECT_LT((own - wanted).abs().max().item<double>(), 1e-10) << parameter.name;
        }
      }
      EXPECT_EQ(divided, 1 + 3 * 10);  // the table; in each layer six weights and four biases
    });
  }
}

// Writes the folder of a new tagger whose scores are the vectors of its words, which its linear layer copies.
std::shared_ptr<TextModel> copying_tagger(const nlohmann::json& settings, int64_t width) {
  nlohmann::json json = {{"model_type", "sequence-tagger"},
                         {"vocab_size", 1},
                         {"word_dimensions", 0},
                         {"rnn_type", "none"},
                         {"reproject_embeddings", false},
                         {"use_crf", false},
                         {"transformer_path", of_transformer / "encoder"},
                         {"transformer", read_config_json(of_transformer / "encoder/config.json")}};
  if (!settings.is_null()) json.update(settings);
  const std::vector<std::string> labels(static_cast<size_t>(width), "tag");
  const auto model =
      make_text_model(bundled_models(), heads::token_classification, json, "config.json", {.labels = labels});
  const WeightReport report = load_weights(*model, of_transformer);  // which has no weights
  EXPECT_THAT(report.missing, ::testing::UnorderedElementsAre("linear.weight", "linear.bias"));
  at::NoGradGuard no_grad;
  model->named_parameters()["linear.weight"].copy_(at::eye(width));
  model->named_parameters()["linear.bias"].zero_();
  return model;
}

class TransformerVectors : public ::testing::TestWithParam<const char*> {};

TEST_P(TransformerVectors, EqualFlairsTransformerWordEmbeddings) {
  const auto golden = SafetensorsFile(of_transformer / "golden.safetensors").load_all();
  const std::string name = GetParam();  // vectors.LAYERS.mean|cat.POOLING
  const size_t second = name.find('.', 8), third = name.find('.', second + 1);
  const Tensor& wanted = golden.at(name);
  const auto model = copying_tagger({{"layers", name.substr(8, second - 8)},
                                     {"layer_mean", name.substr(second + 1, third - second - 1) == "mean"},
                                     {"subtoken_pooling", name.substr(third + 1)}},
                                    wanted.size(1));
  const Batch batch = transformer_batch(golden);
  const Tensor scores = model->forward(batch, {}).detach();
  const Tensor of_words = scores.index({batch.at("words").ge(0)});
  EXPECT_LT(relative_difference(of_words, wanted), 1e-5);
  // All tokens of a word have its scores; other tokens have none.
  const Tensor& token_words = batch.at("token_words");
  for (int64_t t = 0; t < token_words.numel(); ++t) {
    const int64_t word = token_words[t].item<int64_t>();
    EXPECT_TRUE(at::equal(scores[t], word < 0 ? at::zeros_like(scores[t]) : of_words[word])) << "token " << t;
  }
}

INSTANTIATE_TEST_SUITE_P(All, TransformerVectors,
                         ::testing::Values("vectors.-1.mean.first", "vectors.-1.mean.last",
                                           "vectors.-1.mean.first_last", "vectors.-1.mean.mean",
                                           "vectors.-1,-2.mean.mean", "vectors.0,-1.cat.first",
                                           "vectors.all.mean.first", "vectors.all.cat.first_last",
                                           "vectors.1.mean.last"));

TEST(TransformerTagger, FrozenLayersNeedNoGradient) {
  const auto golden = SafetensorsFile(of_transformer / "golden.safetensors").load_all();
  const auto trainable = [](const TextModel& model) {
    size_t count = 0;
    for (const auto& item : model.named_parameters())
      count += item.key().starts_with("transformer.") && item.value().requires_grad();
    return count;
  };
  const auto frozen = copying_tagger({{"fine_tune", false}}, 12);
  EXPECT_EQ(trainable(*frozen), 0);
  // A frozen transformer has no dropout.
  const Batch batch = transformer_batch(golden);
  const nn::Context training = {.training = true, .key = 1};
  const auto json = nlohmann::json{{"fine_tune", false}, {"word_dropout", 0}, {"locked_dropout", 0}};
  EXPECT_TRUE(at::equal(copying_tagger(json, 12)->forward(batch, training), frozen->forward(batch, {})));
  // The last two of three layers are not read.
  const auto tuned = copying_tagger({}, 12), first = copying_tagger({{"layers", "1"}}, 12);
  EXPECT_EQ(trainable(*tuned) - trainable(*first), 2 * 16);
}

TEST(TransformerTagger, LayersAndFamiliesThatCannotBeReadAreRefused) {
  const auto refused = [](const nlohmann::json& settings, const auto&... named) {
    EXPECT_THAT(message_of<ConfigError>([&] { copying_tagger(settings, 12); }), has_all(named...));
  };
  refused({{"layers", "4"}}, "layers: \"4\" is not a layer", "3 layers",
          "0 (its embeddings) to 3, or -4 to -1");
  refused({{"layers", "-1,-5"}}, "\"-5\" is not a layer");
  refused({{"layers", ""}}, "\"\" is not a layer");
  refused({{"subtoken_pooling", "max"}}, "subtoken_pooling: found \"max\"");
  refused({{"transformer", "bert"}}, "transformer: found string");
  refused({{"transformer", {{"model_type", "sequence-tagger"}}}}, "cannot be read by another model");
  refused({{"transformer", {{"model_type", "bart"}}}}, "states of \"bart\"",
          "cannot be read by another model");
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

TEST(SequenceTagger, InvalidConfigurationsAreRefused) {
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
  EXPECT_THAT(refusal({{"rnn_layers", 999}, {"hidden_size", 16'000'000}}), HasSubstr("2^40 parameters"));
}

// The remaining parameters when parts are switched off.
TEST(SequenceTagger, PartsCanBeOmitted) {
  const auto names = [](const nlohmann::json& changes) {
    const auto model =
        make_text_model(bundled_models(), heads::token_classification, tagger_json(changes), "");
    std::vector<std::string> all;
    for (const auto& item : model->named_parameters()) all.push_back(item.key());
    nn::fill_parameters(*model, *initial_values(*model, 1));
    const auto golden = SafetensorsFile(taggers / "lstm_crf/golden.safetensors").load_all();
    EXPECT_TRUE(at::isfinite(model->forward(tagger_batch(golden), {})).all().item<bool>());
    return all;
  };
  EXPECT_THAT(
      names({{"rnn_type", "none"}, {"reproject_embeddings", false}, {"characters", ""}, {"use_crf", false}}),
      ::testing::ElementsAre("words.weight", "linear.weight", "linear.bias"));
  EXPECT_THAT(names({{"word_dimensions", 0}}), ::testing::Not(::testing::Contains("words.weight")));
  const auto frozen = make_text_model(bundled_models(), heads::token_classification,
                                      tagger_json({{"train_words", false}}), "");
  EXPECT_FALSE(frozen->named_parameters()["words.weight"].requires_grad());
}

}  // namespace
}  // namespace stretto
