#include "stretto/model_config/outline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/model_config/config_json.h"
#include "stretto/model_config/heads.h"
#include "stretto/models/registry.h"
#include "stretto/nn/block_observer.h"
#include "stretto/nn/layers.h"

// The outline of each family is the list of its module's parameters.
namespace stretto {
namespace {

using ::testing::ElementsAreArray;

const std::filesystem::path golden = std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden";

std::string line(const std::string& name, const std::vector<int64_t>& shape, const std::string& block,
                 bool trainable, bool is_table) {
  return fmt::format("{} [{}] in \"{}\"{}{}", name, fmt::join(shape, ", "), block,
                     trainable ? "" : ", frozen", is_table ? ", a table" : "");
}

// `prefix`: the module's path and a dot, or "" for the root.
void describe_module(const torch::nn::Module& module, const std::string& prefix, std::string block,
                     std::vector<std::string>& lines) {
  if (dynamic_cast<const nn::Block*>(&module) != nullptr)
    block = prefix.substr(0, prefix.size() - !prefix.empty());
  for (const auto& item : module.named_parameters(/*recurse=*/false))
    lines.push_back(line(prefix + item.key(), item.value().sizes().vec(), block, item.value().requires_grad(),
                         dynamic_cast<const nn::Embedding*>(&module) != nullptr));
  for (const auto& child : module.named_children())
    describe_module(*child.value(), prefix + child.key() + ".", block, lines);
}

std::vector<std::string> describe_outline(const ModelOutline& outline) {
  std::vector<std::string> lines;
  for (const OutlineParameter& parameter : outline.parameters())
    lines.push_back(
        line(parameter.name, parameter.shape, parameter.block, parameter.trainable, parameter.is_table));
  return lines;
}

struct OutlineCase {
  const char* folder;
  std::string head;
  nlohmann::json changes = nlohmann::json::object();
};

class Outlines : public ::testing::TestWithParam<OutlineCase> {};

TEST_P(Outlines, AreTheModulesParameters) {
  nlohmann::json config = read_config_json(golden / GetParam().folder / "config.json");
  config.update(GetParam().changes);
  const auto model = make_text_model(bundled_models(), GetParam().head, config, "config.json");
  std::vector<std::string> expected;
  describe_module(*model, "", "", expected);
  const auto outline = outline_of(config, "config.json", GetParam().head);
  ASSERT_TRUE(outline);
  EXPECT_THAT(describe_outline(*outline), ElementsAreArray(expected));
}

const nlohmann::json frozen = {{"fine_tune", false}}, layer_1 = {{"layers", "0,1"}, {"layer_mean", false}},
                     last_and_first = {{"subtoken_pooling", "first_last"}, {"layers", "all"}},
                     no_recurrence = {{"rnn_type", "none"}, {"reproject_embeddings", false}},
                     deep = {{"rnn_type", "GRU"},
                             {"rnn_layers", 2},
                             {"bidirectional", false},
                             {"use_crf", false}},
                     kept_words = {{"train_words", false}};

INSTANTIATE_TEST_SUITE_P(
    Families, Outlines,
    ::testing::Values(OutlineCase{"bert/gelu", heads::sequence_classification},
                      OutlineCase{"bert/gelu", heads::hidden_states},
                      OutlineCase{"bert_heads/token", heads::token_classification},
                      OutlineCase{"bert_heads/qa", heads::question_answering},
                      OutlineCase{"roberta/sequence", heads::sequence_classification},
                      OutlineCase{"roberta/token", heads::token_classification},
                      OutlineCase{"roberta/qa", heads::question_answering},
                      OutlineCase{"electra/sequence", heads::sequence_classification},
                      OutlineCase{"electra/token", heads::token_classification},
                      OutlineCase{"electra/qa", heads::question_answering},
                      OutlineCase{"electra/token", heads::hidden_states},
                      OutlineCase{"distilbert/sequence", heads::sequence_classification},
                      OutlineCase{"distilbert/token", heads::token_classification},
                      OutlineCase{"distilbert/qa", heads::question_answering},
                      OutlineCase{"distilbert/token", heads::hidden_states},
                      OutlineCase{"bart/gelu", heads::sequence_classification},
                      OutlineCase{"bart/relu_odd", heads::sequence_classification},
                      OutlineCase{"gpt2/plain", heads::causal_language_model},
                      OutlineCase{"gpt2/inner_odd", heads::causal_language_model},
                      OutlineCase{"gpt2/untied", heads::causal_language_model},
                      OutlineCase{"llama/grouped", heads::causal_language_model},
                      OutlineCase{"llama/biases", heads::causal_language_model},
                      OutlineCase{"llama/tied", heads::causal_language_model},
                      OutlineCase{"llama/mistral", heads::causal_language_model},
                      OutlineCase{"llama/qwen2", heads::causal_language_model},
                      OutlineCase{"llama/qwen3", heads::causal_language_model},
                      OutlineCase{"sequence_tagger/lstm_crf", heads::token_classification},
                      OutlineCase{"sequence_tagger/lstm_crf", heads::token_classification, deep},
                      OutlineCase{"sequence_tagger/lstm_crf", heads::token_classification, no_recurrence},
                      OutlineCase{"sequence_tagger/lstm_crf", heads::token_classification, kept_words},
                      OutlineCase{"sequence_tagger/gru", heads::token_classification},
                      OutlineCase{"sequence_tagger/transformer/tagger", heads::token_classification},
                      OutlineCase{"sequence_tagger/transformer/tagger", heads::token_classification, frozen},
                      OutlineCase{"sequence_tagger/transformer/tagger", heads::token_classification, layer_1},
                      OutlineCase{"sequence_tagger/transformer/tagger", heads::token_classification,
                                  last_and_first}));

TEST(Outlines, AreUnknownForOtherFamiliesAndHeads) {
  const nlohmann::json bert = read_config_json(golden / "bert/gelu/config.json");
  EXPECT_FALSE(outline_of(bert, "config.json", heads::causal_language_model));
  nlohmann::json unknown = bert;
  unknown["model_type"] = "t5";
  EXPECT_FALSE(outline_of(unknown, "config.json", heads::hidden_states));
}

// The estimate of transformers' Trainer, 6 operations per token and parameter outside of embedding tables.
TEST(Outlines, CountTheParametersOutsideOfTables) {
  const nlohmann::json wanted = read_config_json(golden / "trainer/keys.json");
  for (const bool tied : {true, false}) {
    nlohmann::json config = wanted.at("sizes");
    config.update({{"model_type", "gpt2"}, {"tie_word_embeddings", tied}});
    const auto outline = outline_of(config, "config.json", heads::causal_language_model);
    EXPECT_EQ(6 * wanted.at("tokens").get<int64_t>() * outline->elements_without_tables(),
              wanted.at("total_flos").at(tied ? "tied" : "untied").get<double>());
  }
}

// A Linear performs in * out multiply-adds per row, with or without a bias; tables and norms perform none.
TEST(Outlines, CountTheMultiplyAddsOfAForward) {
  const nlohmann::json config = {{"model_type", "bert"},     {"hidden_size", 8},
                                 {"num_attention_heads", 2}, {"vocab_size", 100},
                                 {"num_hidden_layers", 3},   {"intermediate_size", 20},
                                 {"type_vocab_size", 2},     {"max_position_embeddings", 16}};
  EXPECT_EQ(outline_of(config, "config.json", heads::hidden_states)->products(),
            3 * (4 * 8 * 8 + 2 * 8 * 20));
}

}  // namespace
}  // namespace stretto
