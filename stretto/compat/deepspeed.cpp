#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/compat/deepspeed_keys.h"

// Reads DeepSpeed's configuration, https://www.deepspeed.ai/docs/config-json/.
namespace stretto::compat {
namespace {

constexpr std::string_view unset_value =
    "auto";  // transformers and Accelerate replace it by their own arguments

// What a name of an optimizer or a schedule means here: another name, or a reason why it is refused.
struct NamedChoice {
  std::string_view name, setting_value, reason;
};

constexpr const char* compressed =
    "gradients are not compressed to 1 bit for communication; use AdamW, or set another optimizer as "
    "optimizer.type in the recipe, and remove this section";
constexpr const char* another_optimizer =
    "it is not available; use one of PyTorch's, Adam, AdamW or Lamb, or set another one as optimizer.type in the "
    "recipe, and remove this section";
constexpr NamedChoice optimizers[] = {{"AdamW", "AdamW", ""},         {"FusedAdam", "AdamW", ""},
                                      {"CPUAdam", "AdamW", ""},       {"DeepSpeedCPUAdam", "AdamW", ""},
                                      {"OneBitAdam", "", compressed}, {"ZeroOneAdam", "", compressed},
                                      {"OneBitLamb", "", compressed}, {"Lamb", "Lamb", ""},
                                      {"FusedLamb", "Lamb", ""},      {"Lion", "", another_optimizer}};

constexpr const char* another_schedule =
    "expected WarmupLR, WarmupDecayLR or WarmupCosineLR; set another schedule as scheduler.type in the recipe, "
    "and remove this section";
constexpr NamedChoice schedules[] = {{"WarmupLR", "ConstantWithWarmup", ""},
                                     {"WarmupDecayLR", "LinearWithWarmup", ""},
                                     {"WarmupCosineLR", "CosineWithWarmup", ""}};

// Sets the setting `key` to the meaning of the name under this key. A name that is not among `choices` is
// refused because of `otherwise`, or passed on to the recipe if that is empty.
void read_name(const settings::YamlNode& document, const std::string& key,
               std::span<const NamedChoice> choices, std::string_view otherwise, ForeignConfig& config) {
  const settings::YamlNode* type = find(document, key, unset_value);
  if (type == nullptr) return;
  const Value value = {key, *type};
  const auto found = std::ranges::find_if(
      choices, [&](const NamedChoice& choice) { return lower_case(choice.name) == lower_case(type->text); });
  if (found != choices.end() && !found->reason.empty()) refuse(value, found->reason);
  if (found == choices.end() && !otherwise.empty()) refuse(value, otherwise);
  set(config, value, key, std::string(found == choices.end() ? type->text : found->setting_value));
}

// DeepSpeed's Lamb corrects the step size by default; its Adam may omit the correction, unlike torch's.
void read_bias_correction(const settings::YamlNode& document, const Value& type, ForeignConfig& config) {
  const settings::YamlNode* node = find(document, "optimizer.params.bias_correction", unset_value);
  const bool corrects = node == nullptr || Value{"optimizer.params.bias_correction", *node}.is_true();
  if (lower_case(type.text()) == "lamb") {
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
  const settings::YamlNode* mode = find(document, "optimizer.params.adam_w_mode", unset_value);
  const bool is_adam = lower_case(type->text) == "adam";
  if (is_adam && (mode == nullptr || Value{"optimizer.params.adam_w_mode", *mode}.is_true())) {
    set(config, {"optimizer.type", *type}, "optimizer.type", "AdamW");
  } else {
    read_name(document, "optimizer.type", optimizers, "", config);
  }
  const std::string name = lower_case(type->text);
  read_bias_correction(document, {"optimizer.type", *type}, config);
  const bool has_own_default = is_adam || name == "adamw" || name == "lamb" || type->text == "Muon";
  if (has_own_default && find(document, "optimizer.params.weight_decay") == nullptr)
    config.settings.push_back(
        {"optimizer.weight_decay", "0", Value{"optimizer.type", *type}.place(), /*implied=*/true});
}

// The steps at which the rate has decreased; WarmupLR does not decrease it.
void read_total_steps(const settings::YamlNode& document, ForeignConfig& config) {
  const settings::YamlNode* type = find(document, "scheduler.type", unset_value);
  const settings::YamlNode* steps = find(document, "scheduler.params.total_num_steps", unset_value);
  if (type == nullptr || steps == nullptr) return;
  const Value value = {"scheduler.params.total_num_steps", *steps};
  if (lower_case(type->text) == "warmuplr") {
    ignored(value.key, "the rate stays constant after the warm-up").use(value, config);
  } else {
    set(config, value, "scheduler.num_training_steps", steps->text);
  }
}

// What DeepSpeed's schedules have unless keys say otherwise: a logarithmic warm-up of 1000 steps, and a
// cosine that ends at a ten-thousandth of the rate.
void read_schedule_defaults(const settings::YamlNode& document, ForeignConfig& config) {
  const settings::YamlNode* type = find(document, "scheduler.type", unset_value);
  if (type == nullptr) return;
  const std::string place = Value{"scheduler.type", *type}.place();
  const auto imply = [&](const char* setting, const char* value, const char* unless) {
    config.settings.push_back({setting, value, place, /*implied=*/true, unless});
  };
  if (find(document, "scheduler.params.warmup_type", unset_value) == nullptr) {
    imply("scheduler.warmup_type", "log", "");
    config.notes.push_back(
        fmt::format("{}: the warm-up is logarithmic, as in DeepSpeed without warmup_type: linear", place));
  }
  if (find(document, "scheduler.params.warmup_num_steps") == nullptr)
    imply("scheduler.num_warmup_steps", "1000", "scheduler.warmup_ratio");
  if (lower_case(type->text) == "warmupcosinelr" &&
      find(document, "scheduler.params.cos_min_ratio") == nullptr)
    imply("scheduler.min_lr_rate", "0.0001", "scheduler.min_lr");
}

void autocast(const settings::YamlNode& document, ForeignConfig& config) {
  const settings::YamlNode* enabled = find(document, "torch_autocast.enabled", unset_value);
  if (enabled == nullptr || !Value{"torch_autocast.enabled", *enabled}.is_true()) return;
  const settings::YamlNode* type = find(document, "torch_autocast.dtype", unset_value);
  if (type != nullptr && !type->text.ends_with("bfloat16"))
    refuse({"torch_autocast.dtype", *type}, "expected bfloat16");
  set(config, {"torch_autocast.enabled", *enabled}, "training.precision", "bf16");
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
  const bool is_fp16 = fp16 != nullptr && Value{"fp16.enabled", *fp16}.is_true();
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
void read_offload(const settings::YamlNode& document, const std::string& section, const char* setting,
                  ForeignConfig& config) {
  const settings::YamlNode* device = find(document, section + "device", unset_value);
  if (device == nullptr || device->text != "nvme") return;
  const settings::YamlNode* folder = find(document, section + "nvme_path", unset_value);
  if (folder == nullptr) return set(config, {section + "device", *device}, setting, in_output_folder);
  set(config, {section + "nvme_path", *folder}, setting, folder->text);
}

}  // namespace

void require_batch_equation(const ForeignConfig& foreign, const Recipe& recipe, int64_t ranks) {
  constexpr std::string_view total = "train_batch_size";
  const auto stated = std::ranges::find_if(foreign.settings, [&](const ForeignSetting& setting) {
    return setting.name == "training.global_batch_size" && setting.place.ends_with(total);
  });
  const TrainingConfig& training = recipe.training;
  if (stated == foreign.settings.end() || training.max_tokens) return;
  const int64_t global = *training.global_batch_size;
  const int64_t data_ranks = std::max<int64_t>(1, ranks / training.mesh.tp);
  const int64_t steps = training.grad_accumulation_steps.value_or(
      training.batch_size ? global / *training.batch_size / data_ranks : 1);
  const int64_t micro = training.batch_size.value_or(global / data_ranks / std::max<int64_t>(1, steps));
  const int64_t product = micro * steps * data_ranks;
  if (global == product) return;
  const auto text = [](int64_t value, bool given) {
    return fmt::format("{}{}", value, given ? "" : ", computed");
  };
  throw ConfigError(
      "{}: {} is not train_micro_batch_size_per_gpu ({}) x gradient_accumulation_steps ({}) x ranks ({}) = {}; set it to {}, or change another key or the number of ranks",
      stated->place, global, text(micro, training.batch_size.has_value()),
      text(steps, training.grad_accumulation_steps.has_value()), data_ranks, product,
      std::max<int64_t>(1, micro) * std::max<int64_t>(1, steps) * data_ranks);
}

ForeignConfig read_deepspeed(const std::filesystem::path& file) {
  ForeignConfig config;
  const settings::YamlNode document =
      parse_file(file, "a configuration of DeepSpeed (ds_config.json)", config,
                 RepeatedKeys::refused);  // as DeepSpeed does
  require_file_for("--deepspeed", document);
  // Types that are not available are refused before their parameters.
  read_optimizer(document, config);
  read_name(document, "scheduler.type", schedules, another_schedule, config);
  read(document, deepspeed_keys(), config, unset_value);
  read_total_steps(document, config);
  read_schedule_defaults(document, config);
  read_precision(document, config);
  autocast(document, config);
  read_offload(document, "zero_optimization.offload_optimizer.", "training.offload_optimizer", config);
  read_offload(document, "zero_optimization.offload_param.", "training.offload_parameters", config);
  return config;
}

}  // namespace stretto::compat
