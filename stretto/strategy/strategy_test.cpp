#include "stretto/strategy/strategy.h"

#include <gmock/gmock.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/strategy/sharding.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;

TEST(StrategyName, KindAndPrecision) {
  EXPECT_EQ(parse_strategy("ddp"), (Strategy{.kind = "ddp"}));
  EXPECT_EQ(parse_strategy("ddp-bf16"), (Strategy{.kind = "ddp", .precision = Precision::bf16}));
  EXPECT_EQ(parse_strategy("zero1-bf16"), (Strategy{.kind = "zero1", .precision = Precision::bf16}));
  EXPECT_EQ(parse_strategy("fsdp-bf16"), (Strategy{.kind = "fsdp", .precision = Precision::bf16}));
  EXPECT_EQ(strategy_names().size(), 5 * shardings().size());
  for (const std::string& name : strategy_names())
    EXPECT_TRUE(name.starts_with(parse_strategy(name).kind)) << name;
}

TEST(Sharding, RowsWithAPropertyAreListed) {
  EXPECT_EQ(strategies_with(is_hybrid), "hsdp");
  EXPECT_EQ(strategies_with(shards_parameters), "fsdp and hsdp");
  EXPECT_EQ(strategies_with(shards_optimizer), "zero1, zero2, fsdp and hsdp");
  EXPECT_EQ(strategies_with(shards_gradients, "or"), "zero2, fsdp or hsdp");
  EXPECT_EQ(strategies_with([](const Sharding&) { return false; }), "");
}

TEST(StrategyName, OtherNamesAreRefusedWithAReason) {
  const auto refuses = [](const char* name, const auto&... named) {
    EXPECT_THAT(message_of<ConfigError>([&] { parse_strategy(name); }), has_all(named...)) << name;
  };
  for (const char* name : {"horovod", "deepspeed_stage_3_offload", "cp", "fsdp2", "fsdp_cpu_offload"}) {
    refuses(name, "is known, but not available", "ddp, zero1, zero2, fsdp, hsdp", "`stretto strats`");
  }
  refuses("dp", "use ddp");
  refuses("tp", "such as ddp", "set the mesh's tp");
  refuses("ddp-fp8", "GPUs with fp8", "use ddp-bf16");
  refuses("ddp-bf61", "\"ddp-bf61\" is not a strategy; did you mean \"ddp-bf16\"?");
  refuses("dpd", "\"dpd\" is not a strategy; did you mean \"ddp\"?");
  refuses("deepspeed-4", "is not a strategy");
  refuses("zero9", "is not a strategy");
  refuses("DDP", "did you mean \"ddp\"?");
  refuses("ddp-bf16-cpu", "only a precision, and nvme after it, may follow ddp");
  refuses("", "\"\" is not a strategy; available: ddp, zero1, zero2, fsdp, hsdp, ");
}

TEST(StrategyName, NamesOfOtherToolsMeanTheSameStrategies) {
  const auto means = [](const char* name, const char* expected) {
    EXPECT_EQ(parse_strategy(name).name(), expected) << name;
  };
  means("deepspeed", "zero2");
  means("deepspeed-2-bf16", "zero2-bf16");
  means("deepspeed-3-bf16-none-none", "fsdp-bf16");
  means("deepspeed-1-fp32", "zero1-fp32");
  means("deepspeed-3-fp16-nvme-none", "fsdp-fp16-nvme");
  means("zero2-nvme", "zero2-nvme");
  means("deepspeed-0", "ddp");
  means("deepspeed_stage_2", "zero2");
  means("zero3-bf16", "fsdp-bf16");
  means("ddp_find_unused_parameters_true", "ddp");
  means("deepspeed-2-bf16-cpu-none", "zero2-bf16-cpu");
  means("deepspeed-3-fp32-none-cpu", "fsdp-fp32-cpu");
  means("deepspeed-3-fp32-nvme-cpu", "fsdp-fp32-nvme-cpu");
  means("fsdp-fp32-nvme-cpu", "fsdp-fp32-nvme-cpu");
  means("fsdp-bf16-cpu", "fsdp-bf16-cpu");
  EXPECT_TRUE(parse_strategy("fsdp-bf16-cpu").in_host_memory);
  EXPECT_FALSE(parse_strategy("deepspeed-3-bf16-none-none").in_host_memory);
  for (const char* places : {"none-nvme", "cpu-nvme", "nvme-nvme"}) {
    means(fmt::format("deepspeed-3-bf16-{}", places).c_str(), fmt::format("fsdp-bf16-{}", places).c_str());
    means(fmt::format("fsdp-bf16-{}", places).c_str(), fmt::format("fsdp-bf16-{}", places).c_str());
  }
  means("deepspeed-2-bf16-nvme-nvme", "zero2-bf16-nvme");
  EXPECT_TRUE(parse_strategy("deepspeed-3-none-nvme").parameters_in_files);
  EXPECT_FALSE(parse_strategy("deepspeed-2-none-nvme").parameters_in_files) << "as in DeepSpeed";
  EXPECT_THAT(message_of<ConfigError>([] { parse_strategy("deepspeed-2-bf61"); }),
              HasSubstr("is not a strategy"));
}

TEST(StrategyName, AllNamesOfAccmtAreKnown) {
  EXPECT_EQ(accmt_names("ddp").size(), 5u);
  EXPECT_EQ(accmt_names("fsdp").size(), 9u);
  EXPECT_EQ(accmt_names("deepspeed").size(), 93u);
  int supported = 0;
  for (const char* family : {"ddp", "fsdp", "deepspeed"}) {
    for (const std::string& name : accmt_names(family)) {
      try {
        parse_strategy(name);
        ++supported;
      } catch (const ConfigError& error) {
        EXPECT_THAT(error.what(), HasSubstr("fp8 instructions")) << name;
      }
    }
  }
  EXPECT_EQ(supported, 82) << "all but fp8";
}

}  // namespace
}  // namespace stretto
