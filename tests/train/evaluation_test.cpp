#include <cstring>

#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"

// Tests `stretto test` on the output of `stretto train`.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class EvaluationTest : public ::testing::Test {
 protected:
  nlohmann::json json(const std::string& name) const {
    return nlohmann::json::parse(workspace_.read("run/" + name));
  }
  ShellResult test(const std::string& settings, const std::string& options = "") const {
    return shell(workspace_.command("test", 1, "data.test=" + workspace_.path("dev.tsv") + " " + settings) +
                 options);
  }
  // Sets the last value of the last tensor to NaN, in fp32 and in fp64.
  void spoil_model() const {
    std::string bytes = workspace_.read("run/model/model.safetensors");
    bytes.replace(bytes.size() - 8, 8, std::string("\0\0\0\0\0\0\xf8\x7f", 8));
    workspace_.write("run/model/model.safetensors", bytes);
  }

  Workspace workspace_;
};

TEST_F(EvaluationTest, HasTheDigitsOfTheEvaluationInTraining) {
  for (const char* precision : {"bf16", "fp16", "fp32"}) {  // models of fp64 runs are saved in fp32
    const std::string settings =
        fmt::format("training.precision={} training.products=aten optimizer.lr=0.01", precision);
    workspace_.train("run", 1, settings);
    const ShellResult result = test(settings);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr(fmt::format("precision  {}", precision)));
    for (const char* metric : {"loss", "accuracy"}) {
      EXPECT_EQ(json("test_results.json").at(metric), json("dev_results.json").at(metric))
          << metric << " in " << precision;
    }
  }
}

TEST_F(EvaluationTest, RefusesAModelWithANan) {
  workspace_.train("run", 1, "training.max_steps=2");
  spoil_model();
  const ShellResult refused = test("");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr(workspace_.path("run/model") + ": "),
                                 HasSubstr("holds NaN or infinity"), HasSubstr("--allow-nonfinite")));
  EXPECT_FALSE(workspace_.has("run/test_results.json"));
  EXPECT_FALSE(workspace_.has("run/predictions.jsonl"));
  const ShellResult meant = test("", " --allow-nonfinite");
  EXPECT_EQ(meant.exit_code, 0) << meant.err;
  EXPECT_THAT(meant.err, Not(HasSubstr("holds NaN")));
  EXPECT_TRUE(workspace_.has("run/test_results.json"));
}

TEST_F(EvaluationTest, RefusesALossThatIsNotFinite) {
  workspace_.train("run", 1, "training.max_steps=2 training.precision=fp32");
  std::string bytes = workspace_.read("run/model/model.safetensors");
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto tensors = nlohmann::json::parse(bytes.substr(8, header));
  const auto& place = tensors.at("bert.embeddings.LayerNorm.weight").at("data_offsets");
  const float huge = 3e38F;
  for (size_t at = 8 + header + place[0].get<size_t>(); at < 8 + header + place[1].get<size_t>(); at += 4)
    std::memcpy(bytes.data() + at, &huge, sizeof huge);
  workspace_.write("run/model/model.safetensors", bytes);
  const ShellResult refused = test("training.precision=fp32");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr(workspace_.path("run/model") + ": the loss is not finite on this data"));
  EXPECT_FALSE(workspace_.has("run/predictions.jsonl"));
  EXPECT_EQ(test("training.precision=fp32", " --allow-nonfinite").exit_code, 0);
}

}  // namespace
}  // namespace stretto
