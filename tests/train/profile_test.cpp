#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Profile, ReportsWhereTheTimeIsSpent) {
  const Workspace workspace;
  const ShellResult result =
      shell(workspace.command("profile", 2, "training.epochs=20 training.precision=fp32") +
            " --steps 3 --warmup-steps 2");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("mean of 3 steps"), ContainsRegex("backward +[0-9.]+ +[0-9.]+ %"),
                                ContainsRegex("waiting for communication +[0-9.]+"), HasSubstr(" GFLOP/s"),
                                ContainsRegex("weight_gradient +aten [0-9]+.* GFLOP/s alone"),
                                ContainsRegex("floor [0-9.]+ ms"),
                                HasSubstr("matmul     aten (fp32, too small to measure)")));
  for (const char* trace : {"run/profile/trace_0.json", "run/profile/trace_1.json"}) {
    const auto events = nlohmann::json::parse(workspace.read(trace)).at("traceEvents");
    int forwards = 0, operators = 0;
    for (const auto& event : events) {
      forwards += event.value("name", "") == "stretto: forward";
      operators += event.value("name", "").starts_with("aten::");
    }
    EXPECT_EQ(forwards, 3) << trace;
    EXPECT_GT(operators, 30) << trace;
  }
  EXPECT_FALSE(workspace.has("run/metrics.jsonl")) << "a profile is not the run";
  EXPECT_THAT(result.err, AllOf(Not(HasSubstr("profile/run")), Not(HasSubstr("USDT"))))
      << "neither a model that is removed, nor log lines of the profiler itself";
  EXPECT_FALSE(workspace.has("run/profile/run"));
}

TEST(Profile, NoStepsAreRefused) {
  const Workspace workspace;
  const ShellResult result = shell(workspace.command("profile", 1, "training.precision=fp32") + " --steps 0");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--steps"));
}

}  // namespace
}  // namespace stretto
