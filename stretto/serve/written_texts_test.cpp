#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/temp_folder.h"
#include "stretto/serve/pipeline.h"

namespace stretto::serve {
namespace {

const std::filesystem::path goldens = std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/generation";

class WrittenTexts : public ::testing::TestWithParam<const char*> {};

// Texts that transformers' pipeline text-generation writes, for prompts of letters, digits, characters of
// several bytes and line ends.
TEST_P(WrittenTexts, EqualThoseOfTransformers) {
  const TempFolder folder;
  std::filesystem::copy(goldens / GetParam(), folder.path());
  const nlohmann::json cases = read_json(goldens / GetParam() / "texts.json");
  ASSERT_EQ(cases.size(), 3);
  for (const auto& one : cases) {
    write_file_atomic(folder.path() / "generation_config.json", one.at("options").dump());
    const auto pipeline = load_pipeline(folder.path());
    std::vector<PipelineInput> inputs;
    for (const auto& text : one.at("texts")) inputs.push_back({.text = text});
    const nlohmann::json found = pipeline->predict(inputs, "pipeline");
    EXPECT_EQ(found, one.at("expected")) << one.at("options");
    for (size_t i = 0; i < inputs.size(); ++i)
      EXPECT_EQ(nlohmann::json(pipeline->predict({&inputs[i], 1}, "pipeline")).at(0), found.at(i)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, WrittenTexts, ::testing::Values("gpt2", "llama", "qwen2"));

}  // namespace
}  // namespace stretto::serve
