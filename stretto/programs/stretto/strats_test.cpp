#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stretto/programs/stretto/verbs.h"
#include "stretto/strategy/sharding.h"

namespace stretto::cli {
namespace {

using ::testing::HasSubstr;

std::string strats(const std::string& arguments) {
  CLI::App app;
  int exit_code = -1;
  add_strats(app, exit_code);
  testing::internal::CaptureStdout();
  app.parse("strats " + arguments);
  EXPECT_EQ(exit_code, 0);
  return testing::internal::GetCapturedStdout();
}

TEST(StratsVerb, ListsEveryStrategyWithItsShardedBuffers) {
  const std::string text = strats("");
  for (const Sharding& row : shardings()) EXPECT_THAT(text, HasSubstr(row.name + std::string(" ")));
  EXPECT_THAT(text, HasSubstr("zero1    sharded     replicated  replicated  12 + 4 N   14 + 4 N"));
  const auto rows = nlohmann::json::parse(strats("--json"));
  EXPECT_EQ(rows.size(), shardings().size());
  EXPECT_EQ(rows.back().at("parameters"), "sharded");
}

TEST(StratsVerb, NamesOfAFamilyAreMappedOrRefused) {
  EXPECT_THAT(strats("--deepspeed"), HasSubstr("deepspeed-2-bf16           zero2, bf16\n"));
  EXPECT_THAT(strats("--fsdp"), HasSubstr("fsdp-bf16-cpu              not supported\n"));
  const auto names = nlohmann::json::parse(strats("--ddp --json"));
  ASSERT_EQ(names.size(), 5u);
  EXPECT_EQ(names[3].at("precision"), "bf16");
  EXPECT_EQ(names[2].at("precision"), "fp16");
  EXPECT_THAT(names[4].at("refused"), HasSubstr("fp8"));
}

}  // namespace
}  // namespace stretto::cli
