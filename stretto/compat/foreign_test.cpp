#include "stretto/compat/foreign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/config/topology_request.h"
#include "stretto/optim_config/optimizers.h"

namespace stretto::compat {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// The example of transformers' documentation for ZeRO-2, with numbers for some values.
constexpr const char* zero2_json = R"({
    "fp16": {
        "enabled": "auto",
        "loss_scale": 0,
        "loss_scale_window": 1000,
        "initial_scale_power": 16,
        "hysteresis": 2,
        "min_loss_scale": 1
    },
    "bf16": {
        "enabled": true
    },
    "optimizer": {
        "type": "AdamW",
        "params": {
            "lr": 3e-5,
            "betas": [0.9, 0.98],
            "eps": "auto",
            "weight_decay": "auto"
        }
    },
    "scheduler": {
        "type": "WarmupDecayLR",
        "params": {
            "warmup_min_lr": "auto",
            "warmup_max_lr": "auto",
            "warmup_num_steps": 7,
            "total_num_steps": "auto"
        }
    },
    "zero_optimization": {
        "stage": 2,
        "offload_optimizer": {
            "device": "none",
            "pin_memory": true
        },
        "allgather_partitions": true,
        "allgather_bucket_size": 2e8,
        "overlap_comm": true,
        "reduce_scatter": true,
        "reduce_bucket_size": 2e8,
        "contiguous_gradients": true
    },
    "gradient_accumulation_steps": 4,
    "gradient_clipping": 0.5,
    "steps_per_print": 2000,
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": 8,
    "wall_clock_breakdown": false
}
)";

// The output of `accelerate config` for FSDP.
constexpr const char* fsdp_yaml = R"(compute_environment: LOCAL_MACHINE
debug: false
distributed_type: FSDP
downcast_bf16: 'no'
enable_cpu_affinity: false
fsdp_config:
  fsdp_activation_checkpointing: false
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_backward_prefetch: BACKWARD_PRE
  fsdp_cpu_ram_efficient_loading: true
  fsdp_forward_prefetch: false
  fsdp_offload_params: false
  fsdp_sharding_strategy: FULL_SHARD
  fsdp_state_dict_type: SHARDED_STATE_DICT
  fsdp_sync_module_states: true
  fsdp_transformer_layer_cls_to_wrap: BertLayer
  fsdp_use_orig_params: true
machine_rank: 0
main_training_function: main
mixed_precision: bf16
num_machines: 1
num_processes: 2
rdzv_backend: static
same_network: true
tpu_env: []
tpu_use_cluster: false
tpu_use_sudo: false
use_cpu: true
)";

// The output of `accelerate config` for DeepSpeed without a JSON file.
constexpr const char* deepspeed_yaml = R"(compute_environment: LOCAL_MACHINE
debug: false
deepspeed_config:
  gradient_accumulation_steps: 2
  gradient_clipping: 1.0
  offload_optimizer_device: none
  offload_param_device: none
  zero3_init_flag: false
  zero_stage: 1
distributed_type: DEEPSPEED
downcast_bf16: 'no'
machine_rank: 0
main_training_function: main
mixed_precision: 'no'
num_machines: 1
num_processes: 4
rdzv_backend: static
same_network: true
tpu_env: []
tpu_use_cluster: false
tpu_use_sudo: false
use_cpu: false
)";

// The parameters.yml of pytorch_universal_trainer for full sharding.
constexpr const char* parameters_yml = R"(data-params:
    data_dir: '~/pytorch_universal_trainer/data'
    is_dev_file: True

transformers-params:
    mode: 'train'
    continue_training: False
    continue_training_path: ""
    pretrained_model_dir: 'facebook/bart-base'
    model_dir: 'models/bart_base_sst_baseline'
    is_distributed: True
    use_native_fp16: False
    use_fairscale_optimizer_sharding: False
    use_fairscale_model_sharding: True
    use_fairscale_autowrap: True
    use_fairscale_reshard_forward: True
    num_loader_workers: 0
    batch_size: 256
    use_max_length: False
    max_length: 200
    num_epochs: 3
    gradient_accumulation_steps: 1
    log_steps_ratio: 10
    save_steps_ratio: 1
    learning_rate: 2e-05
    warmup_proportion: 0.01
    num_labels: 2

dist-params:
    nodes: 1
    gpus: 2
    current_node: 0
    master_addr: '10.100.69.32'
    master_port: '1234'
)";

class Foreign : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, std::string text, const std::string& from = "",
                              const std::string& to = "") const {
    if (!from.empty()) {
      EXPECT_NE(text.find(from), std::string::npos) << from;
      text.replace(text.find(from), from.size(), to);
    }
    write_file_atomic(folder_.path() / name, text);
    return folder_.path() / name;
  }
  Recipe recipe(const ForeignConfig& foreign, const std::string& yaml = "output: run\n",
                const std::vector<std::string>& overrides = {}) const {
    return load_recipe(write("recipe.yaml", yaml), overrides, {}, foreign);
  }
  template <class Action>
  static std::string refusal(const Action& action) {
    try {
      action();
      return "no error";
    } catch (const ConfigError& error) {
      return error.what();
    }
  }
  std::string deepspeed_refusal(const std::string& from, const std::string& to) const {
    return refusal([&] { read_deepspeed(write("ds.json", zero2_json, from, to)); });
  }
  std::string accelerate_refusal(const std::string& from, const std::string& to) const {
    return refusal([&] { recipe(read_accelerate(write("a.yaml", fsdp_yaml, from, to))); });
  }

  TempFolder folder_;
};

TEST_F(Foreign, ADeepSpeedFileSetsARecipe) {
  const ForeignConfig foreign = read_deepspeed(write("ds.json", zero2_json));
  const Recipe set = recipe(foreign);
  EXPECT_EQ(set.training.strategy, "zero2");
  EXPECT_EQ(set.training.precision, "bf16");
  EXPECT_EQ(set.training.max_grad_norm, 0.5);
  EXPECT_EQ(resolve(topology_request(set), equal_hosts(1, 2)).batch.global_batch_size, 8 * 4 * 2);
  const auto& adamw = set.optimizer.as<optim::AdamwOptions>();
  EXPECT_EQ(adamw.lr, 3e-5);
  EXPECT_EQ(adamw.betas[1], 0.98);
  EXPECT_EQ(adamw.weight_decay, 0.01) << "auto is the recipe's value";
  EXPECT_EQ(set.scheduler.type, "LinearWithWarmup");
  EXPECT_EQ(set.scheduler.value("num_warmup_steps"), 7);
  EXPECT_EQ(set.origins.label("training.max_grad_norm"),
            (folder_.path() / "ds.json").string() + ":45:26: gradient_clipping: training.max_grad_norm");
  EXPECT_THAT(foreign.notes, SizeIs(9));
  EXPECT_THAT(foreign.notes,
              Contains(has_all("ds.json:39:25: zero_optimization.overlap_comm:", "training.bucket_mb")));
}

TEST_F(Foreign, StagesAreStrategies) {
  const std::pair<const char*, const char*> stages[] = {
      {"0", "ddp"}, {"1", "zero1"}, {"2", "zero2"}, {"3", "fsdp"}};
  for (const auto& [stage, strategy] : stages) {
    const auto file = write("ds.json", zero2_json, "\"stage\": 2", std::string("\"stage\": ") + stage);
    EXPECT_EQ(recipe(read_deepspeed(file)).training.strategy, strategy);
  }
  EXPECT_EQ(recipe(read_deepspeed(write("ds.json", "{}"))), recipe({}));
  const Recipe tabs =
      recipe(read_deepspeed(write("ds.json", "{\n\t\"zero_optimization\":\t{\"stage\": 1}\n}\n")));
  EXPECT_EQ(tabs.training.strategy, "zero1");
}

TEST_F(Foreign, DeepSpeedsAdamIsAdamwByDefault) {
  const auto type_of = [&](const std::string& optimizer) {
    return recipe(read_deepspeed(write("ds.json", "{\"optimizer\": " + optimizer + "}"))).optimizer;
  };
  EXPECT_EQ(type_of(R"({"type": "Adam"})").type, "AdamW");
  EXPECT_EQ(type_of(R"({"type": "Adam"})").as<optim::AdamwOptions>().weight_decay, 0)
      << "DeepSpeed's default";
  EXPECT_EQ(type_of(R"({"type": "Adam", "params": {"adam_w_mode": false}})").type, "Adam");
  EXPECT_EQ(
      type_of(R"({"type": "AdamW", "params": {"weight_decay": 0.1}})").as<optim::AdamwOptions>().weight_decay,
      0.1);
  EXPECT_EQ(recipe(read_deepspeed(folder_.path() / "ds.json"), "optimizer: {weight_decay: 0.1}\n")
                .optimizer.as<optim::AdamwOptions>()
                .weight_decay,
            0.1);
}

TEST_F(Foreign, DeepSpeedsLambCorrectsTheStep) {
  const auto optimizer_of = [&](const std::string& optimizer) {
    return recipe(read_deepspeed(write("ds.json", "{\"optimizer\": " + optimizer + "}"))).optimizer;
  };
  EXPECT_EQ(optimizer_of(R"({"type": "Lamb"})").as<optim::LambOptions>(),
            (optim::LambOptions{.bias_correction = "step"}));
  const auto params = R"({"type": "Lamb", "params": {"lr": 0.011, "bias_correction": false, "max_coeff": 0.3,
                          "min_coeff": 0.02, "weight_decay": 0.01}})";
  EXPECT_EQ(optimizer_of(params).as<optim::LambOptions>(), (optim::LambOptions{.lr = 0.011,
                                                                               .weight_decay = 0.01,
                                                                               .bias_correction = "none",
                                                                               .max_coeff = 0.3,
                                                                               .min_coeff = 0.02}));
  EXPECT_THAT([&] { optimizer_of(R"({"type": "Adam", "params": {"bias_correction": false}})"); },
              testing::ThrowsMessage<ConfigError>(
                  has_all("optimizer.params.bias_correction:", "always corrects the bias")));
}

TEST_F(Foreign, UnsupportedValuesAreRefusedWithAReason) {
  EXPECT_THAT(
      deepspeed_refusal("\"device\": \"none\"", "\"device\": \"cpu\""),
      has_all("ds.json:34:23: zero_optimization.offload_optimizer.device:", "\"cpu\"", "set device to none"));
  EXPECT_THAT(deepspeed_refusal("\"stage\": 2", "\"stage\": 4"),
              has_all("ds.json:32:18: zero_optimization.stage:", "\"4\"", "0, 1, 2, 3"));
  EXPECT_THAT(deepspeed_refusal("\"AdamW\"", "\"Lion\""),
              has_all("ds.json:", "optimizer.type:", "\"Lion\"", "Adam, AdamW or Lamb"));
  EXPECT_THAT(deepspeed_refusal("\"WarmupDecayLR\"", "\"OneCycle\""),
              has_all("ds.json:", "scheduler.type:", "\"OneCycle\"", "WarmupLR or WarmupDecayLR"));
  EXPECT_THAT(deepspeed_refusal("gradient_clipping", "gradient_cliping"),
              has_all("ds.json:45:5: gradient_cliping:", "did you mean \"gradient_clipping\"?"));
  EXPECT_THAT(deepspeed_refusal("\"stage\": 2", "\"stage\": [2]"),
              has_all("ds.json:32:18: zero_optimization.stage:", "expected a value", "list"));
  EXPECT_THAT(deepspeed_refusal("{\n        \"enabled\": true\n    }", "true"),
              has_all("ds.json:", "bf16: ", "section"));
  EXPECT_THAT(deepspeed_refusal("wall_clock_breakdown\": false", "train_batch_size\": 3"),
              has_all("ds.json:49:5:", "\"train_batch_size\"", "ds.json:47:5;"));
  EXPECT_THAT(refusal([&] { read_deepspeed(folder_.path() / "none.json"); }),
              has_all("none.json:", "no such file", "configuration of DeepSpeed"));
  EXPECT_THAT(refusal([&] { recipe(read_deepspeed(write("ds.json", "{\"gradient_clipping\": \"much\"}"))); }),
              has_all("ds.json:1:23: gradient_clipping", "\"much\""));
}

TEST_F(Foreign, ContradictionsNameBothPlaces) {
  const ForeignConfig foreign = read_deepspeed(write("ds.json", zero2_json));
  EXPECT_THAT(refusal([&] { recipe(foreign, "training: {strategy: zero1}\n"); }),
              has_all("ds.json:32:18: zero_optimization.stage:", "training.strategy: \"zero2\"",
                      "recipe.yaml:1:22) is \"zero1\"", "remove one"));
  EXPECT_THAT(refusal([&] { recipe(foreign, "output: run\n", {"optimizer.lr=1e-4"}); }),
              has_all("ds.json:", "optimizer.params.lr:", "optimizer.lr: 3e-05",
                      "(--set optimizer.lr=1e-4) is 0.0001"));
  EXPECT_EQ(recipe(foreign, "training: {strategy: deepspeed-2, max_grad_norm: 0.50}\n").training.strategy,
            "zero2")
      << "the same, under another name";
  EXPECT_THAT(refusal([&] { recipe(foreign, "training: {strategy: zero2-fp32}\n"); }),
              has_all("ds.json:", "bf16.enabled", "recipe.yaml:1:"));
  EXPECT_THAT(refusal([&] {
                recipe(read_deepspeed(
                    write("ds.json", zero2_json, "\"warmup_max_lr\": \"auto\"", "\"warmup_max_lr\": 1e-3")));
              }),
              has_all("scheduler.params.warmup_max_lr:", "optimizer.lr: 1e-3",
                      "optimizer.params.lr sets 3e-5", "remove one"));
  const Recipe batches = recipe(foreign, "training: {global_batch_size: 100}\n");
  EXPECT_THAT(refusal([&] { resolve(topology_request(batches), equal_hosts(1, 2)); }),
              HasSubstr("training.batch_size (" + (folder_.path() / "ds.json").string() +
                        ":48:39: train_micro_batch_size_per_gpu)"));
}

TEST_F(Foreign, AnAccelerateFileSetsARecipeAndItsRanks) {
  const ForeignConfig foreign = read_accelerate(write("a.yaml", fsdp_yaml));
  const Recipe set = recipe(foreign);
  EXPECT_EQ(set.training.strategy, "fsdp");
  EXPECT_EQ(set.training.precision, "bf16");
  EXPECT_EQ(set.training.device, "cpu");
  EXPECT_EQ(foreign.ranks, 2);
  EXPECT_THAT(foreign.notes,
              Contains(has_all("a.yaml:8:26: fsdp_config.fsdp_auto_wrap_policy:", "blocks of the model")));
  for (const auto& [sharding, strategy] :
       {std::pair("HYBRID_SHARD", "hsdp"), {"SHARD_GRAD_OP", "zero2"}, {"NO_SHARD", "ddp"}}) {
    EXPECT_EQ(recipe(read_accelerate(write("a.yaml", fsdp_yaml, "FULL_SHARD", sharding))).training.strategy,
              strategy);
  }
  EXPECT_EQ(recipe(read_accelerate(write("a.yaml", fsdp_yaml, "activation_checkpointing: false",
                                         "activation_checkpointing: true")))
                .training.activation_checkpointing,
            1);

  const ForeignConfig zero1 = read_accelerate(write("a.yaml", deepspeed_yaml));
  EXPECT_EQ(recipe(zero1).training.strategy, "zero1");
  EXPECT_EQ(recipe(zero1).training.grad_accumulation_steps, 2);
  EXPECT_EQ(recipe(zero1).training.device, "auto");
  EXPECT_EQ(zero1.ranks, 4);
  EXPECT_EQ(recipe(read_accelerate(write("a.yaml", "distributed_type: MULTI_CPU\n"))).training.strategy,
            "ddp");
}

TEST_F(Foreign, Fp16HasDeepSpeedsLossScale) {
  const auto read_fp16 = [&](const std::string& keys) {
    return recipe(read_deepspeed(write("f.json", "{\"fp16\": {\"enabled\": true" + keys + "}}")));
  };
  const Recipe defaults = read_fp16("");
  EXPECT_EQ(defaults.training.precision, "fp16");
  EXPECT_EQ(defaults.loss_scale.init_scale, 65'536);
  EXPECT_EQ(defaults.loss_scale.growth_interval, 1000);
  EXPECT_EQ(defaults.loss_scale.hysteresis, 2);
  EXPECT_EQ(defaults.loss_scale.min_scale, 1);
  EXPECT_TRUE(defaults.loss_scale.dynamic);
  const Recipe given = read_fp16(
      R"(, "initial_scale_power": 8, "loss_scale_window": 50, "hysteresis": 1, "min_loss_scale": 0.5)");
  EXPECT_EQ(given.loss_scale.init_scale, 256);
  EXPECT_EQ(given.loss_scale.growth_interval, 50);
  EXPECT_EQ(given.loss_scale.hysteresis, 1);
  EXPECT_EQ(given.loss_scale.min_scale, 0.5);
  const Recipe fixed = read_fp16(R"(, "loss_scale": 1024, "initial_scale_power": 8)");
  EXPECT_EQ(fixed.loss_scale.init_scale, 1024);
  EXPECT_FALSE(fixed.loss_scale.dynamic);
  const ForeignConfig over_recipe = read_deepspeed(write("f.json", R"({"fp16": {"enabled": true}})"));
  EXPECT_EQ(recipe(over_recipe, "loss_scale: {hysteresis: 1}\n").loss_scale.hysteresis, 1)
      << "a default of the tool, which the recipe may override";
  const char* both = R"({"fp16": {"enabled": true}, "bf16": {"enabled": false}})";
  EXPECT_EQ(recipe(read_deepspeed(write("f.json", both))).training.precision, "fp16");
  const char* none = R"({"fp16": {"enabled": false, "loss_scale": 0}, "bf16": {"enabled": false}})";
  EXPECT_EQ(recipe(read_deepspeed(write("f.json", none))).training.precision, "fp32");
  EXPECT_EQ(recipe(read_accelerate(write("a.yaml", "mixed_precision: fp16\n"))).training.precision, "fp16");
}

TEST_F(Foreign, OptimizerStateIsOffloadedToFiles) {
  const char* deepspeed = R"({"zero_optimization": {"stage": 2,
    "offload_optimizer": {"device": "nvme", "nvme_path": "/nvme", "buffer_count": 4}}})";
  EXPECT_EQ(recipe(read_deepspeed(write("d.json", deepspeed))).training.offload_optimizer, "/nvme");
  const char* unused =
      R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "none", "nvme_path": "/nvme"}}})";
  EXPECT_FALSE(recipe(read_deepspeed(write("d.json", unused))).training.offload_optimizer);
  std::string accelerate =
      "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\n"
      "  offload_optimizer_device: nvme\n";
  Recipe in_output = recipe(read_accelerate(write("a.yaml", accelerate)));
  in_output.output = "runs/here";
  EXPECT_EQ(offload_folder(in_output), "runs/here") << "without a folder";
  const char* without = R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "nvme"}}})";
  EXPECT_EQ(recipe(read_deepspeed(write("d.json", without))).training.offload_optimizer, in_output_folder);
  accelerate += "  offload_optimizer_nvme_path: /nvme\n";
  EXPECT_EQ(recipe(read_accelerate(write("a.yaml", accelerate))).training.offload_optimizer, "/nvme");
}

TEST_F(Foreign, BlocksAreWrappedBySize) {
  const auto minimum = [&](const std::string& policy) {
    return recipe(read_accelerate(write("a.yaml",
                                        "distributed_type: FSDP\nfsdp_config:\n"
                                        "  fsdp_sharding_strategy: FULL_SHARD\n"
                                        "  fsdp_auto_wrap_policy: " +
                                            policy + "\n  fsdp_min_num_params: 2000\n")))
        .training.wrap_min_parameters;
  };
  EXPECT_EQ(minimum("SIZE_BASED_WRAP"), 2000);
  EXPECT_EQ(minimum("TRANSFORMER_BASED_WRAP"), 0);
}

TEST_F(Foreign, VersionTwoOfFsdpHasAnotherKey) {
  const auto strategy = [&](const std::string& value) {
    return recipe(read_accelerate(write("a.yaml",
                                        "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n"
                                        "  fsdp_reshard_after_forward: " +
                                            value + "\n")))
        .training.strategy;
  };
  EXPECT_EQ(strategy("true"), "fsdp");
  EXPECT_EQ(strategy("false"), "zero2");
}

TEST_F(Foreign, AnAccelerateFileMayNameADeepSpeedFile) {
  const auto json = write("ds.json", zero2_json);
  const ForeignConfig foreign = read_accelerate(write(
      "a.yaml",
      "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: " + json.string() + "\n"));
  EXPECT_EQ(recipe(foreign).training.strategy, "zero2");
  EXPECT_EQ(recipe(foreign).training.max_grad_norm, 0.5);
}

TEST_F(Foreign, UnsupportedAccelerateValuesAreRefused) {
  EXPECT_THAT(accelerate_refusal("mixed_precision: bf16", "mixed_precision: fp8"),
              has_all("a.yaml:20:18: mixed_precision:", "\"fp8\"", "use bf16"));
  EXPECT_THAT(accelerate_refusal("fsdp_offload_params: false", "fsdp_offload_params: true"),
              has_all("a.yaml:12:24: fsdp_config.fsdp_offload_params:", "\"true\"", "use false"));
  EXPECT_THAT(accelerate_refusal("num_machines: 1", "num_machines: 3"),
              has_all("num_processes: 2 ranks", "3 hosts (", "a.yaml:21:15: num_machines)"));
  EXPECT_THAT(accelerate_refusal("num_machines: 1", "num_machines: 0"),
              has_all("a.yaml:21:15: num_machines:", "\"0\"", "1 to 4096"));
  EXPECT_THAT(accelerate_refusal("distributed_type: FSDP", "distributed_type: MEGATRON_LM"),
              has_all("a.yaml:3:19: distributed_type:", "\"MEGATRON_LM\"",
                      "NO, MULTI_CPU, MULTI_GPU, DEEPSPEED or FSDP"));
  EXPECT_THAT(accelerate_refusal("fsdp_sync_module_states", "fsdp_sync_module_state"),
              has_all("a.yaml:15:3: fsdp_config.fsdp_sync_module_state:",
                      "did you mean \"fsdp_config.fsdp_sync_module_states\"?"));
  EXPECT_THAT(accelerate_refusal("num_processes: 2", "num_processes: two"),
              has_all("a.yaml:22:16: num_processes:", "\"two\"", "ranks", "1 to 4096"));
}

TEST_F(Foreign, ParametersOfPytorchUniversalTrainerSetARecipe) {
  const ForeignConfig foreign = read_universal_trainer(write("parameters.yml", parameters_yml));
  const Recipe set = recipe(foreign, "data: {train: a.tsv}\n");
  EXPECT_EQ(set.training.strategy, "fsdp");
  EXPECT_EQ(set.training.precision, "fp32");
  const auto half =
      write("parameters.yml", parameters_yml, "use_native_fp16: False", "use_native_fp16: True");
  EXPECT_EQ(recipe(read_universal_trainer(half), "data: {train: a.tsv}\n").training.precision, "fp16");
  EXPECT_EQ(set.training.batch_size, 256);
  EXPECT_EQ(set.training.epochs, 3);
  EXPECT_EQ(set.optimizer.as<optim::AdamwOptions>().lr, 2e-5);
  EXPECT_EQ(set.output, "models/bart_base_sst_baseline");
  EXPECT_EQ(set.resume, "auto");
  EXPECT_EQ(foreign.ranks, 2);
  EXPECT_EQ(foreign.hosts.nodes, 1);
  EXPECT_EQ(foreign.hosts.node_rank, 0);
  EXPECT_EQ(foreign.hosts.master_addr, "10.100.69.32");
  EXPECT_EQ(foreign.hosts.master_port, 1234);
  EXPECT_THAT(foreign.notes, Contains(has_all("use_fairscale_autowrap:", "blocks of the model")));

  const auto strategy = [&](const std::string& from, const std::string& to) {
    return recipe(read_universal_trainer(write("parameters.yml", parameters_yml, from, to)),
                  "data: {train: a.tsv}\n")
        .training.strategy;
  };
  EXPECT_EQ(strategy("use_fairscale_reshard_forward: True", "use_fairscale_reshard_forward: False"), "zero2");
  EXPECT_EQ(strategy("use_fairscale_model_sharding: True", "use_fairscale_model_sharding: False"), "ddp");
  EXPECT_EQ(strategy("optimizer_sharding: False\n    use_fairscale_model_sharding: True",
                     "optimizer_sharding: True\n    use_fairscale_model_sharding: False"),
            "zero2");
}

TEST_F(Foreign, UnsupportedParametersAreRefused) {
  const auto refuses = [&](const std::string& from, const std::string& to) {
    return refusal(
        [&] { recipe(read_universal_trainer(write("parameters.yml", parameters_yml, from, to))); });
  };
  EXPECT_THAT(refuses("optimizer_sharding: False", "optimizer_sharding: True"),
              has_all("parameters.yml:14:35: transformers-params.use_fairscale_model_sharding:", "\"True\"",
                      "use_fairscale_optimizer_sharding: True"));
  EXPECT_THAT(refuses("is_distributed: True", "is_distributed: False"),
              has_all("parameters.yml:", "is_distributed: True"));
  EXPECT_THAT(refuses("nodes: 1", "nodes: two"),
              has_all("parameters.yml:30:12: dist-params.nodes:", "\"two\"", "1 to 4096"));
  EXPECT_THAT(refuses("mode: 'train'", "mode: 'test'"),
              has_all("parameters.yml:6:11: transformers-params.mode:", "\"test\"", "`stretto test`"));
}

ForeignConfig hps(const std::string& text) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "hps_config.yaml", text);
  return read_hps(folder.path() / "hps_config.yaml");
}

std::vector<std::string> settings_of(const ForeignConfig& config) {
  std::vector<std::string> settings;
  for (const ForeignSetting& setting : config.settings)
    settings.push_back(setting.name + "=" + setting.value + (setting.implied ? " implied" : ""));
  return settings;
}

TEST(Hps, IsTranslatedToSettings) {
  EXPECT_THAT(settings_of(hps(R"(hps:
  epochs: 40
  batch_size: 35
  optimizer:
    type: AdamW
    lr: "1e-3"
    betas: [0.9, 0.98]
  scheduler:
    type: OneCycleLR
    max_lr: 1e-3
)")),
              testing::ElementsAre("training.epochs=40", "training.batch_size=35", "optimizer.type=AdamW",
                                   "optimizer.lr=1e-3", "optimizer.betas=[0.9, 0.98]",
                                   "scheduler.type=OneCycleLR", "scheduler.max_lr=1e-3"));
  const ForeignConfig other = hps(
      "hps: {max_steps: 100, batch_size: [32, 64], optim: {type: SGD}, scheduler: {type: LinearWithWarmup, num_warmup_steps: 0.1, num_training_steps: 7}}");
  EXPECT_THAT(
      settings_of(other),
      testing::ElementsAre("training.max_steps=100", "training.batch_size=32", "evaluate.batch_size=64",
                           "optimizer.type=SGD", "scheduler.type=LinearWithWarmup",
                           "scheduler.warmup_ratio=0.1", "training.epochs=1 implied"));
  EXPECT_THAT(other.notes,
              testing::ElementsAre(has_all("hps.scheduler.num_training_steps:", "length of the run")));
  EXPECT_THAT(settings_of(hps("hps: {epochs: 2}")),
              testing::ElementsAre("training.epochs=2", "scheduler.type=Constant implied"));
}

TEST(Hps, MistakesAreRefusedWithTheirPlace) {
  const auto refuses = [](const std::string& text, const auto&... parts) {
    EXPECT_THAT([&] { hps(text); }, testing::ThrowsMessage<ConfigError>(has_all(parts...))) << text;
  };
  refuses("epochs: 3", "hps_config.yaml:1:", "section hps");
  refuses("hps: {epoch: 3}", "hps_config.yaml:1:7: hps.epoch:", "did you mean \"hps.epochs\"?");
  refuses("hps: {optimizer: AdamW}", "hps_config.yaml:1:18: hps.optimizer:", "\"AdamW\"", "keys");
  refuses("hps: {batch_size: [1, 2, 3]}", "hps_config.yaml:1:19: hps.batch_size:", "one number", "two");
  refuses("hps: {step_scheduler_per_epoch: true}",
          "hps_config.yaml:1:33: hps.step_scheduler_per_epoch:", "optimizer steps");
  const TempFolder folder;
  write_file_atomic(folder.path() / "r.yaml", "{}");
  write_file_atomic(folder.path() / "hps.yaml", "hps:\n  optimizer: {type: AdamW, learning_rate: 1}\n");
  EXPECT_THAT([&] { load_recipe(folder.path() / "r.yaml", {}, {}, read_hps(folder.path() / "hps.yaml")); },
              testing::ThrowsMessage<ConfigError>(
                  has_all("hps.yaml:2:43: hps.optimizer.learning_rate:", "known here: type, lr,")));
}

}  // namespace
}  // namespace stretto::compat
