#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/compat/keys.h"

// Reads the file that `accelerate config` writes.
namespace stretto::compat {
namespace {

const char* const launcher =
    "the ranks of one host are started here; srun and torchrun start those of several (docs/guide/launch.md)";
const char* const no_cpu_offload =
    "this version does not offload parameters, and the memory of CPU ranks is the host's: use false, or none for DeepSpeed";
const char* const own_units = "units are the blocks of the model";
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

// In FSDP version 2 the key is a boolean; in version 1, newer files have the name of the strategy instead.
void reshard(const Value& value, ForeignConfig& config) {
  const std::string& text = value.text();
  const bool keeps = text == "false" || text == "False" || text == "SHARD_GRAD_OP";
  if (!keeps && !value.is_true() && text != "FULL_SHARD") refuse(value, "expected true or false");
  set(config, value, "training.strategy", keeps ? "zero2" : "fsdp");
}

// read_dependent reads the limit of the size-based policy.
void wrap_policy(const Value& value, ForeignConfig& config) {
  if (value.text() != "SIZE_BASED_WRAP") ignored("", own_units).use(value, config);
}

std::vector<Key> make_accelerate_keys() {
  const std::vector<Meaning> strategies = {
      {"FULL_SHARD", "fsdp"}, {"1", "fsdp"}, {"SHARD_GRAD_OP", "zero2"}, {"2", "zero2"},
      {"NO_SHARD", "ddp"},    {"3", "ddp"},  {"HYBRID_SHARD", "hsdp"},   {"4", "hsdp"}};
  return {
      // environment
      only("compute_environment", {"LOCAL_MACHINE"}, "expected LOCAL_MACHINE"),
      read_with_another("distributed_type"),
      {"mixed_precision", mixed_precision},
      {"use_cpu", use_cpu},
      rank_count("num_processes"),
      host_count("num_machines"),
      host_rank("machine_rank"),
      master_address("main_process_ip"),
      master_port("main_process_port"),
      ignored("rdzv_backend", launcher),
      ignored("same_network", launcher),
      ignored("main_training_function", "recipes have no function to call"),
      only("gpu_ids", {"all"}, "set the variable CUDA_VISIBLE_DEVICES, and gpu_ids to all"),
      ignored("enable_cpu_affinity", "ranks are pinned to cores unless --no-pin is given"),
      ignored("num_cpu_threads_per_process", "the cores of the host are divided among its ranks"),
      only("downcast_bf16", {"no", "false"}, no_tpu),
      only("tpu_use_cluster", {"false"}, no_tpu),
      only("tpu_use_sudo", {"false"}, no_tpu),
      ignored("tpu_env.*", no_tpu),
      ignored("tpu_name", no_tpu),
      ignored("tpu_zone", no_tpu),
      ignored("debug", "STRETTO_DEBUG=collectives compares the calls of all ranks"),
      ignored("dynamo_backend", no_compiler),
      ignored("dynamo_config.*", no_compiler),
      ignored("commands", launcher),
      ignored("command_file", launcher),
      // settings of DeepSpeed
      choice("deepspeed_config.zero_stage", "training.strategy",
             {{"0", "ddp"}, {"1", "zero1"}, {"2", "zero2"}, {"3", "fsdp"}}),
      same_as("deepspeed_config.gradient_accumulation_steps", "training.grad_accumulation_steps"),
      same_as("deepspeed_config.gradient_clipping", "training.max_grad_norm"),
      only("deepspeed_config.offload_optimizer_device", {"none", "nvme"}, no_cpu_offload),
      only("deepspeed_config.offload_param_device", {"none"}, no_cpu_offload),
      read_with_another("deepspeed_config.offload_optimizer_nvme_path"),
      ignored("deepspeed_config.offload_param_nvme_path", "parameters are not offloaded"),
      ignored("deepspeed_config.zero3_init_flag", "models are built on each rank"),
      ignored("deepspeed_config.zero3_save_16bit_model", own_format),
      read_with_another("deepspeed_config.deepspeed_config_file"),
      ignored("deepspeed_config.deepspeed_hostfile", launcher),
      ignored("deepspeed_config.deepspeed_multinode_launcher", launcher),
      ignored("deepspeed_config.deepspeed_inclusion_filter", launcher),
      ignored("deepspeed_config.deepspeed_exclusion_filter", launcher),
      ignored("deepspeed_config.deepspeed_moe_layer_cls_names", "there are no mixtures of experts"),
      // settings of FSDP
      choice("fsdp_config.fsdp_sharding_strategy", "training.strategy", strategies),
      {"fsdp_config.fsdp_reshard_after_forward", reshard},
      ignored("fsdp_config.fsdp_version", "both versions mean the same here"),
      only("fsdp_config.fsdp_offload_params", {"false", "False"}, no_cpu_offload),
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
  };
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
  const std::string device = "deepspeed_config.offload_optimizer_device";
  if (text(device) != "nvme" ||
      use("deepspeed_config.offload_optimizer_nvme_path", "training.offload_optimizer"))
    return;
  set(config, {device, *find(document, device)}, "training.offload_optimizer", in_output_folder);
}

bool names_setting(const ForeignConfig& config, const std::string& name) {
  return std::ranges::find(config.settings, name, &ForeignSetting::name) != config.settings.end();
}

// A type of distribution without its section has the defaults of `accelerate launch`.
void read_distribution(const settings::YamlNode& document, ForeignConfig& config) {
  const settings::YamlNode* type = find(document, "distributed_type");
  if (type == nullptr) return;
  const Value value = {"distributed_type", *type};
  struct Kind {
    std::string_view name, strategy;
  };
  constexpr Kind kinds[] = {{"NO", "ddp"},        {"no", "ddp"},          {"MULTI_CPU", "ddp"},
                            {"MULTI_GPU", "ddp"}, {"DEEPSPEED", "zero2"}, {"FSDP", "fsdp"}};
  const auto found = std::ranges::find(kinds, type->text, &Kind::name);
  if (found == std::end(kinds))
    refuse(
        value,
        "expected NO, MULTI_CPU, MULTI_GPU, DEEPSPEED or FSDP; other kinds of parallelism are not supported");
  if (!names_setting(config, "training.strategy"))
    set(config, value, "training.strategy", std::string(found->strategy));
}

}  // namespace

// num_processes counts the processes of all hosts.
static void divide_among_hosts(ForeignConfig& config) {
  const int64_t hosts = config.hosts.nodes.value_or(1);
  if (!config.ranks || hosts == 1) return;
  if (*config.ranks % hosts != 0) {
    throw ConfigError("{}: {} ranks cannot be divided among {} hosts ({})", config.ranks_place, *config.ranks,
                      hosts, config.hosts.place);
  }
  *config.ranks /= hosts;
}

ForeignConfig read_accelerate(const std::filesystem::path& file) {
  const settings::YamlNode document = parse_file(file, "the file that `accelerate config` writes");
  ForeignConfig config = read(document, make_accelerate_keys());
  if (const auto* deepspeed = find(document, "deepspeed_config.deepspeed_config_file")) {
    ForeignConfig inner = read_deepspeed(deepspeed->text);
    config.settings.insert(config.settings.end(), inner.settings.begin(), inner.settings.end());
    config.notes.insert(config.notes.end(), inner.notes.begin(), inner.notes.end());
  }
  read_distribution(document, config);
  read_dependent(document, config);
  divide_among_hosts(config);
  return config;
}

}  // namespace stretto::compat
