#include "stretto/compat/llama_flags.h"

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto::compat {
namespace {

// Flags that other flags determine, or that the functions of llama_files.cpp and llama_script.cpp read.
std::vector<Flag> llama_flags_read_later() {
  std::vector<Flag> flags;
  for (const char* name : {"model_path",
                           "data_dir",
                           "pretrained_weight",
                           "pretrained_ckpt",
                           "model_name",
                           "num_layers",
                           "hidden_size",
                           "seq_len",
                           "train_batch_size",
                           "batch_size",
                           "max_steps",
                           "num_train_epochs",
                           "steps_this_run",
                           "grad_accum_usteps",
                           "lr",
                           "warmup_steps",
                           "constant_steps",
                           "min_lr",
                           "scheduler_type",
                           "weight_decay",
                           "beta1",
                           "beta2",
                           "num_kept_checkpoint",
                           "checkpoint_freq",
                           "checkpoint_dir",
                           "load_step",
                           "load_epoch",
                           "tensor_parallel_size",
                           "seed",
                           "logging_interval",
                           "tb_dir",
                           "log_dir",
                           "output_dir",
                           "task",
                           "validation_dir",
                           "precision"})
    flags.push_back(read_later(name));
  for (const char* name :
       {"save_checkpoint", "resume_ckpt", "use_zero1_optimizer", "use_zero_1", "use_sequence_parallel",
        "sequence_parallel_enabled", "use_selective_checkpoint", "selective_checkpoint_enabled", "do_eval"})
    flags.push_back(read_later(name, /*is_boolean=*/true));
  return flags;
}

std::vector<Flag> refused_llama_flags() {
  const std::string stages = "layers are not divided into stages in this version; expected 1";
  const std::string rouge =
      "ROUGE needs texts and answers in pairs, which this version does not train on; --do_eval reports the perplexity";
  return {
      refused("pipeline_parallel_size", false, {"1"}, stages),
      refused("context_parallel_size", false, {"1"},
              "sequences are not divided among ranks in this version; expected 1"),
      refused("enable_lora", true, {"false", "0"},
              "adapters (LoRA) are not available in this version; all weights are trained without it"),
      refused("golden_rouge_score_path", false, {}, rouge),
  };
}

// Flags of the hardware and of NeuronxDistributed's implementation, which do not change what is computed.
std::vector<Flag> ignored_llama_flags() {
  const std::string masters = "master weights, gradients and optimizer state are always fp32",
                    memory = "parameters are always created without memory, and each rank draws its part",
                    attention = "attention is always computed without keeping its weights",
                    projections = "it is a layout of weights in memory",
                    pipelines = "there are no pipeline stages",
                    dumps =
                        "dumps are not available; metrics.jsonl and TensorBoard have the gradient norm, and "
                        "track.histograms of a recipe the distribution of weights and gradients";
  std::vector<Flag> flags = {
      ignored("use_fp32_optimizer", true, masters),
      ignored("use_gpu_compatible_precision", true, masters),
      ignored("use_mix_precision", true, masters),
      ignored("use_deferred_init", true, memory),
      ignored("use_meta_device_init", true, memory),
      ignored("use_flash_attention", true, attention),
      ignored("transpose_nki_inputs", true, attention),
      ignored("qkv_linear", true, projections),
      ignored("fuse_qkv", true, projections),
      ignored("separate_qkv", true, projections),
      ignored("kv_replicator", false, "ranks beyond the number of heads of keys and values share them"),
      ignored("num_microbatches", false, pipelines),
      ignored("fuse_microbatches", true, pipelines),
      ignored("deallocate_pipeline_outputs", true, pipelines),
      ignored("trace_file_path", false, "no graph is traced"),
      ignored("lnc_size", false, "it is a setting of Neuron cores"),
      ignored("save_load_xser", true, "a checkpoint is a folder that all ranks write"),
      ignored("log_rank0", true, "rank 0 logs means over all ranks"),
      ignored("hf_token", false, "nothing is downloaded; stretto pull fetches models"),
      ignored("hooks_dump_base_directory", false, dumps),
      ignored("hooks_interval", false, dumps),
      ignored("target_layers", false, dumps),
  };
  for (const char* name :
       {"hooks", "master_print_model_layers", "dump_only_master_rank", "dump_only_norms",
        "enable_activation_dumps", "enable_grad_dumps", "enable_tb_logging_master_rank_activation_norms",
        "enable_tb_logging_master_rank_grad_norms"})
    flags.push_back(ignored(name, true, dumps));
  return flags;
}

// Whether a command line is one of the fine-tuning script.
bool fine_tunes(const ScriptState& state) { return state.has("task") || state.has("pretrained_ckpt"); }

}  // namespace

const std::vector<Flag>& llama_flags() {
  static const std::vector<Flag> table = [] {
    std::vector<Flag> all = llama_flags_read_later();
    for (const std::vector<Flag>& more : {refused_llama_flags(), ignored_llama_flags()})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return table;
}

LlamaDefaults llama_defaults(const ScriptState& state) {
  if (fine_tunes(state)) return {.grad_accum_usteps = 64, .seq_len = 2048};
  return {};
}

bool divides_rows(const ScriptState& state) {
  return state.is_true(given_name(state, "use_sequence_parallel", "sequence_parallel_enabled"),
                       /*unset=*/!fine_tunes(state));
}

std::string given_name(const ScriptState& state, const std::string& name, const std::string& other) {
  if (state.has(name) && state.has(other) && state.given.at(name) != state.given.at(other))
    throw ConfigError("{}: {} is given too; remove one of them", state.text(name), state.text(other));
  return state.has(other) ? other : name;
}

int64_t whole_value(const ScriptState& state, const std::string& flag, int64_t unset, int64_t least) {
  if (!state.has(flag)) return unset;
  const auto number = parse_int(state.given.at(flag));
  if (number && *number >= least) return *number;
  throw ConfigError("{}: expected a whole number from {}", state.text(flag), least);
}

int64_t count_value(const ScriptState& state, const std::string& flag) {
  return state.value(flag, "-1") == "-1" ? -1 : whole_value(state, flag, -1, 1);
}

void set_value(ScriptState& state, const std::string& flag, const std::string& setting,
               const std::string& unset) {
  const std::string value = state.value(flag, unset);
  state.recipe.set_flag("--" + flag + " " + value);
  state.recipe.set(setting, quoted(value));
  state.recipe.set_flag("");
}

}  // namespace stretto::compat
