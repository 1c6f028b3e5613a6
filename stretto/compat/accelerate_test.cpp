#include "stretto/base/strings.h"
#include "stretto/compat/foreign_support.h"

namespace stretto::compat {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

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

TEST_F(Foreign, AParallelismConfigIsAStrategy) {
  const auto load = [&](const std::string& sizes, const std::string& from = "", const std::string& to = "") {
    std::string text = std::string(fsdp_yaml) + "parallelism_config:\n";
    for (const std::string_view size : split(sizes, ' '))
      text += fmt::format("  parallelism_config_{}\n", size);
    text.replace(text.find("num_processes: 2"), 16, "num_processes: 4");
    for (size_t at = text.find('='); at != std::string::npos; at = text.find('=')) text.replace(at, 1, ": ");
    return read_accelerate(write("a.yaml", text, from, to));
  };
  const Recipe hybrid = recipe(load("dp_replicate_size=2 dp_shard_size=2 tp_size=1 cp_size=1"));
  EXPECT_EQ(hybrid.training.strategy, "hsdp");
  EXPECT_EQ(hybrid.training.dp_shard, 2);
  EXPECT_TRUE(hybrid.training.reshard_after_forward);
  EXPECT_FALSE(recipe(load("dp_replicate_size=2 dp_shard_size=2", "FULL_SHARD", "SHARD_GRAD_OP"))
                   .training.reshard_after_forward);
  EXPECT_EQ(recipe(load("dp_replicate_size=1 dp_shard_size=4")).training.strategy, "fsdp");
  EXPECT_EQ(recipe(load("dp_replicate_size=4")).training.strategy, "ddp");
  EXPECT_EQ(load("dp_replicate_size=2 dp_shard_size=2", "num_processes: 4\n").ranks, 4);
  const auto refuses = [&](const std::string& sizes, const auto&... parts) {
    EXPECT_THAT(refusal([&] { load(sizes); }), has_all("a.yaml:", "parallelism_config.", parts...)) << sizes;
  };
  refuses("dp_shard_size=2", "dp_shard_size:", "\"2\"", "num_processes is 4");
  const Recipe divided = recipe(load("dp_replicate_size=2 tp_size=2"));
  EXPECT_EQ(divided.training.strategy, "ddp");
  EXPECT_EQ(divided.training.mesh.tp, 2);
  EXPECT_EQ(recipe(load("tp_size=4")).training.mesh.tp, 4);
  refuses("tp_size=2", "tp_size:", "\"2\"",
          "dp_replicate 1 x dp_shard 1 x tp 2 = 2 ranks, but num_processes is 4");
  refuses("cp_size=8", "cp_size:", "context parallelism");
  refuses("sp_size=2 sp_backend=deepspeed", "sp_size:", "sequence parallelism");
  refuses("dp_shard_size=two", "dp_shard_size:", "\"two\"", "number");
  refuses("dp_size=2", "dp_size: the key is unknown");
}

TEST_F(Foreign, HybridShardZero2KeepsParametersUntilBackward) {
  const Recipe set = recipe(read_accelerate(write("a.yaml", fsdp_yaml, "FULL_SHARD", "HYBRID_SHARD_ZERO2")));
  EXPECT_EQ(set.training.strategy, "hsdp");
  EXPECT_FALSE(set.training.reshard_after_forward);
  EXPECT_EQ(recipe(read_accelerate(write("a.yaml", fsdp_yaml, "FULL_SHARD", "5"))).training.strategy, "hsdp");
  EXPECT_THAT(accelerate_refusal("FULL_SHARD", "FULL_SHART"), has_all("did you mean \"FULL_SHARD\"?"));
}

TEST_F(Foreign, OtherKindsOfJobsAreNamed) {
  EXPECT_THAT(accelerate_refusal("LOCAL_MACHINE", "AMAZON_SAGEMAKER\nec2_instance_type: ml.p3"),
              has_all("a.yaml:1:22: compute_environment:", "training container"));
  EXPECT_THAT(accelerate_refusal("distributed_type: FSDP", "distributed_type: MULTI_XPU"),
              has_all("a.yaml:3:19: distributed_type:", "these devices"));
  const ForeignConfig mpi = read_accelerate(write(
      "a.yaml", fsdp_yaml, "use_cpu: true", "use_cpu: true\nmpirun_config:\n  mpirun_hostfile: /hosts"));
  EXPECT_THAT(mpi.mpirun_place, HasSubstr("mpirun_config.mpirun_hostfile"));
  EXPECT_EQ(mpi.mpirun_hostfile, "/hosts");
  const ForeignConfig gpus = read_accelerate(write("a.yaml", fsdp_yaml, "use_cpu: true", "gpu_ids: 0,2"));
  EXPECT_EQ(gpus.visible_devices, "0,2");
  EXPECT_THAT(accelerate_refusal("use_cpu: true", "gpu_ids: first"), has_all("gpu_ids:", "\"first\"", "0,1"));
  EXPECT_EQ(read_deepspeed(write("ds.json", R"({"cuda_visible_devices": "1"})")).visible_devices, "1");
}

TEST_F(Foreign, TheSectionOfAnotherKindIsNotRead) {
  const ForeignConfig foreign = read_accelerate(
      write("a.yaml",
            "distributed_type: 'NO'\nnum_processes: 1\nfsdp_config:\n  fsdp_sync_module_states: false\n"
            "deepspeed_config:\n  deepspeed_config_file: path/to/nothing\n"));
  EXPECT_EQ(recipe(foreign).training.strategy, "ddp");
  EXPECT_THAT(foreign.notes, SizeIs(2));
  EXPECT_THAT(foreign.notes, Contains(has_all("deepspeed_config: it is ignored: distributed_type is NO")));
}

TEST_F(Foreign, OfARepeatedKeyTheLastValueCounts) {
  const ForeignConfig foreign =
      read_accelerate(write("a.yaml", "num_processes: 1\ndistributed_type: MULTI_CPU\nnum_processes: 2\n"));
  EXPECT_EQ(foreign.ranks, 2);
  EXPECT_THAT(foreign.warnings, testing::ElementsAre(has_all("a.yaml:3:1: the key \"num_processes\"",
                                                             "a.yaml:1:1", "no effect")));
}

TEST_F(Foreign, ADeepSpeedFileIsSearchedForNextToTheFileThatNamesIt) {
  write("ds.json", R"({"zero_optimization": {"stage": 1}})");
  const std::string yaml = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ";
  EXPECT_EQ(recipe(read_accelerate(write("a.yaml", yaml + "ds.json\n"))).training.strategy, "zero1");
  EXPECT_THAT(
      refusal([&] { read_accelerate(write("a.yaml", yaml + "gone.json\n")); }),
      has_all("a.yaml:3:26: deepspeed_config.deepspeed_config_file:", "\"gone.json\"", "no such file"));
}

// Every key of accelerate's command `config` and of its classes of configurations.
constexpr const char* documented_accelerate = R"(compute_environment: LOCAL_MACHINE
debug: false
distributed_type: FSDP
mixed_precision: bf16
use_cpu: true
num_processes: 2
num_machines: 1
machine_rank: 0
gpu_ids: all
main_process_ip: null
main_process_port: null
rdzv_backend: static
same_network: true
main_training_function: main
enable_cpu_affinity: false
num_cpu_threads_per_process: 1
fp16: false
downcast_bf16: 'no'
dynamo_config: {dynamo_backend: INDUCTOR, dynamo_mode: default, dynamo_use_dynamic: false,
  dynamo_use_fullgraph: false,
  dynamo_use_regional_compilation: false}
ipex_config: {ipex: true, use_xpu: false}
mpirun_config: {mpirun_hostfile: null, mpirun_ccl: '1'}
megatron_lm_config: {megatron_lm_tp_degree: 1}
tp_config: {tp_size: 1}
fp8_config: {backend: TE, amax_compute_algo: max, amax_history_len: 1024, fp8_format: E4M3, interval: 1,
  margin: 0,
  override_linear_precision: [false, false, false], use_autocast_during_eval: false, opt_level: O2,
  enable_fsdp_float8_all_gather: true, pad_inner_dim: true, use_mxfp8_block_scaling: false}
parallelism_config: {parallelism_config_dp_replicate_size: 1, parallelism_config_dp_shard_size: 2,
  parallelism_config_tp_size: 1, parallelism_config_cp_size: 1, parallelism_config_cp_backend: torch,
  parallelism_config_cp_comm_strategy: allgather, parallelism_config_sp_size: 1,
  parallelism_config_sp_backend: deepspeed,
  parallelism_config_sp_seq_length: 128, parallelism_config_sp_seq_length_is_variable: true,
  parallelism_config_sp_attn_implementation: sdpa}
fsdp_config:
  fsdp_version: 2
  fsdp_reshard_after_forward: true
  fsdp_offload_params: false
  fsdp_cpu_offload: false
  fsdp_auto_wrap_policy: SIZE_BASED_WRAP
  fsdp_min_num_params: 1000
  fsdp_transformer_layer_cls_to_wrap: BertLayer
  fsdp_backward_prefetch: BACKWARD_PRE
  fsdp_backward_prefetch_policy: BACKWARD_PRE
  fsdp_forward_prefetch: false
  fsdp_state_dict_type: SHARDED_STATE_DICT
  fsdp_use_orig_params: true
  fsdp_cpu_ram_efficient_loading: true
  fsdp_sync_module_states: true
  fsdp_activation_checkpointing: false
  fsdp_ignored_modules: null
deepspeed_config:
  zero_stage: 3
tpu_name: null
tpu_zone: null
tpu_use_cluster: false
tpu_use_sudo: false
tpu_vm: [a]
tpu_env: [b]
commands: [c]
command_file: d
image_uri: e
region: us-east-1
)";

TEST_F(Foreign, EveryDocumentedKeyOfAccelerateIsKnown) {
  const Recipe set = recipe(read_accelerate(write("a.yaml", documented_accelerate)));
  EXPECT_EQ(set.training.strategy, "fsdp");
  EXPECT_EQ(set.training.wrap_min_parameters, 1000);
  const Recipe deepspeed = recipe(read_accelerate(write("a.yaml", R"(distributed_type: DEEPSPEED
deepspeed_config: {zero_stage: 3, gradient_accumulation_steps: 2, gradient_clipping: 0.5,
  offload_optimizer_device: none,
  offload_param_device: none, offload_optimizer_nvme_path: none, offload_param_nvme_path: none,
  zero3_init_flag: true,
  zero3_save_16bit_model: true, deepspeed_hostfile: h, deepspeed_multinode_launcher: pdsh,
  deepspeed_exclusion_filter: e,
  deepspeed_inclusion_filter: i, deepspeed_moe_layer_cls_names: m, seq_parallel_communication_data_type: bf16}
)")));
  EXPECT_EQ(deepspeed.training.strategy, "fsdp");
  EXPECT_EQ(deepspeed.training.max_grad_norm, 0.5);
}

}  // namespace
}  // namespace stretto::compat
