#include "stretto/compat/deepspeed_keys.h"

namespace stretto::compat {
namespace {

const char* const own_buckets =
    "training.bucket_mb sets the size of buckets, and reductions always overlap the backward pass";
const char* const no_scaling = "gradients are sums in fp32, divided once";
const char* const no_loss_scaling = "apex is not used";
const char* const own_log = "track.log_every and `stretto profile` cover this";
const char* const own_trackers = "track.trackers selects what is written";
const char* const shared_parameters = "on one host parameters are shared, not gathered";
const char* const read_in_parts = "each rank reads the part of the model that it holds";
const char* const no_python = "there is no Python to compile or to collect";
const char* const own_checkpoints =
    "checkpoints load at any world size, and `stretto convert` exports the model";

// `true` enables an unsupported feature.
Key unless_enabled(std::string_view name, std::string reason) {
  return only(name, {"false", "False"}, std::move(reason));
}

void warmup_min_lr(const Value& value, ForeignConfig&) {
  if (value.text() != "0" && value.text() != "0.0") refuse(value, "the warm-up begins at 0");
}

// Parameters of other optimizers than Adam have the names of PyTorch's arguments.
void optimizer_parameter(const Value& value, ForeignConfig& config) {
  same_as(value.key, "optimizer." + value.key.substr(std::string_view("optimizer.params.").size()))
      .use(value, config);
}

void old_offload(const Value& value, ForeignConfig& config) {
  if (value.is_true()) in_host_memory(value, config);
}

}  // namespace

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
      ignored("fp16.fused_mode", "there is one implementation"),
      ignored("fp16.auto_cast", "inputs are cast where the model is computed in fp16"),
      only("fp16.fp16_master_weights_and_grads", {"false", "False"}, "gradients and master weights are fp32"),
      read_with_another("bf16.enabled"),
      read_with_another("bfloat16.enabled"),
      ignored("bf16.*", "gradients and master weights are fp32"),
      ignored("bfloat16.*", "gradients and master weights are fp32"),
      unless_enabled("amp.enabled", "apex is not used; use bf16: {\"enabled\": true}"),
      ignored("amp.*", no_loss_scaling),
      only("communication_data_type", {"fp32", "torch.float32"},
           "gradients are reduced in fp32; remove this key"),
      ignored("prescale_gradients", no_scaling),
      ignored("gradient_predivide_factor", no_scaling),
      ignored("sparse_gradients", "embeddings with sparse gradients are reduced by the rows in use"),
      // ZeRO
      choice("zero_optimization", "training.strategy", {{"false", "ddp"}, {"true", "zero1"}}),  // old files
      choice("zero_optimization.stage", "training.strategy",
             {{"0", "ddp"}, {"1", "zero1"}, {"2", "zero2"}, {"3", "fsdp"}}),
      offload_device("zero_optimization.offload_optimizer.device"),
      read_with_another("zero_optimization.offload_optimizer.nvme_path"),
      ignored("zero_optimization.offload_optimizer.*", "the system moves pages between memory and file"),
      offload_device("zero_optimization.offload_param.device"),
      read_with_another("zero_optimization.offload_param.nvme_path"),
      ignored("zero_optimization.offload_param.*", "the system moves pages between memory and file"),
      {"zero_optimization.cpu_offload", old_offload},
      {"zero_optimization.cpu_offload_param", old_offload},
      {"zero_optimization.cpu_offload_params", old_offload},
      ignored("zero_optimization.cpu_offload_use_pin_memory", "the state is in the host's memory"),
      unless_enabled("zero_optimization.zero_quantized_weights",
                     "weights are not quantised for communication"),
      unless_enabled("zero_optimization.zero_quantized_nontrainable_weights", "weights are not quantised"),
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
      // DeepSpeed takes these names with and without "stage3_".
      ignored("zero_optimization.stage3_max_live_parameters", shared_parameters),
      ignored("zero_optimization.max_live_parameters", shared_parameters),
      ignored("zero_optimization.stage3_max_reuse_distance", shared_parameters),
      ignored("zero_optimization.max_reuse_distance", shared_parameters),
      ignored("zero_optimization.stage3_prefetch_bucket_size", shared_parameters),
      ignored("zero_optimization.prefetch_bucket_size", shared_parameters),
      ignored("zero_optimization.stage3_param_persistence_threshold", shared_parameters),
      ignored("zero_optimization.param_persistence_threshold", shared_parameters),
      ignored("zero_optimization.stage3_model_persistence_threshold", shared_parameters),
      ignored("zero_optimization.model_persistence_threshold", shared_parameters),
      ignored("zero_optimization.stage3_gather_16bit_weights_on_model_save", own_checkpoints),
      ignored("zero_optimization.gather_16bit_weights_on_model_save", own_checkpoints),
      ignored("zero_optimization.stage3_module_granularity_threshold", own_units),
      ignored("zero_optimization.module_granularity_threshold", own_units),
      ignored("zero_optimization.stage3_use_all_reduce_for_fetch_params", own_units),
      ignored("zero_optimization.use_all_reduce_for_fetch_params", own_units),
      ignored("zero_optimization.stage3_allgather_sequential", own_units),
      ignored("zero_optimization.allgather_sequential", own_units),
      ignored("zero_optimization.stage3_partition_stream_chunk_size", read_in_parts),
      ignored("zero_optimization.partition_stream_chunk_size", read_in_parts),
      ignored("zero_optimization.stage3_gather_fp16_weights_on_model_save", own_checkpoints),
      ignored("zero_allow_untested_optimizer", "every optimizer works under every strategy"),
      ignored("zero_force_ds_cpu_optimizer", "there is one implementation"),
      ignored("aio.*", "the system moves pages between memory and file"),
      ignored("zero_optimization.grad_hooks", own_buckets),
      ignored("zero_optimization.parameter_alignment", "each parameter begins at a cache line"),
      ignored("zero_optimization.compute_grad_norm", "the norm is part of each record"),
      ignored("zero_optimization.log_trace_cache_warnings", own_log),
      ignored("zero_optimization.save_muon_momentum_buffer_in_memory", "the state is offloaded as a whole"),
      ignored("zero_optimization.memory_efficient_linear", "there is one implementation"),
      ignored("zero_optimization.legacy_stage1", "there is one implementation"),
      ignored("zero_optimization.leaf_module.*", own_units),
      ignored("zero_optimization.use_multi_rank_bucket_allreduce", own_buckets),
      ignored("zero_optimization.override_module_apply", no_python),
      ignored("zero_optimization.enable_sanity_checks",
              "STRETTO_DEBUG=collectives compares the calls of all ranks"),
      ignored("zero_optimization.pipeline_loading_checkpoint", own_checkpoints),
      only("zero_optimization.mics_shard_size", {"-1"},
           "use the strategy hsdp with training.dp_shard, and remove this key"),
      ignored("zero_optimization.mics_hierarchical_params_gather", own_units),
      feature("zero_optimization.zenflow", "the optimizer updates all parameters in each step", true),
      feature("zero_optimization.zeropp_loco_param", "gradients are not quantised for communication", true),
      // optimizer and schedule
      read_with_another("optimizer.type"),
      ignored("optimizer.legacy_fusion", "there is one implementation"),
      read_with_another("optimizer.params.adam_w_mode"),
      same_as("optimizer.params.lr", "optimizer.lr"),
      same_as("optimizer.params.betas", "optimizer.betas"),
      same_as("optimizer.params.eps", "optimizer.eps"),
      same_as("optimizer.params.weight_decay", "optimizer.weight_decay"),
      read_with_another("optimizer.params.bias_correction"),
      same_as("optimizer.params.max_coeff", "optimizer.max_coeff"),
      same_as("optimizer.params.min_coeff", "optimizer.min_coeff"),
      same_as("optimizer.params.max_grad_norm", "training.max_grad_norm"),
      same_as("optimizer.params.adam_lr", "optimizer.adamw_lr"),  // of Muon, whose own rate is lr
      same_as("optimizer.params.muon_lr", "optimizer.lr"),
      ignored("optimizer.params.ns_method", "there is one form of the iteration"),
      only("optimizer.params.per_head_muon", {"false", "False"}, "whole matrices are orthogonalised"),
      ignored("optimizer.params.torch_adam", "there is one implementation"),
      ignored("optimizer.params.fused", "there is one implementation"),
      ignored("optimizer.params.foreach", "there is one implementation"),
      ignored("optimizer.params.fp32_optimizer_states", "the state is always fp32"),
      {"optimizer.params.*", optimizer_parameter},
      read_with_another("scheduler.type"),
      {"scheduler.params.warmup_min_lr", warmup_min_lr},
      same_as("scheduler.params.warmup_max_lr", "optimizer.lr"),
      same_as("scheduler.params.warmup_num_steps", "scheduler.num_warmup_steps"),
      same_as("scheduler.params.warmup_type", "scheduler.warmup_type"),
      only("scheduler.params.warmup_min_ratio", {"0", "0.0"}, "the warm-up begins at 0"),
      same_as("scheduler.params.cos_min_ratio", "scheduler.min_lr_rate"),
      read_with_another("scheduler.params.total_num_steps"),
      ignored("scheduler.params.last_batch_iteration", "resumed runs continue their schedule"),
      // other settings
      ignored("steps_per_print", own_log),
      ignored("wall_clock_breakdown", own_log),
      ignored("dump_state", own_log),
      ignored("memory_breakdown", own_log),
      ignored("timers", own_log),
      ignored("flops_profiler.*", own_log),
      ignored("comms_logger.*", own_log),
      ignored("tensorboard.*", own_trackers),
      ignored("csv_monitor.*", own_trackers),
      ignored("wandb.*", own_trackers),
      ignored("comet.*", own_trackers),
      ignored("activation_checkpointing.*", "it configures a function of DeepSpeed that a model calls"),
      ignored("checkpoint.*", own_checkpoints),
      only("data_types.grad_accum_dtype", {"fp32"}, "gradients accumulate in fp32; use fp32"),
      only("managed_gradient_accumulation", {"true", "True"},
           "a step always ends its window of micro-batches"),
      only("gradient_allreduce_op", {"mean"}, "gradients are means over the global batch"),
      ignored("allgather_size", own_buckets),
      ignored("fp32_allreduce", "gradients are reduced in fp32"),
      unless_enabled("disable_allgather", "parameters are always gathered after a step"),
      unless_enabled("dataloader_drop_last",
                     "the last batch of an epoch is trained on, with its own divisor"),
      ignored("vocabulary_size", "the model's config.json has it"),
      ignored("disable_python_gc", no_python),
      ignored("graph_harvesting", no_python),
      unless_enabled("compile.deepcompile", no_python),
      ignored("compile.*", no_python),
      ignored("seq_parallel_communication_data_type", no_sequence),
      ignored("seq_parallel_comm_data_type", no_sequence),
      single("sequence_parallel_size", "sequence parallelism of attention (Ulysses)"),
      layer_ranks("tensor_parallel.autotp_size"),
      ignored("tensor_parallel.*", "the layers of a model declare how they are divided"),
      ignored("use_data_before_expert_parallelism", "there are no mixtures of experts"),
      ignored("pipeline.*", "models are not divided into stages"),
      read_with_another("torch_autocast.enabled"),
      read_with_another("torch_autocast.dtype"),
      ignored("torch_autocast.lower_precision_safe_modules", "matmuls compute in bf16"),
      visible_devices("cuda_visible_devices"),
      // features that are not there
      feature("*.elasticity", "the world size is fixed during a run; restarts may use another"),
      feature("*.autotuning", "there is no tuning of batch sizes; `stretto plan` compares strategies"),
      feature("*.compression_training", "models are neither quantised nor pruned in training"),
      feature("*.quantize_training", "models are not quantised in training"),
      feature("weight_quantization", "models are not quantised", true),
      feature("transformer_cuda_ext", "layers are computed by stretto's own kernels"),
      feature("*.data_efficiency", "there are neither curricula by difficulty nor dropped tokens"),
      feature("*.curriculum_learning",
              "there are no curricula by difficulty; a program can train on a data::Curriculum"),
      feature("*.random_ltd", "no tokens are dropped in layers"),
      feature("*.progressive_layer_drop", "all layers take part in each step"),
      feature("*.sparse_attention", "attention is dense", true),
      feature("*.eigenvalue", "eigenvalues are not computed"),
      feature("*.expert_parallel", "there are no mixtures of experts"),
      feature("*.hybrid_engine", "text is generated by stretto's own generator"),
      feature("*.nebula", "checkpoints are written to the run's folder"),
  };
  return keys;
}

}  // namespace stretto::compat
