#include <filesystem>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/compat/keys.h"

// Reads parameters.yml of pytorch_universal_trainer.
namespace stretto::compat {
namespace {

// The tool's mixed precision is torch.amp's, fp16 with loss scaling.
void native_fp16(const Value& value, ForeignConfig& config) {
  if (value.is_true()) return set(config, value, "training.precision", "fp16");
  config.settings.push_back({"training.precision", "fp32", value.place(), /*implied=*/true});
}

void training_mode(const Value& value, ForeignConfig& config) {
  if (value.text() == "test") {
    config.test_place = value.place();
  } else if (value.text() != "train") {
    refuse(value, "expected train or test");
  }
}

// Converts "so many times per epoch" to an interval, which the recipe may override.
Key times_per_epoch(std::string_view name, std::string setting) {
  return {name, [setting = std::move(setting)](const Value& value, ForeignConfig& config) {
            const auto times = parse_double(value.text());
            if (!times || *times <= 0) refuse(value, "expected a number above 0: how often per epoch");
            config.settings.push_back(
                {setting, fmt::format("{:.9g}ep", 1 / *times), value.place(), /*implied=*/true});
          }};
}

const std::vector<Key>& parameters_keys() {
  static const std::vector<Key> keys = {
      read_with_another("data-params.data_dir"),
      read_with_another("data-params.is_dev_file"),
      {"transformers-params.mode", training_mode},
      read_with_another("transformers-params.continue_training"),
      read_with_another("transformers-params.continue_training_path"),
      path("transformers-params.pretrained_model_dir", "model.path"),
      path("transformers-params.model_dir", "output"),
      // strategies
      read_with_another("transformers-params.is_distributed"),
      {"transformers-params.use_native_fp16", native_fp16},
      read_with_another("transformers-params.use_fairscale_optimizer_sharding"),
      read_with_another("transformers-params.use_fairscale_model_sharding"),
      ignored("transformers-params.use_fairscale_autowrap", own_units),
      read_with_another("transformers-params.use_fairscale_reshard_forward"),
      // training
      ignored("transformers-params.num_loader_workers", "token ids are mapped from a cache"),
      same_as("transformers-params.batch_size", "training.batch_size"),
      ignored("transformers-params.use_max_length", "texts are always cut at data.max_length"),
      same_as("transformers-params.max_length", "data.max_length"),
      same_as("transformers-params.num_epochs", "training.epochs"),
      same_as("transformers-params.gradient_accumulation_steps", "training.grad_accumulation_steps"),
      times_per_epoch("transformers-params.log_steps_ratio", "track.log_every"),
      times_per_epoch("transformers-params.save_steps_ratio", "checkpoint.every"),
      same_as("transformers-params.learning_rate", "optimizer.lr"),
      same_as("transformers-params.warmup_proportion", "scheduler.warmup_ratio"),
      ignored("transformers-params.num_labels", "the labels are those of the training data"),
      host_count("dist-params.nodes"),
      rank_count("dist-params.gpus"),
      host_rank("dist-params.current_node"),
      master_address("dist-params.master_addr"),
      master_port("dist-params.master_port"),
  };
  return keys;
}

struct Switches {
  const settings::YamlNode& document;

  const settings::YamlNode* find(std::string_view name) const {
    return compat::find(document, "transformers-params." + std::string(name));
  }
  Value value(std::string_view name) const {
    return {"transformers-params." + std::string(name), *find(name)};
  }
  bool on(std::string_view name) const { return find(name) != nullptr && value(name).is_true(); }
};

// In this tool, sharding the optimizer includes the gradients (fairscale's OSS with ShardedDataParallel).
void read_strategy(const Switches& switches, ForeignConfig& config) {
  const char* const model = "use_fairscale_model_sharding";
  const char* const optimizer = "use_fairscale_optimizer_sharding";
  if (switches.on(model) && switches.on(optimizer))
    refuse(switches.value(model),
           "contradicts use_fairscale_optimizer_sharding: True; set one of them to False");
  const auto use = [&](std::string_view name, std::string strategy) {
    set(config, switches.value(name), "training.strategy", std::move(strategy));
  };
  const bool distributed = switches.find("is_distributed") == nullptr || switches.on("is_distributed");
  for (const char* sharding : {model, optimizer}) {
    if (switches.on(sharding) && !distributed)
      refuse(switches.value(sharding), "sharding needs is_distributed: True");
  }
  if (switches.on(model)) {
    const bool reshards = switches.find("use_fairscale_reshard_forward") == nullptr ||
                          switches.on("use_fairscale_reshard_forward");
    use(model, reshards ? "fsdp" : "zero2");
  } else if (switches.on(optimizer)) {
    use(optimizer, "zero2");
  } else if (switches.find("is_distributed") != nullptr) {
    use("is_distributed", "ddp");
  }
}

// Without is_distributed, one process uses all GPUs, and batch_size is their total.
void read_data_parallel(const Switches& switches, ForeignConfig& config) {
  if (switches.find("is_distributed") == nullptr || switches.on("is_distributed")) return;
  for (ForeignSetting& setting : config.settings) {
    if (setting.name == "training.batch_size") setting.name = "training.global_batch_size";
  }
}

// The path applies only if training is to be continued.
void read_resume(const Switches& switches, ForeignConfig& config) {
  if (!switches.on("continue_training")) return;
  const settings::YamlNode* path = switches.find("continue_training_path");
  if (path == nullptr || path->text.empty())
    return set(config, switches.value("continue_training"), "resume", "true");
  set(config, switches.value("continue_training_path"), "resume", with_home(path->text));
}

// The files have fixed names. A recipe that names its own data replaces all of them.
void read_data(const settings::YamlNode& document, ForeignConfig& config) {
  const settings::YamlNode* folder = find(document, "data-params.data_dir");
  if (folder == nullptr) return;
  const Value value = {"data-params.data_dir", *folder};
  const auto file_of = [&](const char* name) {
    const std::filesystem::path file = std::filesystem::path(with_home(value.text())) / name;
    std::error_code failed;
    const std::filesystem::path with_extension = file.string() + ".tsv";
    return std::filesystem::exists(file, failed) || !std::filesystem::exists(with_extension, failed)
               ? file
               : with_extension;
  };
  const auto use = [&](const char* setting, const std::filesystem::path& file, const std::string& unless) {
    config.settings.push_back({setting, file.string(), value.place(), /*implied=*/true, unless});
  };
  use("data.train", file_of("sentiment-train"), "data.mixture");
  const settings::YamlNode* has_dev = find(document, "data-params.is_dev_file");
  if (has_dev == nullptr || Value{"data-params.is_dev_file", *has_dev}.is_true())
    use("data.validation", file_of("sentiment-dev"), "data.train");
  const std::filesystem::path test = file_of("sentiment-test");  // read by a test only
  std::error_code failed;
  if (!config.test_place.empty() || std::filesystem::exists(test, failed))
    use("data.test", test, "data.train");
}

}  // namespace

ForeignConfig read_universal_trainer(const std::filesystem::path& file) {
  ForeignConfig config;
  const settings::YamlNode document =
      parse_file(file, "the parameters.yml of pytorch_universal_trainer", config);
  require_file_for("--params", document);
  for (const auto& [setting, key] : {std::pair("model.path", "transformers-params.pretrained_model_dir"),
                                     {"data.train", "data-params.data_dir"},
                                     {"data.test", "data-params.data_dir"}})
    config.keys.push_back({setting, fmt::format("{}: {}", file.string(), key)});
  read(document, parameters_keys(), config);
  const Switches switches = {document};
  read_strategy(switches, config);
  read_data_parallel(switches, config);
  read_resume(switches, config);
  read_data(document, config);
  return config;
}

}  // namespace stretto::compat
