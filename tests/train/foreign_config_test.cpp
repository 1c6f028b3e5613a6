#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

// Tests `stretto train` with the configurations of DeepSpeed and Accelerate: the run is the same as with the
// corresponding settings.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* common = "evaluate.every=never training.max_steps=3 training.global_batch_size=null ";

class ForeignConfigs : public ::testing::Test {
 protected:
  ForeignConfigs() {  // without precision and device, which the files set
    std::string recipe = workspace_.read("recipe.yaml");
    for (const std::string line : {"  precision: fp64\n", "  device: cpu\n"})
      recipe.erase(recipe.find(line), line.size());
    workspace_.write("recipe.yaml", recipe);
  }
  ShellResult train(const std::string& output, int ranks, const std::string& options) const {
    std::string command = workspace_.command("train", ranks, common + ("output=" + workspace_.path(output)));
    if (ranks == 0) command.erase(command.find(" -N 0"), 5);
    return shell(command + " " + options);
  }
  void expect_same(const std::string& a, const std::string& b) const {
    EXPECT_EQ(workspace_.losses(a), workspace_.losses(b));
    EXPECT_TRUE(workspace_.read(a + "/model/model.safetensors") ==
                workspace_.read(b + "/model/model.safetensors"));
  }

  Workspace workspace_;
};

TEST_F(ForeignConfigs, DeepSpeedTrainsWithTheSameStrategy) {
  const std::pair<int, const char*> stages[] = {{2, "zero2"}, {3, "fsdp"}};
  for (const auto& [stage, strategy] : stages) {
    SCOPED_TRACE(strategy);
    workspace_.write("ds.json", fmt::format(R"({{
  "zero_optimization": {{"stage": {}, "overlap_comm": true}},
  "bf16": {{"enabled": {}}},
  "gradient_clipping": 0.25,
  "gradient_accumulation_steps": 2,
  "train_micro_batch_size_per_gpu": 4,
  "train_batch_size": "auto"
}})",
                                            stage, stage == 2));
    const std::string file = workspace_.path("ds.json"), output = std::string("ds-") + strategy;
    const ShellResult result = train(output, 2, "--deepspeed " + file);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr(file + ":2:53: zero_optimization.overlap_comm: it is ignored: "));
    const ShellResult native = train(
        strategy, 2,
        fmt::format("--strategy {} training.precision={} training.max_grad_norm=0.25 training.batch_size=4 "
                    "training.grad_accumulation_steps=2",
                    strategy, stage == 2 ? "bf16" : "fp32"));
    ASSERT_EQ(native.exit_code, 0) << native.err;
    expect_same(output, strategy);
  }
}

TEST_F(ForeignConfigs, AccelerateStartsItsRanksAndTrainsWithTheSameStrategy) {
  workspace_.write("accelerate.yaml", R"(distributed_type: FSDP
fsdp_config:
  fsdp_sharding_strategy: FULL_SHARD
  fsdp_offload_params: false
mixed_precision: 'no'
num_machines: 1
num_processes: 2
use_cpu: true
)");
  const ShellResult result =
      train("accelerate", 0, "training.batch_size=8 --accelerate " + workspace_.path("accelerate.yaml"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("8 per rank x 2 ranks"));
  ASSERT_EQ(train("fsdp", 2, "training.batch_size=8 --strategy fsdp").exit_code, 0);
  expect_same("accelerate", "fsdp");
  const ShellResult contradiction = train("refused", 3, "--accelerate " + workspace_.path("accelerate.yaml"));
  EXPECT_EQ(contradiction.exit_code, 2);
  EXPECT_THAT(contradiction.err,
              HasSubstr("accelerate.yaml:7:16: num_processes: 2 contradicts -N 3; remove one"));
  EXPECT_FALSE(workspace_.has("refused"));
}

TEST_F(ForeignConfigs, ParametersOfPytorchUniversalTrainerTrainWithTheSameStrategy) {
  workspace_.write("parameters.yml", fmt::format(R"(transformers-params:
    mode: 'train'
    model_dir: '{}'
    is_distributed: True
    use_native_fp16: False
    use_fairscale_optimizer_sharding: True
    use_fairscale_model_sharding: False
    batch_size: 8
dist-params:
    nodes: 1
    gpus: 2
    current_node: 0
    master_addr: '10.100.69.32'
    master_port: '1234'
)",
                                                 workspace_.path("theirs")));
  std::string command = workspace_.command("train", 2, std::string(common) + "training.device=cpu");
  command.erase(command.find(" -N 2"), 5);
  std::string recipe = workspace_.read("recipe.yaml");
  recipe.erase(recipe.find("output: "));
  workspace_.write("recipe.yaml", recipe);
  const ShellResult result = shell(command + " --parameters " + workspace_.path("parameters.yml"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("8 per rank x 2 ranks"));
  ASSERT_EQ(train("zero2", 2, "training.device=cpu training.batch_size=8 --strategy zero2").exit_code, 0);
  expect_same("theirs", "zero2");
}

TEST_F(ForeignConfigs, ErrorsNameTheFileTheLineAndTheKey) {
  workspace_.write("ds.json", "{\n  \"zero_optimization\": {\"stage\": 4}\n}\n");
  const ShellResult stage = train("refused", 2, "--deepspeed " + workspace_.path("ds.json"));
  EXPECT_EQ(stage.exit_code, 2);
  EXPECT_THAT(stage.err, HasSubstr(workspace_.path("ds.json") + ":2:34: zero_optimization.stage: "));
  workspace_.write("ds.json", "{\n  \"zero_optimization\": {\"stage\": 1}\n}\n");
  const ShellResult strategy =
      train("refused", 2, "--strategy zero2 --deepspeed " + workspace_.path("ds.json"));
  EXPECT_EQ(strategy.exit_code, 2);
  EXPECT_THAT(
      strategy.err,
      HasSubstr("ds.json:2:34: zero_optimization.stage: it sets training.strategy: \"zero1\", but "
                "training.strategy (--set training.strategy=zero2) is \"zero2\"; remove one of them"));
}

TEST_F(ForeignConfigs, HpsFilesTrainLikeTheirSettings) {
  std::string recipe = workspace_.read("recipe.yaml");
  for (const std::string lines : {"optimizer:\n  lr: 0.001\n", "scheduler:\n  warmup_ratio: 0.1\n"})
    recipe.erase(recipe.find(lines), lines.size());
  workspace_.write("recipe.yaml", recipe);
  workspace_.write("hps_config.yaml",
                   "hps:\n  batch_size: 4\n  optimizer: {type: SGD, lr: 1e-2, momentum: 0.9}\n"
                   "  scheduler: {type: StepLR, step_size: 2, gamma: 0.5}\n");
  const ShellResult result = train("hps", 2, "--hps " + workspace_.path("hps_config.yaml"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const ShellResult native = train(
      "native", 2,
      "training.batch_size=4 optimizer.type=SGD optimizer.lr=1e-2 optimizer.momentum=0.9 scheduler.type=StepLR "
      "scheduler.step_size=2 scheduler.gamma=0.5");
  ASSERT_EQ(native.exit_code, 0) << native.err;
  expect_same("hps", "native");
}

}  // namespace
}  // namespace stretto
