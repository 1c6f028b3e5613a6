#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/json.h"
#include "stretto/generate/generation_support.h"
#include "stretto/generate/logit_rules.h"

namespace stretto::generate {
namespace {

class GenerationGolden : public ::testing::TestWithParam<int64_t> {};

// The generated tokens equal those of transformers, for one prompt at a time and for several.
TEST_P(GenerationGolden, TokensEqualThoseOfTransformers) {
  const nlohmann::json cases = read_json(generation_goldens / "generation" / "tokens.json");
  std::map<std::string, std::shared_ptr<TextModel>> models;
  std::map<std::pair<std::string, std::string>, std::vector<nlohmann::json>> groups;
  for (const auto& one : cases) groups[{one.at("folder"), one.at("options").dump()}].push_back(one);
  ASSERT_EQ(groups.size(), 99);
  for (const auto& [group, all] : groups) {
    auto& model = models[group.first];
    if (!model) model = load_generating(group.first);
    std::vector<std::vector<int32_t>> prompts;
    std::vector<NewTokens> expected;
    for (const auto& one : all) {
      prompts.push_back(one.at("prompt"));
      expected.push_back(one.at("expected"));
    }
    const auto options = parse_generation_config(nlohmann::json::parse(group.second), "golden");
    EXPECT_EQ(generated(*model, options, prompts, GetParam()), expected)
        << group.first << " " << group.second;
  }
}

INSTANTIATE_TEST_SUITE_P(BatchSizes, GenerationGolden, ::testing::Values(1, 2, 3));

// Sampling draws from the same tokens as in transformers.
TEST(ChoicesGolden, ChoicesEqualThoseOfTransformers) {
  const nlohmann::json cases = read_json(generation_goldens / "generation" / "choices.json");
  ASSERT_EQ(cases.size(), 39);
  for (const auto& one : cases) {
    const auto options = parse_generation_config(one.at("options"), "golden");
    std::vector<int32_t> tokens;
    for (const Choice& choice : choices_of(options, one.at("logits").get<std::vector<float>>()))
      tokens.push_back(choice.token);
    EXPECT_EQ(tokens, one.at("choices").get<std::vector<int32_t>>()) << one.at("options");
  }
}

}  // namespace
}  // namespace stretto::generate
