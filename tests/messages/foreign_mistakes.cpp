#include "tests/messages/mistakes.h"

#include "stretto/base/files.h"
#include "stretto/compat/foreign.h"

namespace stretto {
namespace {

using Read = compat::ForeignConfig (*)(const std::filesystem::path& file);

// Reads `content` as the file `name`, and a recipe with its settings.
std::function<void()> reading(Read read, const char* name, const std::string& content,
                              const std::string& recipe = "output: run\n",
                              const std::vector<std::string>& overrides = {}) {
  return [=] {
    write_file_atomic(name, content);
    write_file_atomic("r.yaml", recipe);
    load_recipe("r.yaml", overrides, {}, read(name));
  };
}

void add_deepspeed(Mistakes& all) {
  const auto add = [&](const char* name, const std::string& json, const std::string& recipe = "output: run\n",
                       const std::vector<std::string>& overrides = {}) {
    all.push_back({std::string("DeepSpeed: ") + name,
                   reading(compat::read_deepspeed, "ds.json", json, recipe, overrides)});
  };
  all.push_back({"DeepSpeed: no file", [] { compat::read_deepspeed("none.json"); }});
  add("fp16 and bf16", R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})");
  add("a word for a loss scale", R"({"fp16": {"enabled": true, "loss_scale": "big"}})");
  add("a hysteresis of 0", R"({"fp16": {"enabled": true, "hysteresis": 0}})");
  add("offload to an unknown device", R"({"zero_optimization": {"offload_optimizer": {"device": "disk"}}})");
  add("an unknown stage", R"({"zero_optimization": {"stage": 4}})");
  add("a list for a stage", R"({"zero_optimization": {"stage": [2]}})");
  add("a value for a section", R"({"bf16": true})");
  add("an unknown optimizer", R"({"optimizer": {"type": "Lion"}})");
  add("an unknown schedule", R"({"scheduler": {"type": "OneCycle"}})");
  add("a compressed optimizer", R"({"optimizer": {"type": "OneBitAdam", "params": {"freeze_step": 400}}})");
  add("an optimizer without correction",
      R"({"optimizer": {"type": "AdamW", "params": {"bias_correction": false}}})");
  add("an unknown setting of an optimizer", R"({"optimizer": {"type": "SGD", "params": {"momentun": 0.9}}})");
  add("compression", R"({"compression_training": {"layer_reduction": {"enabled": true}}})");
  add("curricula", R"({"data_efficiency": {"enabled": true}})");
  add("dropped layers", R"({"progressive_layer_drop": {"enabled": true}})");
  add("sparse attention", R"({"sparse_attention": {"mode": "fixed"}})");
  add("autotuning", R"({"autotuning": {"enabled": true}})");
  add("tensor parallelism", R"({"tensor_parallel": {"autotp_size": -2}})");
  add("GPUs that are no numbers", R"({"cuda_visible_devices": "first"})");
  add("an unknown key", R"({"gradient_cliping": 1})");
  add("a key that occurs twice", R"({"train_batch_size": 2, "train_batch_size": 3})");
  add("a word for a number", R"({"gradient_clipping": "much"})");
  all.push_back(
      {"DeepSpeed: a batch that is no product", [] {
         write_file_atomic("ds.json", R"({"train_batch_size": 10, "train_micro_batch_size_per_gpu": 4})");
         const compat::ForeignConfig foreign = compat::read_deepspeed("ds.json");
         write_file_atomic("r.yaml", "output: run\n");
         compat::require_batch_equation(foreign, load_recipe("r.yaml", {}, {}, foreign), /*ranks=*/3);
       }});
  add("the recipe contradicts", R"({"zero_optimization": {"stage": 2}})", "training: {strategy: zero1}\n");
  add("--set contradicts", R"({"optimizer": {"type": "AdamW", "params": {"lr": 3e-5}}})", "output: run\n",
      {"optimizer.lr=1e-4"});
  add("its keys contradict",
      R"({"optimizer": {"type": "AdamW", "params": {"lr": 3e-5}}, "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 1e-3}}})");
}

void add_accelerate(Mistakes& all) {
  const auto add = [&](const char* name, const std::string& yaml) {
    all.push_back({std::string("Accelerate: ") + name, reading(compat::read_accelerate, "a.yaml", yaml)});
  };
  add("fp8", "mixed_precision: fp8\n");
  add("an unknown kind of sharding", "fsdp_config: {fsdp_sharding_strategy: FULL_SHART}\n");
  add("SageMaker", "compute_environment: AMAZON_SAGEMAKER\n");
  add("other devices", "distributed_type: MULTI_XPU\n");
  add("context parallelism", "parallelism_config: {parallelism_config_cp_size: 2}\n");
  add("sizes that are not the ranks",
      "num_processes: 8\nparallelism_config: {parallelism_config_dp_shard_size: 4}\n");
  add("shards of nothing",
      "distributed_type: MULTI_GPU\nfsdp_config: {}\nparallelism_config: {parallelism_config_dp_shard_size: 4}\n"
      "deepspeed_config: {}\n");
  add("no DeepSpeed file", "deepspeed_config: {deepspeed_config_file: ds.json}\n");
  add("hosts that do not divide the ranks", "num_processes: 2\nnum_machines: 3\n");
  add("no host", "num_machines: 0\n");
  add("ranks that are no number", "num_processes: two\n");
  add("another parallelism", "distributed_type: MEGATRON_LM\n");
  add("a file of DeepSpeed", "{\"zero_optimization\": {\"stage\": 1}}");
  add("an unknown key", "distributed_type: FSDP\nfsdp_config: {fsdp_sync_module_state: true}\n");
}

void add_others(Mistakes& all) {
  const auto parameters = [&](const char* name, const std::string& keys) {
    all.push_back(
        {std::string("parameters.yml: ") + name,
         reading(compat::read_universal_trainer, "parameters.yml", "transformers-params: {" + keys + "}\n")});
  };
  parameters(
      "two kinds of sharding",
      "is_distributed: True, use_fairscale_optimizer_sharding: True, use_fairscale_model_sharding: True");
  parameters("sharding of one rank", "is_distributed: False, use_fairscale_model_sharding: True");
  parameters("another mode", "mode: 'predict'");
  parameters("never per epoch", "log_steps_ratio: 0");
  const auto alone = [&](const char* name, const std::string& yaml, Read read, const char* file, Verb verb) {
    all.push_back({std::string("no recipe: ") + name, [=] {
                     write_file_atomic(file, yaml);
                     const compat::ForeignConfig foreign = read(file);
                     compat::require_enough(compat::load_recipe("", {}, {}, foreign), foreign, verb);
                   }});
  };
  alone("no model", "data-params: {data_dir: data}\n", compat::read_universal_trainer, "parameters.yml",
        Verb::train);
  alone("no data", "transformers-params: {pretrained_model_dir: m}\n", compat::read_universal_trainer,
        "parameters.yml", Verb::train);
  alone("no test data", "transformers-params: {mode: test}\n", compat::read_universal_trainer,
        "parameters.yml", Verb::test);
  alone("a file without a key for it", "hps: {epochs: 1}\n", compat::read_hps, "hps.yaml", Verb::train);
  const auto hps = [&](const char* name, const std::string& yaml) {
    all.push_back({std::string("hps: ") + name, reading(compat::read_hps, "hps_config.yaml", yaml)});
  };
  hps("no section", "epochs: 3\n");
  hps("a recipe", "model: {path: bert}\n");
  hps("an unknown key", "hps: {epoch: 3}\n");
  hps("a value for a section", "hps: {optimizer: AdamW}\n");
  hps("three batch sizes", "hps: {batch_size: [1, 2, 3]}\n");
  hps("a schedule by epochs", "hps: {step_scheduler_per_epoch: true}\n");
  hps("an unknown setting of an optimizer", "hps:\n  optimizer: {type: AdamW, learning_rate: 1}\n");
}

}  // namespace

void add_foreign_files(Mistakes& all) {
  add_deepspeed(all);
  add_accelerate(all);
  add_others(all);
}

}  // namespace stretto
