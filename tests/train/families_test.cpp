#include "tests/train/decoder_workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/message_support.h"
#include "stretto/serve/pipeline.h"

// Tests each model family, from a config.json and its tokenizer to predictions.
namespace stretto {
namespace {

const std::string golden_tokenizers = std::string(STRETTO_SOURCE_DIR) + "/tests/golden/tokenizer/";

struct Family {
  const char* model_type;
  const char* tokenizer;  // a folder of golden_tokenizers; "": the workspace's WordPiece
  nlohmann::json config;
};

void PrintTo(const Family& family, std::ostream* out) { *out << family.model_type; }

class Families : public ::testing::TestWithParam<Family> {
 protected:
  Families() {
    const Family& family = GetParam();
    nlohmann::json config = family.config;
    config["model_type"] = family.model_type;
    const std::string tokenizer =
        *family.tokenizer == '\0' ? workspace_.path("model") : golden_tokenizers + family.tokenizer;
    config["vocab_size"] = *family.tokenizer == '\0'
                               ? nlohmann::json::parse(workspace_.read("model/config.json")).at("vocab_size")
                               : nlohmann::json(2000);
    workspace_.write("family.json", config.dump());
    settings_ = "model.config=" + workspace_.path("family.json") + " tokenizer.path=" + tokenizer +
                " data.max_length=40 training.epochs=1 ";
  }

  ThreadWorkspace workspace_;
  std::string settings_;
};

TEST_P(Families, TrainTheSameOnAnyRanksAndPredict) {
  workspace_.train("one", 1, settings_);
  workspace_.train("two", 2, settings_);
  workspace_.train("sharded", 2, settings_ + "training.strategy=fsdp");
  const auto losses = workspace_.losses("one");
  ASSERT_GT(losses.size(), 2u);
  EXPECT_LT(relative_difference(losses, workspace_.losses("two")), 1e-9);
  EXPECT_LT(relative_difference(losses, workspace_.losses("sharded")), 1e-9);
  const auto pipeline = load_pipeline(workspace_.path("two/model"), {}, bundled_models());
  const std::vector<PipelineInput> inputs = {{"the film is good"}};
  EXPECT_GT(pipeline->predict(inputs, "label").at(0).at("score"), 0.0);
}

const nlohmann::json roberta = {{"hidden_size", 32},
                                {"num_hidden_layers", 2},
                                {"num_attention_heads", 4},
                                {"intermediate_size", 48},
                                {"type_vocab_size", 1},
                                {"pad_token_id", 1},
                                {"max_position_embeddings", 42}};

INSTANTIATE_TEST_SUITE_P(Models, Families,
                         ::testing::Values(Family{"roberta", "roberta", roberta},
                                           Family{"xlm-roberta", "xlm_roberta", roberta},
                                           Family{"electra",
                                                  "",
                                                  {{"embedding_size", 24},
                                                   {"hidden_size", 32},
                                                   {"num_hidden_layers", 2},
                                                   {"num_attention_heads", 4},
                                                   {"intermediate_size", 48},
                                                   {"max_position_embeddings", 40}}},
                                           Family{"distilbert",
                                                  "",
                                                  {{"dim", 32},
                                                   {"n_layers", 2},
                                                   {"n_heads", 4},
                                                   {"hidden_dim", 48},
                                                   {"max_position_embeddings", 40}}},
                                           Family{"bart",
                                                  "roberta",
                                                  {{"d_model", 32},
                                                   {"encoder_layers", 2},
                                                   {"decoder_layers", 2},
                                                   {"encoder_attention_heads", 4},
                                                   {"decoder_attention_heads", 4},
                                                   {"encoder_ffn_dim", 48},
                                                   {"decoder_ffn_dim", 48},
                                                   {"max_position_embeddings", 40},
                                                   {"dropout", 0.1},
                                                   {"attention_dropout", 0.1},
                                                   {"activation_dropout", 0.1}}}),
                         [](const auto& info) {
                           std::string name = info.param.model_type;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Decoders, KeepTheGenerationConfigOfTheModelThatTheyStartFrom) {
  const DecoderWorkspace workspace;
  workspace.train("first", 1, "training.max_steps=1");
  const std::string options = R"({"do_sample": true, "temperature": 0.7})";
  workspace.write("first/model/generation_config.json", options);
  workspace.train("second", 2,
                  "training.max_steps=1 checkpoint.every=1 model.config=null model.path=" +
                      workspace.path("first/model"));
  EXPECT_EQ(workspace.read("second/model/generation_config.json"), options);
  EXPECT_EQ(workspace.read("second/checkpoints/step-00000001/generation_config.json"), options);
}

TEST(TextOfLanguageModels, MistakesAreNamedBeforeAnythingIsTokenized) {
  const DecoderWorkspace workspace;
  workspace.write("empty.txt", "");
  workspace.write("binary.txt", std::string("the\0film\n", 9));
  const auto expect = [&](const std::string& settings, const auto&... named) {
    EXPECT_THAT(workspace.refusal_of("refused", 1, settings), has_all(named...));
    EXPECT_FALSE(workspace.has("cache")) << settings;
  };
  const std::string empty = workspace.path("empty.txt"), binary = workspace.path("binary.txt");
  expect("data.train=" + empty, "data.train: " + empty + ": there is no text in it");
  expect("data.validation=" + empty, "data.validation: " + empty + ": there is no text in it");
  expect("data.validation=" + binary, "data.validation: " + binary + ": a NUL byte near its beginning");
  expect("checkpoint.monitor=los evaluate.every=1ep", "checkpoint.monitor: \"los\" is not a built-in metric");
  expect("checkpoint.save_models=[best_los] evaluate.every=1ep", "checkpoint.save_models: \"los\" is not");
  expect("scheduler.type=ReduceLROnPlateau scheduler.monitor=f1 evaluate.every=1ep",
         "scheduler.monitor: ", "no metric \"f1\"", "they have loss, perplexity");
}

}  // namespace
}  // namespace stretto
