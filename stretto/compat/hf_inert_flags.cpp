#include "stretto/compat/hf_flags.h"

namespace stretto::compat {
namespace {

// Flags that are ignored with a note.
std::vector<Flag> ignored_flags() {
  const std::string local = "models are fetched by `stretto pull`, and no code of models is executed";
  const std::string packed = "batches are packed without padding";
  const std::string built_in =
      "data is read and tokenised on all processors, once, and cached by its content";
  const std::string compiled = "kernels are compiled, fused and chosen for the processor";
  const std::string one_half = "there is one implementation of bf16";
  const std::string exact = "models are evaluated in the precision of training, and tested in fp32";
  const std::string logging = "warnings and progress are logged by rank 0";
  const std::string counted = "metrics.jsonl holds samples_per_second and tokens_per_second";
  const std::string metrics = "metrics are those of the task, over all samples at once";
  const std::string state = "a checkpoint holds the whole state of the run";
  const std::string uploads = "stretto uploads nothing";
  const std::string gpus = "it is for other hardware";
  return {
      ignored("cache_dir", false, local),
      ignored("model_revision", false, local),
      may_stand_alone(ignored("use_auth_token", false, local)),
      ignored("token", false, local),
      ignored("trust_remote_code", true, local),
      ignored("ignore_mismatched_sizes", true, "a head of another task is never loaded"),
      ignored("use_fast_tokenizer", true, "there is one tokenizer"),
      ignored("low_cpu_mem_usage", true, "parameters are loaded once"),
      ignored("attn_implementation", false, compiled),
      ignored("streaming", true, "files are read in parts, and their tokens are mapped"),
      ignored("pad_to_max_length", true, packed),
      ignored("group_by_length", true, packed),
      ignored("length_column_name", false, packed),
      ignored("overwrite_cache", true, built_in),
      ignored("preprocessing_num_workers", false, built_in),
      ignored("dataloader_num_workers", false, built_in),
      ignored("dataloader_pin_memory", true, built_in),
      ignored("dataloader_persistent_workers", true, built_in),
      ignored("dataloader_prefetch_factor", false, built_in),
      ignored("dataloader_multiprocessing_context", false, built_in),
      ignored("dataloader_in_order", true, built_in),
      ignored("remove_unused_columns", true, "columns are chosen by their names"),
      as_list(ignored("label_names", false, "columns are chosen by their names")),
      ignored(
          "full_determinism", true,
          "on CPUs a run repeats bit for bit; training.deterministic extends that to other numbers of ranks"),
      ignored("tf32", true, "matmuls on CPUs are fp32 or bf16: --bf16"),
      ignored("half_precision_backend", false, one_half),
      ignored("fp16_backend", false, one_half),
      ignored("fp16_opt_level", false, one_half),
      ignored("fp16_full_eval", true, exact),
      ignored("bf16_full_eval", true, exact),
      ignored("torch_compile", true, compiled),
      ignored("torch_compile_backend", false, compiled),
      ignored("torch_compile_mode", false, compiled),
      ignored("torchdynamo", false, compiled),
      ignored("jit_mode_eval", true, compiled),
      ignored("use_ipex", true, compiled),
      ignored("use_liger_kernel", true, compiled),
      ignored("liger_kernel_config", false, compiled),
      ignored("use_cache", true, "these models generate nothing"),
      ignored("torch_empty_cache_steps", false, "tensor memory is reused by size"),
      ignored("gradient_checkpointing_kwargs", false, "each block is computed again"),
      ignored("activation_checkpointing_kwargs", false, "each block is computed again"),
      ignored("local_rank", false, "stretto starts the ranks: -N"),
      ignored("ddp_backend", false, "training.backend selects it"),
      ignored("ddp_timeout", false, "stretto train has --collective-timeout"),
      ignored("ddp_find_unused_parameters", true, "uses are counted in the graph"),
      ignored("ddp_static_graph", true, "uses are counted in the graph"),
      ignored("ddp_broadcast_buffers", true, "these models have no buffers that change"),
      ignored("average_tokens_across_devices", true, "a loss is the mean over the global batch"),
      ignored("fsdp_config", false, "the blocks of the model are its units"),
      ignored("fsdp_min_num_params", false, "the blocks of the model are its units"),
      ignored("fsdp_transformer_layer_cls_to_wrap", false, "the blocks of the model are its units"),
      ignored("xpu_backend", false, gpus),
      ignored("tpu_num_cores", false, gpus),
      ignored("tpu_metrics_debug", true, gpus),
      ignored("log_level", false, logging),
      ignored("log_level_replica", false, logging),
      ignored("log_on_each_node", true, logging),
      ignored("logging_first_step", true, "the first step is always reported"),
      ignored("logging_nan_inf_filter", true,
              "a loss that is not finite ends the run (training.on_nonfinite)"),
      as_list(ignored("debug", false, "STRETTO_DEBUG=collectives compares the calls of all ranks")),
      ignored("skip_memory_metrics", true, "stretto plan predicts memory"),
      may_stand_alone(ignored("include_num_input_tokens_seen", false, counted)),
      ignored("include_tokens_per_second", true, counted),
      ignored("include_inputs_for_metrics", true, metrics),
      as_list(ignored("include_for_metrics", false, metrics)),
      ignored("batch_eval_metrics", true, metrics),
      ignored("prediction_loss_only", true, metrics),
      ignored("eval_accumulation_steps", false, metrics),
      ignored("eval_do_concat_batches", true, metrics),
      ignored("eval_use_gather_object", true, metrics),
      ignored("use_legacy_prediction_loop", true, metrics),
      ignored("project", false, "runs are named by their folder"),
      ignored("trackio_space_id", false, uploads),
      ignored("trackio_bucket_id", false, uploads),
      ignored("trackio_static_space_id", false, uploads),
      ignored("save_safetensors", true, "models are always saved as safetensors"),
      ignored("save_only_model", true, state),
      ignored("save_on_each_node", true, "rank 0 saves the model, each rank its part of a checkpoint"),
      ignored("restore_callback_states_from_checkpoint", true, state),
      ignored("enable_jit_checkpoint", true, "SIGTERM always saves before the run ends"),
      ignored("hub_model_id", false, uploads),
      ignored("hub_token", false, uploads),
      ignored("hub_strategy", false, uploads),
      ignored("hub_revision", false, uploads),
      ignored("hub_private_repo", true, uploads),
      ignored("hub_always_push", true, uploads),
      ignored("push_to_hub_model_id", false, uploads),
      ignored("push_to_hub_organization", false, uploads),
      ignored("push_to_hub_token", false, uploads),
  };
}

// Flags that would change the training unless they have the listed values.
std::vector<Flag> refused_flags() {
  const std::string downloads =
      "stretto downloads nothing; export the data set to files and pass --train_file, --validation_file and --test_file";
  const std::string generates = "it is a flag of scripts that generate text";
  return {
      refused("dataset_name", false, {}, downloads),
      refused("dataset_config_name", false, {}, downloads),
      refused(
          "deepspeed", false, {"false"},
          "pass --strategy zero1, zero2 or fsdp for its stages 1, 2 and 3; stretto train --deepspeed reads such a file"),
      refused("sharded_ddp", false, {"false"}, "pass --strategy zero2 or fsdp"),
      refused("accelerator_config", false, {"{}"},
              "pass --strategy; batches are always divided among the ranks"),
      refused("parallelism_config", false, {"{}"}, "pass --strategy and --tp"),
      refused("mp_parameters", false, {"{}"}, "models are not divided by layers; pass --strategy fsdp"),
      refused("push_to_hub", true, {"false"}, "stretto uploads nothing; the model is in --output_dir"),
      refused("optim_args", false, {"{}"}, "set the optimizer's settings in the recipe of --print-recipe"),
      refused("optim_target_modules", false, {}, "optimizers for some layers only are not supported"),
      refused("neftune_noise_alpha", false, {"0", "0.0"}, "noise on embeddings is not supported"),
      refused("auto_find_batch_size", true, {"false"},
              "pass --per_device_train_batch_size; stretto plan predicts the memory"),
      refused("dataloader_drop_last", true, {"false"}, "each sample of an epoch is used once"),
      refused("eval_delay", false, {"0", "0.0"}, "evaluations begin with their first interval"),
      refused("ignore_data_skip", true, {"false"}, "a resumed run continues at the sample where it was"),
      refused("past_index", false, {"-1"}, "these models have no state between batches"),
      refused("use_mps_device", true, {"false"}, "there are CPUs and CUDA"),
      refused("torch_dtype", false, {"auto", "float32"}, "weights are fp32; pass --bf16 to compute in bf16"),
      refused("dtype", false, {"auto", "float32"}, "weights are fp32; pass --bf16 to compute in bf16"),
      refused("predict_with_generate", true, {"false"}, generates),
      refused("generation_max_length", false, {}, generates),
      refused("generation_num_beams", false, {}, generates),
      refused("sortish_sampler", true, {"false"}, generates),
  };
}

}  // namespace

std::vector<Flag> inert_hf_flags() {
  std::vector<Flag> flags = ignored_flags();
  const std::vector<Flag> refused = refused_flags();
  flags.insert(flags.end(), refused.begin(), refused.end());
  return flags;
}

}  // namespace stretto::compat
