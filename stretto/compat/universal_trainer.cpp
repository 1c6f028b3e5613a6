#include "stretto/base/error.h"
#include "stretto/compat/keys.h"

// Reads parameters.yml of pytorch_universal_trainer.
namespace stretto::compat {
namespace {

const char* const no_autowrap = "units are the blocks of the model";

// The tool's mixed precision is torch.amp's, fp16 with loss scaling.
void native_fp16(const Value& value, ForeignConfig& config) {
  if (value.is_true()) return set(config, value, "training.precision", "fp16");
  config.settings.push_back({"training.precision", "fp32", value.place(), /*implied=*/true});
}

void training_mode(const Value& value, ForeignConfig&) {
  if (value.text() != "train") refuse(value, "use `stretto test` for the mode test, without this file");
}

void continue_training(const Value& value, ForeignConfig& config) {
  if (value.is_true()) set(config, value, "resume", "true");
}

const std::vector<Key>& parameters_keys() {
  static const std::vector<Key> keys = {
      ignored("data-params.data_dir", "data.train, data.validation and data.test name the files"),
      ignored("data-params.is_dev_file", "data.validation is evaluated if it is set"),
      {"transformers-params.mode", training_mode},
      {"transformers-params.continue_training", continue_training},
      only("transformers-params.continue_training_path", {""}, "set resume to a checkpoint of stretto"),
      same_as("transformers-params.pretrained_model_dir", "model.path"),
      same_as("transformers-params.model_dir", "output"),
      // strategies
      read_with_another("transformers-params.is_distributed"),
      {"transformers-params.use_native_fp16", native_fp16},
      read_with_another("transformers-params.use_fairscale_optimizer_sharding"),
      read_with_another("transformers-params.use_fairscale_model_sharding"),
      ignored("transformers-params.use_fairscale_autowrap", no_autowrap),
      read_with_another("transformers-params.use_fairscale_reshard_forward"),
      // training
      ignored("transformers-params.num_loader_workers", "token ids are mapped from a cache"),
      same_as("transformers-params.batch_size", "training.batch_size"),
      ignored("transformers-params.use_max_length", "texts are always cut at data.max_length"),
      same_as("transformers-params.max_length", "data.max_length"),
      same_as("transformers-params.num_epochs", "training.epochs"),
      same_as("transformers-params.gradient_accumulation_steps", "training.grad_accumulation_steps"),
      ignored("transformers-params.log_steps_ratio",
              "track.log_every is the number of steps between log lines"),
      ignored("transformers-params.save_steps_ratio", "checkpoint.every is the interval between checkpoints"),
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

}  // namespace

ForeignConfig read_universal_trainer(const std::filesystem::path& file) {
  const settings::YamlNode document = parse_file(file, "the parameters.yml of pytorch_universal_trainer");
  ForeignConfig config = read(document, parameters_keys());
  const Switches switches = {document};
  read_strategy(switches, config);
  read_data_parallel(switches, config);
  return config;
}

}  // namespace stretto::compat
