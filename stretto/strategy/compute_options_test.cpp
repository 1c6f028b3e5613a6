#include "stretto/strategy/compute_options.h"

#include <cstdlib>
#include <set>

#include <gmock/gmock.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/strategy/strategy.h"

namespace stretto {
namespace {

class ComputeOptionsTest : public ::testing::Test {
 protected:
  ~ComputeOptionsTest() override { ::unsetenv("STRETTO_STRATEGY"); }

  static ComputeOptions parse(const ComputeNames& names, const std::set<std::string>& given = {}) {
    return parse_compute_options(
        names, {.label = [](const std::string& option) { return option + " = "; },
                .mention = [](const std::string& option) { return "the " + option; },
                .given = [&](const std::string& option) { return given.contains(option); }});
  }

  static void refuses(const ComputeNames& names, const std::set<std::string>& given, const char* option,
                      const auto&... named) {
    EXPECT_THAT(message_of<ConfigError>([&] { parse(names, given); }),
                ::testing::AllOf(::testing::StartsWith(option), has_all(named...)));
  }
};

TEST_F(ComputeOptionsTest, NamesOfOtherToolsAreRead) {
  const ComputeOptions options = parse({"zero3", "bf16-mixed", "onednn"});
  EXPECT_EQ(options.strategy, "fsdp");
  EXPECT_EQ(options.precision, Precision::bf16);
  EXPECT_EQ(options.products, Products::onednn);
  EXPECT_FALSE(options.in_host_memory);
  EXPECT_TRUE(parse({.strategy = "deepspeed-3-bf16-cpu-cpu"}).in_host_memory);
}

TEST_F(ComputeOptionsTest, MessagesBeginWithTheOption) {
  refuses({.precision = "bf61"}, {}, "precision = \"bf61\"", "fp32, bf16, fp16, fp64",
          "did you mean \"bf16\"?");
  refuses({.products = "onedn"}, {}, "products = \"onedn\"", "auto, aten, onednn, mkl, stretto",
          "did you mean \"onednn\"?");
  refuses({.strategy = "ddp-fp8"}, {}, "strategy = \"ddp-fp8\"", "GPUs with fp8", "use ddp-bf16");
}

TEST_F(ComputeOptionsTest, TheStrategysPrecisionReplacesADefaultAndContradictsAnother) {
  EXPECT_EQ(parse({.strategy = "ddp-fp64"}, {"strategy"}).precision, Precision::fp64);
  refuses({.strategy = "ddp-fp64"}, {"strategy", "precision"}, "strategy = \"ddp-fp64\"", "sets fp64",
          "the precision sets fp32");
}

TEST_F(ComputeOptionsTest, TheLaunchersStrategyReplacesADefaultAndContradictsAnother) {
  set_launched_strategy(parse_strategy("zero2-bf16"));
  const ComputeOptions options = parse({});
  EXPECT_EQ(options.strategy, "zero2");
  EXPECT_EQ(options.precision, Precision::bf16);
  EXPECT_EQ(parse({.strategy = "zero2"}, {"strategy"}).precision, Precision::bf16);
  set_launched_strategy(parse_strategy("zero2-bf16-cpu"));
  EXPECT_TRUE(parse({}).in_host_memory);
  set_launched_strategy(parse_strategy("zero2-bf16"));
  refuses({.strategy = "ddp"}, {"strategy"}, "strategy = \"ddp\"",
          "launcher's --strategy zero2-bf16 (STRETTO_STRATEGY)");
  refuses({}, {"precision"}, "strategy = \"zero2-bf16\"", "sets bf16", "the precision sets fp32");
}

}  // namespace
}  // namespace stretto
