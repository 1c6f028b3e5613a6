#include <cstdlib>
#include <filesystem>
#include <map>

#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/compat/foreign_files_support.h"

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
  std::string command(const std::string& verb, const std::string& output, int ranks) const {
    std::string command = workspace_.command(verb, ranks, common + ("output=" + workspace_.path(output)));
    if (ranks == 0) command.erase(command.find(" -N 0"), 5);
    return command + " ";
  }
  ShellResult train(const std::string& output, int ranks, const std::string& options) const {
    return shell(command("train", output, ranks) + options);
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

TEST_F(ForeignConfigs, EveryVerbChecksTheProductOfTheBatch) {
  workspace_.write("ds.json", R"({"train_batch_size": 10, "train_micro_batch_size_per_gpu": 4})");
  const std::string file = workspace_.path("ds.json"), option = "--deepspeed " + file;
  const auto expect_refused = [&](const std::string& command) {
    const ShellResult result = shell(command + option);
    EXPECT_EQ(result.exit_code, 2) << command;
    EXPECT_THAT(result.err, AllOf(HasSubstr(file + ":1:22: train_batch_size: 10 is not"),
                                  HasSubstr("x ranks (3) = 0; set it to 12")))
        << command;
    EXPECT_FALSE(workspace_.has("refused")) << command;
  };
  for (const char* verb : {"train", "plan", "profile"}) expect_refused(command(verb, "refused", 3));
  for (const char* verb : {"train", "profile"})  // as a rank of another launcher
    expect_refused(torchrun_variables(2, 3) + command(verb, "refused", 0));
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
  EXPECT_THAT(strategy.err, has_all("ds.json:2:34: zero_optimization.stage: ", "training.strategy: \"zero1\"",
                                    "training.strategy (--strategy zero2) is \"zero2\""));
  workspace_.write("accelerate.yaml", "distributed_type: MULTI_CPU\nmachine_rank: 1\n");
  const ShellResult host = train("refused", 0, "--accelerate " + workspace_.path("accelerate.yaml"));
  EXPECT_EQ(host.exit_code, 2);
  EXPECT_THAT(host.err, HasSubstr("accelerate.yaml:2:15: machine_rank: 1: the job has 1 host; expected"));
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

// The files alone, without a recipe next to them.
class ForeignCommands : public ForeignConfigs {
 protected:
  ForeignCommands() {
    auto config = nlohmann::json::parse(workspace_.read("model/config.json"));
    config["max_position_embeddings"] = 256;
    workspace_.write("model/config.json", config.dump());
    EXPECT_EQ(train("base", 1, "").exit_code, 0);
    make_folders(workspace_.path("data"));
    write_rows("sentiment-train", 64, 1);
    write_rows("sentiment-dev", 23, 2);
    write_rows("sentiment-test", 17, 3);
  }
  ShellResult run(const std::string& words) const {
    return shell(
        fmt::format("cd {}; OMP_NUM_THREADS=1 exec {} {}", workspace_.path(), STRETTO_PROGRAM, words));
  }
  void write_parameters(const std::string& from = "", const std::string& to = "") const {
    std::string text = fmt::format(R"(---
data-params:
    data_dir: '{0}data'
    is_dev_file: True

transformers-params:
    mode: 'train'
    continue_training: False
    continue_training_path: ""
    pretrained_model_dir: '{0}base/model'
    model_dir: '{0}models/baseline'
    is_distributed: True
    use_native_fp16: False
    use_fairscale_optimizer_sharding: True
    use_fairscale_model_sharding: False
    use_fairscale_autowrap: False
    use_fairscale_reshard_forward: False
    num_loader_workers: 0
    batch_size: 8
    use_max_length: True
    max_length: 24
    num_epochs: 2
    gradient_accumulation_steps: 1
    log_steps_ratio: 4
    save_steps_ratio: 1
    learning_rate: 2e-03
    warmup_proportion: 0.1
    num_labels: 2

dist-params:
    nodes: 1
    gpus: 2
    current_node: 0
    master_addr: '127.0.0.1' # the address of the first node
    master_port: '1234'
)",
                                   workspace_.path());
    if (!from.empty()) text.replace(text.find(from), from.size(), to);
    workspace_.write("parameters.yml", text);
  }

 private:
  void write_rows(const std::string& name, int count, uint64_t seed) const {
    const std::string rows = make_rows(count, seed);
    workspace_.write("data/" + name, rows.substr(rows.find('\n') + 1));
  }
};

TEST_F(ForeignCommands, ParametersTrainAndTest) {
  write_parameters();
  const ShellResult result = run("train --no-pin --params=parameters.yml");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("8 per rank x 2 ranks"), HasSubstr("parameters.yml:")));
  workspace_.write("same.yaml", R"(model: {path: base/model}
data: {train: data/sentiment-train, validation: data/sentiment-dev, max_length: 24}
training: {batch_size: 8, epochs: 2, strategy: zero2}
optimizer: {lr: 2e-3}
scheduler: {warmup_ratio: 0.1}
track: {log_every: 0.25ep}
output: same
)");
  ASSERT_EQ(run("train same.yaml --no-pin -N 2").exit_code, 0);
  expect_same("models/baseline", "same");
  EXPECT_TRUE(workspace_.has("models/baseline/dev_results.json"));
  EXPECT_TRUE(workspace_.has("models/baseline/checkpoints/step-00000008"));

  write_parameters("mode: 'train'", "mode: 'test'");
  const ShellResult tested = run("train --no-pin --params parameters.yml");
  ASSERT_EQ(tested.exit_code, 0) << tested.err;
  EXPECT_THAT(tested.err, HasSubstr("parameters.yml:7:11: transformers-params.mode: \"test\""));
  const std::string results = workspace_.read("models/baseline/test_results.json");
  EXPECT_THAT(results, HasSubstr("accuracy"));
  write_parameters();
  ASSERT_EQ(run("test --no-pin --params=parameters.yml").exit_code, 0);
  EXPECT_EQ(workspace_.read("models/baseline/test_results.json"), results);
}

// The example names folders at home.
TEST_F(ForeignCommands, TheExampleOfParametersTrainsUnchanged) {
  for (const char* folder : {"facebook", "pytorch_universal_trainer"}) make_folders(workspace_.path(folder));
  std::filesystem::rename(workspace_.path("base/model"), workspace_.path("facebook/bart-base"));
  std::filesystem::rename(workspace_.path("data"), workspace_.path("pytorch_universal_trainer/data"));
  workspace_.write("parameters.yml", compat::parameters_yml);
  const ShellResult result =
      shell(fmt::format("cd {0}; HOME={0} OMP_NUM_THREADS=1 exec {1} train --no-pin --params=parameters.yml",
                        workspace_.path(), STRETTO_PROGRAM));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("256 per rank x 2 ranks"), HasSubstr("fp16")));
  EXPECT_TRUE(
      workspace_.has("pytorch_universal_trainer/models/bart_base_sst_baseline/model/model.safetensors"));
}

// The files are examples of the tools, unchanged.
TEST_F(ForeignCommands, SettingsSayWhatTheFilesDoNot) {
  workspace_.write("ds.json", compat::deepspeed_json);
  workspace_.write("accelerate.yaml", compat::fsdp_yaml);
  workspace_.write("hps.yaml", compat::hps_yaml);
  const std::string settings = "data.train=data/sentiment-train data.max_length=24 training.max_steps=8 ";
  for (const std::string option :
       {"--deepspeed ds.json -N 2", "--accelerate accelerate.yaml", "--hps hps.yaml"}) {
    const std::string output = "alone" + option.substr(0, 4);
    const ShellResult result =
        run("train model.path=base/model " + settings + option + " --no-pin output=" + output);
    ASSERT_EQ(result.exit_code, 0) << option << result.err;
    EXPECT_TRUE(workspace_.has(output + "/model/model.safetensors"));
    EXPECT_THAT(run("train " + settings + option + " --no-pin").err,
                AllOf(HasSubstr("no key for the folder of the model"), HasSubstr("model.path=")));
  }
  EXPECT_THAT(run("train data.train=data/sentiment-train").err,
              HasSubstr("stretto train: recipe is required"));
  write_parameters("    data_dir: '" + workspace_.path("data") + "'\n", "");
  EXPECT_THAT(
      run("train --params=parameters.yml").err,
      has_all("parameters.yml: data-params.data_dir is missing", "training samples", "pass data.train=..."));
}

// What becomes of each configuration of accelerate's examples and tests: the key that is refused, or "" for
// files that train.
constexpr std::pair<const char*, const char*> accelerate_files[] = {
    {"examples_alst_ulysses_sequence_parallelism_sp-alst.accelerate-config.yml",
     "deepspeed_config.deepspeed_config_file: \"sp-alst.ds-config.json\": there is no such file"},
    {"examples_config_yaml_templates_deepspeed.yaml", "deepspeed_config.deepspeed_config_file: "},
    {"examples_config_yaml_templates_fp8.yaml", "mixed_precision: \"fp8\""},
    {"examples_config_yaml_templates_fsdp.yaml", ""},
    {"examples_config_yaml_templates_multi_gpu.yaml", ""},
    {"examples_config_yaml_templates_multi_node.yaml", "num_machines: 2 contradicts --nodes 1"},
    {"examples_config_yaml_templates_multi_xpu.yaml", "distributed_type: \"MULTI_XPU\""},
    {"examples_config_yaml_templates_single_accelerator.yaml", ""},
    {"examples_slurm_fsdp_config.yaml", ""},
    {"examples_torch_native_parallelism_configs_cp.yaml", "parallelism_config_cp_size: \"8\""},
    {"examples_torch_native_parallelism_configs_tp_hsdp.yaml", ""},
    {"tests_test_configs_0_11_0.yaml", ""},
    {"tests_test_configs_0_12_0.yaml", ""},
    {"tests_test_configs_0_28_0_mpi.yaml", "mpirun_config.mpirun_hostfile: this file is for mpirun"},
    {"tests_test_configs_0_30_0_sagemaker.yaml", "compute_environment: \"AMAZON_SAGEMAKER\""},
    {"tests_test_configs_0_34_0_fp8.yaml", "mixed_precision: \"fp8\""},
    {"tests_test_configs_invalid_keys.yaml", "invalid_key: the key is unknown"},
    {"tests_test_configs_latest.yaml", ""},
    {"tests_test_configs_latest_fsdp.yaml", ""},
    {"tests_test_configs_validate_launch_cmd.yaml", ""},
    {"tests_tp_fsdp2_tp_preparation_config.yaml", ""},
};

TEST_F(ForeignConfigs, AcceleratesOwnFilesTrainOrAreRefusedByAKey) {
  const char* data = std::getenv("STRETTO_DATA");
  if (data == nullptr) GTEST_SKIP() << "STRETTO_DATA is not set";
  const std::filesystem::path folder = std::filesystem::path(data) / "configs/accelerate";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is missing";
  const std::map<std::string, std::string> expected(std::begin(accelerate_files), std::end(accelerate_files));
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    SCOPED_TRACE(name);
    const auto outcome = expected.find(name);
    ASSERT_NE(outcome, expected.end());
    ++count;
    const bool trains = outcome->second.empty();
    const ShellResult result =
        train(name, 0,
              "--nodes 1 training.max_steps=1 training.batch_size=2 --accelerate " + entry.path().string());
    EXPECT_EQ(result.exit_code, trains ? 0 : 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr(outcome->second));
    EXPECT_EQ(workspace_.has(name + "/model/model.safetensors"), trains);
  }
  EXPECT_EQ(count, expected.size());
}

TEST_F(ForeignConfigs, AFileForMpirunNamesTheCommand) {
  workspace_.write(
      "mpi.yaml",
      "distributed_type: MULTI_CPU\nmain_process_ip: 10.0.0.1\nmpirun_config:\n  mpirun_hostfile: hosts\n"
      "num_machines: 2\nnum_processes: 8\nuse_cpu: true\n");
  const ShellResult result = train("refused", 0, "--accelerate " + workspace_.path("mpi.yaml"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("mpi.yaml:4:20: mpirun_config.mpirun_hostfile: "),
                                HasSubstr("start mpirun -np 8 --hostfile hosts -x MASTER_ADDR=10.0.0.1 "),
                                HasSubstr(" --accelerate ")));
}

TEST_F(ForeignConfigs, AStrategyInTheMemoryOfTheHostRunsOnTheCpu) {
  const ShellResult result = train("cpu", 2, "--strategy fsdp-bf16-cpu");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("fsdp-bf16-cpu: the ranks compute on the CPU, in whose memory their state is"));
  ASSERT_EQ(train("fsdp", 2, "--strategy fsdp-bf16 training.device=cpu").exit_code, 0);
  expect_same("cpu", "fsdp");
  EXPECT_THAT(
      train("refused", 2, "--strategy fsdp-bf16-cpu training.device=cuda").err,
      AllOf(HasSubstr("training.strategy: fsdp-bf16-cpu offloads"), HasSubstr("GPUs do not offload")));
}

}  // namespace
}  // namespace stretto
