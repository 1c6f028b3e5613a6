#include "stretto/programs/stretto/plan_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/strings.h"

namespace stretto::cli {
namespace {

nlohmann::ordered_json row(const std::string& strategy, bool fits) {
  return {{"strategy", strategy},
          {"tp", 16},
          {"dp", 64},
          {"sequence_parallel", true},
          {"bytes_per_rank", 999.9 * (1 << 30)},
          {"bytes_per_host", 999.9 * (1 << 30)},
          {"fits", fits},
          {"step_seconds", strategy == "zero1" ? 99.9 : 98},
          {"bound", "network"}};
}

TEST(PlanReport, FitsATerminal) {
  for (const bool fits : {true, false}) {
    PlanReport report;
    report.add(
        {{"measured_step_seconds", 99.9},
         {"other_bytes_per_rank", 1e9},
         {"batch", "16384 samples per step = 16 per group x 64 groups of 16 ranks x 16 accumulation steps"},
         {"ranks", 1024},
         {"hosts", 64},
         {"cores_per_host", 128},
         {"memory_per_host", 1e12},
         {"strategies", {row("zero1", fits), row("zero2", fits)}}});
    const std::string text = report.text("zero1", "-N 128 --tp 128");
    for (const std::string_view line : split(text, '\n')) EXPECT_LE(line.size(), 80u) << line;
    EXPECT_THAT(text, ::testing::HasSubstr(fits ? "<- the recipe's" : "No strategy fits"));
    EXPECT_THAT(text, ::testing::HasSubstr("zero2 tp 16 seq"));
    const std::string larger = "or divide layers among more ranks:\n-N 128 --tp 128\n";
    EXPECT_EQ(text.ends_with(larger), !fits);
    if (!fits) {
      EXPECT_TRUE(report.text("zero1", "").ends_with("micro-batch, or\ntraining.activation_checkpointing\n"));
      continue;
    }
    EXPECT_THAT(text, ::testing::HasSubstr("--tp 16 --sequence-parallel --strategy zero2\n"));
    EXPECT_EQ(report.json().at("best_mesh"),
              nlohmann::ordered_json({{"tp", 16}, {"dp", 64}, {"sequence_parallel", true}}));
  }
}

}  // namespace
}  // namespace stretto::cli
