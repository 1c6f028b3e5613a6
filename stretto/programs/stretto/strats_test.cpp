#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/programs/stretto/verbs.h"
#include "stretto/strategy/sharding.h"

namespace stretto::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

int parse(const std::string& arguments) {
  CLI::App app;
  int exit_code = -1;
  add_strats(app, exit_code);
  app.parse("strats " + arguments);
  return exit_code;
}

std::string strats(const std::string& arguments) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(parse(arguments), 0);
  return testing::internal::GetCapturedStdout();
}

TEST(StratsVerb, ListsEveryStrategyWithItsShardedBuffers) {
  const std::string text = strats("");
  for (const Sharding& row : shardings()) EXPECT_THAT(text, HasSubstr(row.name + std::string(" ")));
  EXPECT_THAT(text, HasSubstr("zero1    sharded     replicated  replicated  12 + 4 N   14 + 4 N"));
  const auto all = nlohmann::json::parse(strats("--json"));
  EXPECT_EQ(all.at("strategies").size(), shardings().size());
  EXPECT_EQ(all.at("strategies").back().at("parameters"), "sharded");
  EXPECT_EQ(all.at("names").size(), 107u);
}

TEST(StratsVerb, NamesOfAFamilyAreMappedOrRefused) {
  EXPECT_THAT(strats("--deepspeed"), HasSubstr("deepspeed-2-bf16           zero2, bf16\n"));
  EXPECT_THAT(strats("--fsdp"), HasSubstr("fsdp-bf16-cpu              fsdp, bf16, on the CPU\n"));
  EXPECT_THAT(strats("--deepspeed"),
              AllOf(HasSubstr("deepspeed-3-bf16-nvme-none fsdp, bf16, optimizer in files\n"),
                    HasSubstr("deepspeed-3-bf16-none-nvme fsdp, bf16, parameters in files\n"),
                    HasSubstr("deepspeed-3-bf16-nvme-nvme fsdp, bf16, all in files\n"),
                    HasSubstr("deepspeed-2-fp16-none-nvme zero2, fp16\n")));
  const auto all = nlohmann::json::parse(strats("--json"));
  for (const auto& name : all.at("names"))
    EXPECT_EQ(name.contains("refused"), name.at("name").get<std::string>().find("fp8") != std::string::npos)
        << name;
  const auto names = nlohmann::json::parse(strats("--ddp --json"));
  ASSERT_EQ(names.size(), 5u);
  EXPECT_EQ(names[3].at("precision"), "bf16");
  EXPECT_EQ(names[2].at("precision"), "fp16");
  EXPECT_THAT(names[4].at("refused"), HasSubstr("fp8"));
  EXPECT_EQ(nlohmann::json::parse(strats("--fsdp --json")).back().at("name"), "fsdp-fp8-cpu");
}

TEST(StratsVerb, ANameIsDescribedOrRefused) {
  const std::string text = strats("fsdp-bf16-cpu");
  EXPECT_TRUE(text.starts_with("fsdp-bf16-cpu              fsdp, bf16, on the CPU\n")) << text;
  EXPECT_THAT(text, HasSubstr("\nfsdp     sharded     sharded     shared "));
  EXPECT_THAT(text, Not(HasSubstr("zero1")));
  const auto zero1 = nlohmann::json::parse(strats("deepspeed_stage_1 --json"));
  EXPECT_EQ(zero1.at("strategy"), "zero1");
  EXPECT_EQ(zero1.at("sharding").at("gradients"), "replicated");
  EXPECT_THAT(message_of<ConfigError>([] { parse("zero9"); }), HasSubstr("\"zero9\" is not a strategy"));
  EXPECT_THAT(message_of<ConfigError>([] { parse("fsdp-fp8-cpu"); }), HasSubstr("use fsdp-bf16"));
  EXPECT_THROW(parse("zero2 --fsdp"), CLI::ExcludesError);
}

TEST(StratsVerb, LinesFitAScreen) {
  std::istringstream lines(strats(""));
  int names = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
    names += line.starts_with("ddp") || line.starts_with("fsdp") || line.starts_with("deepspeed");
  }
  EXPECT_EQ(names, 107 + 2) << "and two rows of the table of strategies";
}

}  // namespace
}  // namespace stretto::cli
