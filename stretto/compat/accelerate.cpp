#include <algorithm>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/compat/keys.h"

// Reads the file that `accelerate config` writes.
namespace stretto::compat {
namespace {

const char* const launcher =
    "the ranks of one host are started here; srun and torchrun start those of several (docs/guide/launch.md)";
const char* const own_prefetch =
    "on one host parameters are shared; between hosts the next block is always gathered ahead";
const char* const own_format =
    "checkpoints have one format for all strategies, and `stretto convert` exports the model";
const char* const no_compiler = "models are not compiled";
const char* const no_tpu = "there is no support for TPUs";

void mixed_precision(const Value& value, ForeignConfig& config) {
  if (value.text() == "fp8") refuse(value, "it requires GPUs with fp8 instructions; use bf16");
  if (value.text() == "bf16" || value.text() == "fp16")
    return set(config, value, "training.precision", value.text());
  if (value.text() != "no" && value.text() != "false") refuse(value, "expected no, bf16 or fp16");
  set(config, value, "training.precision", "fp32");
}

void use_cpu(const Value& value, ForeignConfig& config) {
  if (value.is_true()) set(config, value, "training.device", "cpu");
}

void fp16_flag(const Value& value, ForeignConfig&) {
  if (value.is_true()) refuse(value, "this spelling is that of old files; use mixed_precision");
}

// -1 leaves the number of processes to the command line.
void process_count(const Value& value, ForeignConfig& config) {
  if (value.text() != "-1") rank_count(value.key).use(value, config);
}

void sharding_strategy(const Value& value, ForeignConfig& config) {
  struct Meaning {
    std::string_view name, number, strategy;
    bool keeps_parameters = false;  // from the forward pass to the backward pass
  };
  constexpr Meaning meanings[] = {{"FULL_SHARD", "1", "fsdp"},
                                  {"SHARD_GRAD_OP", "2", "zero2"},
                                  {"NO_SHARD", "3", "ddp"},
                                  {"HYBRID_SHARD", "4", "hsdp"},
                                  {"HYBRID_SHARD_ZERO2", "5", "hsdp", true}};
  const auto found = std::ranges::find_if(meanings, [&](const Meaning& meaning) {
    return value.text() == meaning.name || value.text() == meaning.number;
  });
  if (found == std::end(meanings)) {
    std::vector<std::string> names;
    for (const Meaning& meaning : meanings) names.emplace_back(meaning.name);
    refuse(value,
           fmt::format("expected one of {}{}", fmt::join(names, ", "), did_you_mean(value.text(), names)));
  }
  set(config, value, "training.strategy", std::string(found->strategy));
  if (found->keeps_parameters) set(config, value, "training.reshard_after_forward", "false");
}

// In FSDP version 2 the key is a boolean; in version 1, newer files have the name of the strategy instead.
void reshard(const Value& value, ForeignConfig& config) {
  const std::string& text = value.text();
  const bool keeps = lower_case(text) == "false";
  if (!keeps && lower_case(text) != "true") return sharding_strategy(value, config);
  set(config, value, "training.strategy", keeps ? "zero2" : "fsdp");
}

void offload_parameters(const Value& value, ForeignConfig& config) {
  if (value.is_true()) in_host_memory(value, config);
}

// read_dependent reads the limit of the size-based policy.
void wrap_policy(const Value& value, ForeignConfig& config) {
  if (value.text() != "SIZE_BASED_WRAP") ignored("", own_units).use(value, config);
}

void mpirun_hostfile(const Value& value, ForeignConfig& config) {
  config.mpirun_place = value.place();
  config.mpirun_hostfile = value.text();
}

std::vector<Key> make_accelerate_keys() {
  std::vector<Key> keys = {
      // environment
      read_with_another("compute_environment"),
      read_with_another("distributed_type"),
      {"mixed_precision", mixed_precision},
      {"fp16", fp16_flag},
      {"use_cpu", use_cpu},
      {"num_processes", process_count},
      host_count("num_machines"),
      host_rank("machine_rank"),
      master_address("main_process_ip"),
      master_port("main_process_port"),
      ignored("rdzv_backend", launcher),
      ignored("same_network", launcher),
      ignored("main_training_function", "recipes have no function to call"),
      visible_devices("gpu_ids"),
      ignored("enable_cpu_affinity", "ranks are pinned to cores unless --no-pin is given"),
      ignored("num_cpu_threads_per_process", "the cores of the host are divided among its ranks"),
      only("downcast_bf16", {"no", "false"}, no_tpu),
      only("tpu_use_cluster", {"false"}, no_tpu),
      only("tpu_use_sudo", {"false"}, no_tpu),
      ignored("tpu_env.*", no_tpu),
      ignored("tpu_vm", no_tpu),
      ignored("tpu_name", no_tpu),
      ignored("tpu_zone", no_tpu),
      only("use_mps_device", {"false", "False"}, "there is no support for Apple's GPUs"),
      ignored("debug", "STRETTO_DEBUG=collectives compares the calls of all ranks"),
      ignored("dynamo_backend", no_compiler),
      ignored("dynamo_config.*", no_compiler),
      ignored("ipex_config.*", "Intel's extension of PyTorch is not used"),
      ignored("commands", launcher),
      ignored("command_file", launcher),
      {"mpirun_config.mpirun_hostfile", mpirun_hostfile},
      ignored("mpirun_config.mpirun_ccl", "oneCCL is not used"),
      ignored("fp8_config.*", "it applies to mixed_precision: fp8, which is not available"),
      ignored("megatron_lm_config.*", "it applies to distributed_type: MEGATRON_LM, which is not available"),
      // settings of DeepSpeed
      choice("deepspeed_config.zero_stage", "training.strategy",
             {{"0", "ddp"}, {"1", "zero1"}, {"2", "zero2"}, {"3", "fsdp"}}),
      same_as("deepspeed_config.gradient_accumulation_steps", "training.grad_accumulation_steps"),
      same_as("deepspeed_config.gradient_clipping", "training.max_grad_norm"),
      offload_device("deepspeed_config.offload_optimizer_device"),
      offload_device("deepspeed_config.offload_param_device"),
      read_with_another("deepspeed_config.offload_optimizer_nvme_path"),
      read_with_another("deepspeed_config.offload_param_nvme_path"),
      ignored("deepspeed_config.zero3_init_flag", "models are built on each rank"),
      ignored("deepspeed_config.zero3_save_16bit_model", own_format),
      ignored("deepspeed_config.seq_parallel_communication_data_type",
              "attention does not divide sequences among ranks"),
      read_with_another("deepspeed_config.deepspeed_config_file"),
      ignored("deepspeed_config.deepspeed_hostfile", launcher),
      ignored("deepspeed_config.deepspeed_multinode_launcher", launcher),
      ignored("deepspeed_config.deepspeed_inclusion_filter", launcher),
      ignored("deepspeed_config.deepspeed_exclusion_filter", launcher),
      ignored("deepspeed_config.deepspeed_moe_layer_cls_names", "there are no mixtures of experts"),
      // settings of FSDP
      {"fsdp_config.fsdp_sharding_strategy", sharding_strategy},
      {"fsdp_config.fsdp_reshard_after_forward", reshard},
      ignored("fsdp_config.fsdp_version", "both versions mean the same here"),
      {"fsdp_config.fsdp_offload_params", offload_parameters},
      {"fsdp_config.fsdp_cpu_offload", offload_parameters},
      choice("fsdp_config.fsdp_activation_checkpointing", "training.activation_checkpointing",
             {{"false", "0"}, {"False", "0"}, {"true", "1"}, {"True", "1"}}),
      {"fsdp_config.fsdp_auto_wrap_policy", wrap_policy},
      ignored("fsdp_config.fsdp_transformer_layer_cls_to_wrap", own_units),
      read_with_another("fsdp_config.fsdp_min_num_params"),
      ignored("fsdp_config.fsdp_backward_prefetch", own_prefetch),
      ignored("fsdp_config.fsdp_backward_prefetch_policy", own_prefetch),
      ignored("fsdp_config.fsdp_forward_prefetch", own_prefetch),
      ignored("fsdp_config.fsdp_state_dict_type", own_format),
      ignored("fsdp_config.fsdp_use_orig_params", "parameters keep their names and shapes"),
      ignored("fsdp_config.fsdp_cpu_ram_efficient_loading", "weight files are mapped"),
      ignored("fsdp_config.fsdp_sync_module_states",
              "all ranks load the same weights, which are compared at the start"),
      refused("fsdp_config.fsdp_ignored_modules", "all parameters are sharded; remove this key"),
      // meshes
      read_with_another("parallelism_config.parallelism_config_dp_replicate_size"),
      read_with_another("parallelism_config.parallelism_config_dp_shard_size"),
      layer_ranks("parallelism_config.parallelism_config_tp_size"),
      single("parallelism_config.parallelism_config_cp_size", "context parallelism"),
      single("parallelism_config.parallelism_config_sp_size", "sequence parallelism of attention (Ulysses)"),
      ignored("parallelism_config.parallelism_config_cp_backend", no_sequence),
      ignored("parallelism_config.parallelism_config_cp_comm_strategy", no_sequence),
      ignored("parallelism_config.parallelism_config_sp_backend", no_sequence),
      ignored("parallelism_config.parallelism_config_sp_seq_length", no_sequence),
      ignored("parallelism_config.parallelism_config_sp_seq_length_is_variable", no_sequence),
      ignored("parallelism_config.parallelism_config_sp_attn_implementation", no_sequence),
      layer_ranks("tp_config.tp_size"),
  };
  for (const char* name : {"ec2_instance_type", "iam_role_name", "image_uri", "profile", "region",
                           "base_job_name", "pytorch_version", "transformers_version", "py_version",
                           "sagemaker_inputs_file", "sagemaker_metrics_file", "additional_args"})
    keys.push_back(ignored(name, "it applies to compute_environment: AMAZON_SAGEMAKER"));
  return keys;
}

// Reads settings that apply only with a certain value of another key.
void read_dependent(const settings::YamlNode& document, ForeignConfig& config) {
  const auto text = [&](std::string_view key) {
    const settings::YamlNode* found = find(document, key);
    return found == nullptr ? "" : found->text;
  };
  const auto use = [&](const std::string& key, const std::string& setting) {
    const settings::YamlNode* found = find(document, key);
    if (found != nullptr) set(config, {key, *found}, setting, found->text);
    return found != nullptr;
  };
  if (text("fsdp_config.fsdp_auto_wrap_policy") == "SIZE_BASED_WRAP")
    use("fsdp_config.fsdp_min_num_params", "training.wrap_min_parameters");
  for (const auto& [kind, setting] :
       {std::pair("optimizer", "training.offload_optimizer"), {"param", "training.offload_parameters"}}) {
    const std::string key = fmt::format("deepspeed_config.offload_{}_", kind), device = key + "device";
    if (text(device) != "nvme" || use(key + "nvme_path", setting)) continue;
    set(config, {device, *find(document, device)}, setting, in_output_folder);
  }
}

ForeignSetting* find_setting(ForeignConfig& config, const std::string& name) {
  const auto found = std::ranges::find(config.settings, name, &ForeignSetting::name);
  return found == config.settings.end() ? nullptr : &*found;
}

// The kinds of distribution, with the strategy of `accelerate launch` where the section of the kind sets
// none.
struct Distribution {
  std::string_view name, strategy, section;
};
constexpr Distribution distributions[] = {{"NO", "ddp", ""},
                                          {"no", "ddp", ""},
                                          {"MULTI_CPU", "ddp", ""},
                                          {"MULTI_GPU", "ddp", ""},
                                          {"DEEPSPEED", "zero2", "deepspeed_config"},
                                          {"FSDP", "fsdp", "fsdp_config"}};

// Null if the file has no type.
const Distribution* find_distribution(const settings::YamlNode& document) {
  const settings::YamlNode* type = find(document, "distributed_type");
  if (type == nullptr) return nullptr;
  const auto found = std::ranges::find(distributions, type->text, &Distribution::name);
  if (found != std::end(distributions)) return found;
  const Value value = {"distributed_type", *type};
  if (type->text.starts_with("MULTI_"))
    refuse(value, "there is no support for these devices; use MULTI_GPU or MULTI_CPU");
  refuse(
      value,
      "expected NO, MULTI_CPU, MULTI_GPU, DEEPSPEED or FSDP; other kinds of parallelism are not supported");
}

// Removes the section of a kind of distribution that the file does not use.
void drop_unused_sections(settings::YamlNode& document, const Distribution& kind, ForeignConfig& config) {
  for (const char* section : {"deepspeed_config", "fsdp_config"}) {
    if (kind.section == section || find(document, section) == nullptr) continue;
    ignored("", fmt::format("distributed_type is {}", kind.name))
        .use({section, *find(document, section)}, config);
    std::erase_if(document.children, [&](const settings::YamlNode& child) { return child.key == section; });
  }
}

// dp_replicate copies of the model, each on dp_shard groups of tp ranks.
void read_mesh(const settings::YamlNode& document, ForeignConfig& config) {
  const std::string prefix = "parallelism_config.parallelism_config_";
  const auto size_of = [&](const char* name) {
    const settings::YamlNode* node = find(document, prefix + name);
    return node == nullptr ? 1 : number_in({prefix + name, *node}, 1, 4096);
  };
  const int64_t copies = size_of("dp_replicate_size"), shards = size_of("dp_shard_size"),
                tp = size_of("tp_size");
  if (copies * shards * tp == 1) return;
  const std::string key = prefix + (shards > 1   ? "dp_shard_size"
                                    : copies > 1 ? "dp_replicate_size"
                                                 : "tp_size");
  const Value value = {key, *find(document, key)};
  if (config.ranks && *config.ranks != copies * shards * tp)
    refuse(value, fmt::format("dp_replicate {} x dp_shard {} x tp {} = {}, but num_processes is {}", copies,
                              shards, tp, counted(copies * shards * tp, "rank"), *config.ranks));
  if (!config.ranks) {
    config.ranks = copies * shards * tp;
    config.ranks_place = value.place();
  }
  if (copies * shards == 1) return;
  const ForeignSetting* sharding = find_setting(config, "training.strategy");
  const std::string inner = sharding == nullptr ? "fsdp" : sharding->value;
  if (shards > 1 && inner != "fsdp" && inner != "zero2" && inner != "hsdp")
    refuse(value, fmt::format("{} shards nothing ({}); use 1", inner, sharding->place));
  if (shards > 1 && copies == 1) {
    if (sharding == nullptr) set(config, value, "training.strategy", inner);
    return;
  }
  std::erase_if(config.settings, [](const ForeignSetting& setting) {
    return setting.name == "training.strategy" || setting.name == "training.reshard_after_forward";
  });
  set(config, value, "training.strategy", shards > 1 ? "hsdp" : "ddp");
  if (shards == 1) return;
  set(config, value, "training.dp_shard", fmt::format("{}", shards));
  if (inner == "zero2") set(config, value, "training.reshard_after_forward", "false");
}

// num_processes counts the processes of all hosts.
void divide_among_hosts(ForeignConfig& config) {
  const int64_t hosts = config.hosts.nodes.value_or(1);
  if (!config.ranks || hosts == 1) return;
  if (*config.ranks % hosts != 0) {
    throw ConfigError("{}: {} cannot be divided among {} hosts ({})", config.ranks_place,
                      counted(*config.ranks, "rank"), hosts, config.hosts.place);
  }
  *config.ranks /= hosts;
}

void require_this_machine(const settings::YamlNode& document) {
  const settings::YamlNode* environment = find(document, "compute_environment");
  if (environment == nullptr || environment->text == "LOCAL_MACHINE") return;
  const Value value = {"compute_environment", *environment};
  if (environment->text == "AMAZON_SAGEMAKER")
    refuse(
        value,
        "stretto submits no jobs to SageMaker; run `stretto train` as the command of a training container, "
        "and use LOCAL_MACHINE");
  refuse(value, "expected LOCAL_MACHINE");
}

// A relative path that is not found in the working directory is searched for in the folder of the file.
std::filesystem::path deepspeed_file(const std::filesystem::path& file, const Value& value) {
  const std::filesystem::path path = with_home(value.text());
  std::error_code failed;
  for (const std::filesystem::path& found : {path, file.parent_path() / path}) {
    if (std::filesystem::is_regular_file(found, failed)) return found;
  }
  refuse(value, "there is no such file; expected a configuration of DeepSpeed");
}

}  // namespace

ForeignConfig read_accelerate(const std::filesystem::path& file) {
  ForeignConfig config;
  settings::YamlNode document = parse_file(file, "the file that `accelerate config` writes", config);
  require_file_for("--accelerate", document);
  require_this_machine(document);
  const Distribution* kind = find_distribution(document);
  if (kind != nullptr) drop_unused_sections(document, *kind, config);
  read(document, make_accelerate_keys(), config);
  if (const auto* inner = find(document, "deepspeed_config.deepspeed_config_file")) {
    const std::string key = "deepspeed_config.deepspeed_config_file";
    merge(config, read_deepspeed(deepspeed_file(file, {key, *inner})));
  }
  if (kind != nullptr && find_setting(config, "training.strategy") == nullptr)
    set(config, {"distributed_type", *find(document, "distributed_type")}, "training.strategy",
        std::string(kind->strategy));
  read_mesh(document, config);
  read_dependent(document, config);
  divide_among_hosts(config);
  return config;
}

}  // namespace stretto::compat
