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
  add("offload to memory", R"({"zero_optimization": {"offload_optimizer": {"device": "cpu"}}})");
  add("an unknown stage", R"({"zero_optimization": {"stage": 4}})");
  add("a list for a stage", R"({"zero_optimization": {"stage": [2]}})");
  add("a value for a section", R"({"bf16": true})");
  add("an unknown optimizer", R"({"optimizer": {"type": "Lion"}})");
  add("an unknown schedule", R"({"scheduler": {"type": "OneCycle"}})");
  add("an unknown key", R"({"gradient_cliping": 1})");
  add("a key that occurs twice", R"({"train_batch_size": 2, "train_batch_size": 3})");
  add("a word for a number", R"({"gradient_clipping": "much"})");
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
  add("offloaded parameters", "distributed_type: FSDP\nfsdp_config: {fsdp_offload_params: true}\n");
  add("hosts that do not divide the ranks", "num_processes: 2\nnum_machines: 3\n");
  add("no host", "num_machines: 0\n");
  add("ranks that are no number", "num_processes: two\n");
  add("another parallelism", "distributed_type: MEGATRON_LM\n");
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
  parameters("another mode", "mode: 'test'");
  const auto hps = [&](const char* name, const std::string& yaml) {
    all.push_back({std::string("hps: ") + name, reading(compat::read_hps, "hps_config.yaml", yaml)});
  };
  hps("no section", "epochs: 3\n");
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
