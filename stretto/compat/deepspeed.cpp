#include <cmath>
#include <optional>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/compat/keys.h"

// Reads DeepSpeed's configuration, https://www.deepspeed.ai/docs/config-json/.
namespace stretto::compat {
namespace {

constexpr std::string_view unset_value =
    "auto";  // transformers and Accelerate replace it by their own arguments

const char* const no_offload =
    "the memory of CPU ranks is the host's, so offloading to it has no effect: set device to none, or remove the section";
const char* const only_optimizer =
    "only the optimizer's state is offloaded, and to files (nvme): set device to none, or remove the section";
const char* const own_buckets =
    "training.bucket_mb sets the size of buckets, and reductions always overlap the backward pass";
const char* const no_scaling = "gradients are sums in fp32, divided once";
const char* const no_loss_scaling = "apex is not used";
const char* const own_log = "track.log_every and `stretto profile` cover this";
const char* const own_checkpoints =
    "checkpoints load at any world size, and `stretto convert` exports the model";

// `true` enables an unsupported feature.
Key unless_enabled(std::string_view name, std::string reason) {
  return only(name, {"false", "False"}, std::move(reason));
}

void scheduler_type(const Value& value, ForeignConfig& config) {
  if (value.text() == "WarmupLR") return set(config, value, "scheduler.type", "ConstantWithWarmup");
  if (value.text() == "WarmupDecayLR") return set(config, value, "scheduler.type", "LinearWithWarmup");
  refuse(
      value,
      "expected WarmupLR or WarmupDecayLR; set another schedule as scheduler.type in the recipe, and remove this section");
}

void warmup_min_lr(const Value& value, ForeignConfig&) {
  if (value.text() != "0" && value.text() != "0.0") refuse(value, "the warm-up begins at 0");
}

// DeepSpeed's Lamb corrects the step size by default; its Adam may omit the correction, unlike torch's.
void read_bias_correction(const settings::YamlNode& document, const Value& type, ForeignConfig& config) {
  const settings::YamlNode* node = find(document, "optimizer.params.bias_correction", unset_value);
  const bool corrects = node == nullptr || Value{"", *node}.is_true();
  if (type.text() == "Lamb") {
    set(config, node == nullptr ? type : Value{"optimizer.params.bias_correction", *node},
        "optimizer.bias_correction", corrects ? "step" : "none");
  } else if (!corrects) {
    refuse({"optimizer.params.bias_correction", *node},
           type.text() + " always corrects the bias; remove this key");
  }
}

// The optimizer depends on several keys: DeepSpeed's Adam is AdamW unless adam_w_mode is false.
void read_optimizer(const settings::YamlNode& document, ForeignConfig& config) {
  const settings::YamlNode* type = find(document, "optimizer.type", unset_value);
  if (type == nullptr) return;
  const Value value = {"optimizer.type", *type};
  const settings::YamlNode* mode = find(document, "optimizer.params.adam_w_mode", unset_value);
  const bool decoupled = mode == nullptr || Value{"", *mode}.is_true();
  if (type->text == "AdamW" || (type->text == "Adam" && decoupled)) {
    set(config, value, "optimizer.type", "AdamW");
  } else if (type->text == "Adam") {
    set(config, value, "optimizer.type", "Adam");
  } else if (type->text == "Lamb") {
    set(config, value, "optimizer.type", "Lamb");
  } else {
    refuse(
        value,
        "expected Adam, AdamW or Lamb; set another optimizer as optimizer.type in the recipe, and remove this section");
  }
  read_bias_correction(document, value, config);
  if (find(document, "optimizer.params.weight_decay") == nullptr)  // torch's default differs
    config.settings.push_back({"optimizer.weight_decay", "0", value.place(), /*implied=*/true});
}

// DeepSpeed's loss scale begins at 2^16 and has a hysteresis of 2; a loss_scale other than 0 is fixed.
void read_loss_scale(const settings::YamlNode& document, const settings::YamlNode& enabled,
                     ForeignConfig& config) {
  const auto number = [&](const std::string& key) -> std::optional<double> {
    const settings::YamlNode* node = find(document, "fp16." + key, unset_value);
    if (node == nullptr) return std::nullopt;
    const auto value = parse_double(node->text);
    if (!value) refuse({"fp16." + key, *node}, "expected a number");
    return value;
  };
  const auto use = [&](const std::string& key, const std::string& setting, const std::string& value) {
    const settings::YamlNode* node = find(document, "fp16." + key, unset_value);
    if (node != nullptr) return set(config, {"fp16." + key, *node}, setting, value);
    config.settings.push_back({setting, value, Value{"fp16.enabled", enabled}.place(), /*implied=*/true});
  };
  const auto text = [](double value) { return fmt::format("{}", value); };
  if (const double scale = number("loss_scale").value_or(0); scale != 0) {
    use("loss_scale", "loss_scale.init_scale", text(scale));
    use("loss_scale", "loss_scale.dynamic", "false");
    return;
  }
  use("initial_scale_power", "loss_scale.init_scale",
      text(std::exp2(number("initial_scale_power").value_or(16))));
  use("loss_scale_window", "loss_scale.growth_interval", text(number("loss_scale_window").value_or(1000)));
  use("hysteresis", "loss_scale.hysteresis", text(number("hysteresis").value_or(2)));
  use("min_loss_scale", "loss_scale.min_scale", text(number("min_loss_scale").value_or(1)));
}

// A precision that is not enabled leaves it to the other one.
void read_precision(const settings::YamlNode& document, ForeignConfig& config) {
  const settings::YamlNode* fp16 = find(document, "fp16.enabled", unset_value);
  const bool is_fp16 = fp16 != nullptr && Value{"", *fp16}.is_true();
  if (is_fp16) {
    set(config, {"fp16.enabled", *fp16}, "training.precision", "fp16");
    read_loss_scale(document, *fp16, config);
  }
  for (const char* key : {"bf16.enabled", "bfloat16.enabled"}) {
    const settings::YamlNode* enabled = find(document, key, unset_value);
    if (enabled == nullptr) continue;
    const Value value = {key, *enabled};
    if (value.is_true() || !is_fp16)
      set(config, value, "training.precision", value.is_true() ? "bf16" : "fp32");
  }
}

// The folder applies to the device nvme only; without one, the state is in the output folder.
void read_offload(const settings::YamlNode& document, ForeignConfig& config) {
  const std::string section = "zero_optimization.offload_optimizer.";
  const settings::YamlNode* device = find(document, section + "device", unset_value);
  if (device == nullptr || device->text != "nvme") return;
  const settings::YamlNode* folder = find(document, section + "nvme_path", unset_value);
  if (folder == nullptr)
    return set(config, {section + "device", *device}, "training.offload_optimizer", in_output_folder);
  set(config, {section + "nvme_path", *folder}, "training.offload_optimizer", folder->text);
}

const std::vector<Key>& deepspeed_keys() {
  static const std::vector<Key> keys = {
      // batch sizes and clipping
      same_as("train_batch_size", "training.global_batch_size"),
      same_as("train_micro_batch_size_per_gpu", "training.batch_size"),
      same_as("gradient_accumulation_steps", "training.grad_accumulation_steps"),
      same_as("gradient_clipping", "training.max_grad_norm"),
      // precision
      read_with_another("fp16.enabled"),
      read_with_another("fp16.loss_scale"),
      read_with_another("fp16.initial_scale_power"),
      read_with_another("fp16.loss_scale_window"),
      read_with_another("fp16.hysteresis"),
      read_with_another("fp16.min_loss_scale"),
      only("fp16.consecutive_hysteresis", {"false", "False"},
           "the count of overflows begins anew when the scale grows"),
      ignored("fp16.auto_cast", "inputs are cast where the model is computed in fp16"),
      only("fp16.fp16_master_weights_and_grads", {"false", "False"}, "gradients and master weights are fp32"),
      read_with_another("bf16.enabled"),
      read_with_another("bfloat16.enabled"),
      ignored("bf16.*", "gradients and master weights are fp32"),
      unless_enabled("amp.enabled", "apex is not used; use bf16: {\"enabled\": true}"),
      ignored("amp.*", no_loss_scaling),
      only("communication_data_type", {"fp32", "torch.float32"},
           "gradients are reduced in fp32; remove this key"),
      ignored("prescale_gradients", no_scaling),
      ignored("gradient_predivide_factor", no_scaling),
      ignored("sparse_gradients", "embeddings with sparse gradients are reduced by the rows in use"),
      // ZeRO
      choice("zero_optimization.stage", "training.strategy",
             {{"0", "ddp"}, {"1", "zero1"}, {"2", "zero2"}, {"3", "fsdp"}}),
      only("zero_optimization.offload_optimizer.device", {"none", "nvme"}, no_offload),
      read_with_another("zero_optimization.offload_optimizer.nvme_path"),
      ignored("zero_optimization.offload_optimizer.*", "the system moves pages between memory and file"),
      only("zero_optimization.offload_param.device", {"none"}, only_optimizer),
      ignored("zero_optimization.offload_param.*", "nothing is offloaded"),
      unless_enabled("zero_optimization.cpu_offload", no_offload),
      unless_enabled("zero_optimization.cpu_offload_params", no_offload),
      unless_enabled("zero_optimization.zero_quantized_weights",
                     "weights are not quantised for communication"),
      unless_enabled("zero_optimization.zero_quantized_gradients",
                     "gradients are not quantised for communication"),
      only("zero_optimization.zero_hpz_partition_size", {"1"}, "no second partition within nodes; use 1"),
      ignored("zero_optimization.allgather_partitions", own_buckets),
      ignored("zero_optimization.allgather_bucket_size", own_buckets),
      ignored("zero_optimization.reduce_scatter", own_buckets),
      ignored("zero_optimization.reduce_bucket_size", own_buckets),
      ignored("zero_optimization.overlap_comm", own_buckets),
      ignored("zero_optimization.contiguous_gradients", "gradients always lie in contiguous buckets"),
      ignored("zero_optimization.round_robin_gradients", own_buckets),
      ignored("zero_optimization.sub_group_size", "the optimizer steps all of a rank's shard in one pass"),
      ignored("zero_optimization.load_from_fp32_weights", "checkpoints hold fp32 weights"),
      ignored("zero_optimization.elastic_checkpoint", own_checkpoints),
      ignored("zero_optimization.ignore_unused_parameters", "unused parameters are found in every step"),
      ignored("zero_optimization.stage3_max_live_parameters",
              "on one host parameters are shared, not gathered"),
      ignored("zero_optimization.stage3_max_reuse_distance",
              "on one host parameters are shared, not gathered"),
      ignored("zero_optimization.stage3_prefetch_bucket_size",
              "on one host parameters are shared, not gathered"),
      ignored("zero_optimization.stage3_param_persistence_threshold",
              "on one host parameters are shared, not gathered"),
      ignored("zero_optimization.stage3_gather_16bit_weights_on_model_save", own_checkpoints),
      ignored("zero_optimization.stage3_gather_fp16_weights_on_model_save", own_checkpoints),
      ignored("zero_allow_untested_optimizer", "every optimizer works under every strategy"),
      ignored("zero_force_ds_cpu_optimizer", "there is one implementation"),
      ignored("aio.*", "the system moves pages between memory and file"),
      // optimizer and schedule
      read_with_another("optimizer.type"),
      read_with_another("optimizer.params.adam_w_mode"),
      same_as("optimizer.params.lr", "optimizer.lr"),
      same_as("optimizer.params.betas", "optimizer.betas"),
      same_as("optimizer.params.eps", "optimizer.eps"),
      same_as("optimizer.params.weight_decay", "optimizer.weight_decay"),
      read_with_another("optimizer.params.bias_correction"),
      same_as("optimizer.params.max_coeff", "optimizer.max_coeff"),
      same_as("optimizer.params.min_coeff", "optimizer.min_coeff"),
      ignored("optimizer.params.torch_adam", "there is one implementation"),
      {"scheduler.type", scheduler_type},
      {"scheduler.params.warmup_min_lr", warmup_min_lr},
      same_as("scheduler.params.warmup_max_lr", "optimizer.lr"),
      same_as("scheduler.params.warmup_num_steps", "scheduler.num_warmup_steps"),
      only("scheduler.params.warmup_type", {"linear"}, "the warm-up is linear"),
      ignored("scheduler.params.total_num_steps", "a schedule ends with the run"),
      ignored("scheduler.params.last_batch_iteration", "resumed runs continue their schedule"),
      // other settings
      ignored("steps_per_print", own_log),
      ignored("wall_clock_breakdown", own_log),
      ignored("dump_state", own_log),
      ignored("memory_breakdown", own_log),
      ignored("flops_profiler.*", own_log),
      ignored("comms_logger.*", own_log),
      ignored("tensorboard.*", "track.trackers selects what is written"),
      ignored("csv_monitor.*", "track.trackers selects what is written"),
      ignored("wandb.*", "track.trackers selects what is written"),
      ignored("activation_checkpointing.*", "it configures a function of DeepSpeed that a model calls"),
      ignored("checkpoint.*", own_checkpoints),
      ignored("data_types.*", "gradients accumulate in fp32"),
      unless_enabled("elasticity.enabled", "the world size is fixed during a run; restarts may use another"),
      ignored("elasticity.*", "it is disabled"),
      unless_enabled("autotuning.enabled", "there is no tuning of batch sizes"),
      ignored("autotuning.*", "it is disabled"),
  };
  return keys;
}

}  // namespace

ForeignConfig read_deepspeed(const std::filesystem::path& file) {
  const settings::YamlNode document = parse_file(file, "a configuration of DeepSpeed (ds_config.json)");
  ForeignConfig config = read(document, deepspeed_keys(), unset_value);
  read_optimizer(document, config);
  read_precision(document, config);
  read_offload(document, config);
  return config;
}

}  // namespace stretto::compat
