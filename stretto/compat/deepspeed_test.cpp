#include "stretto/base/message_support.h"
#include "stretto/compat/foreign_support.h"
#include "stretto/config/topology_request.h"
#include "stretto/optim_config/optimizers.h"
#include "stretto/optim_config/schedules.h"

namespace stretto::compat {
namespace {

using ::testing::Contains;
using ::testing::SizeIs;

TEST_F(Foreign, ADeepSpeedFileSetsARecipe) {
  const ForeignConfig foreign = read_deepspeed(write("ds.json", zero2_json));
  const Recipe set = recipe(foreign);
  EXPECT_EQ(set.training.strategy, "zero2");
  EXPECT_EQ(set.training.precision, "bf16");
  EXPECT_EQ(set.training.max_grad_norm, 0.5);
  EXPECT_EQ(resolve(topology_request(set), equal_hosts(1, 2)).batch.global_batch_size, 8 * 4 * 2);
  const auto& adamw = set.optimizer.as<optim::AdamwOptions>();
  EXPECT_EQ(adamw.lr, 3e-5);
  EXPECT_EQ(adamw.betas[1], 0.98);
  EXPECT_EQ(adamw.weight_decay, 0.01) << "auto is the recipe's value";
  EXPECT_EQ(set.scheduler.type, "LinearWithWarmup");
  EXPECT_EQ(set.scheduler.value("num_warmup_steps"), 7);
  EXPECT_EQ(set.scheduler.as<optim::LinearWithWarmupOptions>().warmup_type, "log") << "DeepSpeed's default";
  EXPECT_EQ(set.origins.label("training.max_grad_norm"),
            (folder_.path() / "ds.json").string() + ":45:26: gradient_clipping: training.max_grad_norm");
  EXPECT_THAT(foreign.notes, SizeIs(10));
  EXPECT_THAT(foreign.notes,
              Contains(has_all("ds.json:39:25: zero_optimization.overlap_comm:", "training.bucket_mb")));
}

// DeepSpeed's assertion "Check batch related parameters", and how it computes what is not given.
TEST_F(Foreign, ATrainBatchSizeIsTheProductOfTheOthers) {
  const auto check = [&](const std::string& json, int64_t ranks, const std::string& yaml = "output: run\n") {
    const ForeignConfig foreign = read_deepspeed(write("ds.json", json));
    require_batch_equation(foreign, recipe(foreign, yaml), ranks);
  };
  const auto refused = [&](const std::string& json, int64_t ranks) {
    return refusal([&] { check(json, ranks); });
  };
  const char* whole =
      R"({"train_batch_size": 10, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1})";
  EXPECT_THAT(refused(whole, 3),
              has_all((folder_.path() / "ds.json").string() + ":1:22: train_batch_size: 10 ",
                      "train_micro_batch_size_per_gpu (4) x gradient_accumulation_steps (1) x ranks (3) = 12",
                      "set it to 12"));
  EXPECT_THAT(
      refused(R"({"train_batch_size": 16, "train_micro_batch_size_per_gpu": 5})", 3),
      has_all("per_gpu (5) x gradient_accumulation_steps (1, computed) x ranks (3) = 15; set it to 15"));
  EXPECT_THAT(refused(R"({"train_batch_size": 4, "train_micro_batch_size_per_gpu": 4})", 2),
              has_all("gradient_accumulation_steps (0, computed) x ranks (2) = 0; set it to 8"));
  EXPECT_THAT(refused(R"({"train_batch_size": 10, "gradient_accumulation_steps": 2})", 2),
              has_all("per_gpu (2, computed) x gradient_accumulation_steps (2) x ranks (2) = 8"));
  EXPECT_THAT(refused(R"({"train_batch_size": 7, "gradient_accumulation_steps": "auto"})", 2),
              has_all("per_gpu (3, computed) x gradient_accumulation_steps (1, computed) x ranks (2) = 6"));
  check(R"({"train_batch_size": 24, "train_micro_batch_size_per_gpu": 4})", 3);
  check(R"({"train_batch_size": 24, "train_micro_batch_size_per_gpu": "auto"})", 3,
        "training: {batch_size: 4, grad_accumulation_steps: 2}\n");
  check(R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 4})", 3);
  check(R"({"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 3})", 5);
  check(R"({"train_batch_size": 8, "tensor_parallel": {"autotp_size": 2}})", 4);
}

TEST_F(Foreign, GradientClippingHasTheDocumentedDefault) {
  const auto norm = [&](const std::string& json, const std::string& yaml = "output: run\n") {
    return recipe(read_deepspeed(write("ds.json", json)), yaml).training.max_grad_norm;
  };
  EXPECT_EQ(norm(R"({"zero_optimization": {"stage": 1}})"), 1);
  EXPECT_EQ(norm(R"({"gradient_clipping": "auto"})"), 1);
  EXPECT_EQ(norm(R"({"gradient_clipping": 0.0})"), 0);
  EXPECT_EQ(norm("{}", "training: {max_grad_norm: 0.5}\n"), 0.5);
}

TEST_F(Foreign, StagesAreStrategies) {
  const std::pair<const char*, const char*> stages[] = {
      {"0", "ddp"}, {"1", "zero1"}, {"2", "zero2"}, {"3", "fsdp"}};
  for (const auto& [stage, strategy] : stages) {
    const auto file = write("ds.json", zero2_json, "\"stage\": 2", std::string("\"stage\": ") + stage);
    EXPECT_EQ(recipe(read_deepspeed(file)).training.strategy, strategy);
  }
  EXPECT_EQ(recipe(read_deepspeed(write("ds.json", "{}"))), recipe({}));
  const Recipe tabs =
      recipe(read_deepspeed(write("ds.json", "{\n\t\"zero_optimization\":\t{\"stage\": 1}\n}\n")));
  EXPECT_EQ(tabs.training.strategy, "zero1");
}

TEST_F(Foreign, DeepSpeedsAdamIsAdamwByDefault) {
  const auto type_of = [&](const std::string& optimizer) {
    return recipe(read_deepspeed(write("ds.json", "{\"optimizer\": " + optimizer + "}"))).optimizer;
  };
  EXPECT_EQ(type_of(R"({"type": "Adam"})").type, "AdamW");
  EXPECT_EQ(type_of(R"({"type": "Adam"})").as<optim::AdamwOptions>().weight_decay, 0)
      << "DeepSpeed's default";
  EXPECT_EQ(type_of(R"({"type": "Adam", "params": {"adam_w_mode": false}})").type, "Adam");
  EXPECT_EQ(
      type_of(R"({"type": "AdamW", "params": {"weight_decay": 0.1}})").as<optim::AdamwOptions>().weight_decay,
      0.1);
  EXPECT_EQ(recipe(read_deepspeed(folder_.path() / "ds.json"), "optimizer: {weight_decay: 0.1}\n")
                .optimizer.as<optim::AdamwOptions>()
                .weight_decay,
            0.1);
}

TEST_F(Foreign, DeepSpeedsLambCorrectsTheStep) {
  const auto optimizer_of = [&](const std::string& optimizer) {
    return recipe(read_deepspeed(write("ds.json", "{\"optimizer\": " + optimizer + "}"))).optimizer;
  };
  EXPECT_EQ(optimizer_of(R"({"type": "Lamb"})").as<optim::LambOptions>(),
            (optim::LambOptions{.bias_correction = "step"}));
  const auto params = R"({"type": "Lamb", "params": {"lr": 0.011, "bias_correction": false, "max_coeff": 0.3,
                          "min_coeff": 0.02, "weight_decay": 0.01}})";
  EXPECT_EQ(optimizer_of(params).as<optim::LambOptions>(), (optim::LambOptions{.lr = 0.011,
                                                                               .weight_decay = 0.01,
                                                                               .bias_correction = "none",
                                                                               .max_coeff = 0.3,
                                                                               .min_coeff = 0.02}));
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { optimizer_of(R"({"type": "Adam", "params": {"bias_correction": false}})"); }),
              has_all("optimizer.params.bias_correction:", "always corrects the bias"));
}

TEST_F(Foreign, Fp16HasDeepSpeedsLossScale) {
  const auto read_fp16 = [&](const std::string& keys) {
    return recipe(read_deepspeed(write("f.json", "{\"fp16\": {\"enabled\": true" + keys + "}}")));
  };
  const Recipe defaults = read_fp16("");
  EXPECT_EQ(defaults.training.precision, "fp16");
  EXPECT_EQ(defaults.loss_scale.init_scale, 65'536);
  EXPECT_EQ(defaults.loss_scale.growth_interval, 1000);
  EXPECT_EQ(defaults.loss_scale.hysteresis, 2);
  EXPECT_EQ(defaults.loss_scale.min_scale, 1);
  EXPECT_TRUE(defaults.loss_scale.dynamic);
  const Recipe given = read_fp16(
      R"(, "initial_scale_power": 8, "loss_scale_window": 50, "hysteresis": 1, "min_loss_scale": 0.5)");
  EXPECT_EQ(given.loss_scale.init_scale, 256);
  EXPECT_EQ(given.loss_scale.growth_interval, 50);
  EXPECT_EQ(given.loss_scale.hysteresis, 1);
  EXPECT_EQ(given.loss_scale.min_scale, 0.5);
  const Recipe fixed = read_fp16(R"(, "loss_scale": 1024, "initial_scale_power": 8)");
  EXPECT_EQ(fixed.loss_scale.init_scale, 1024);
  EXPECT_FALSE(fixed.loss_scale.dynamic);
  const ForeignConfig over_recipe = read_deepspeed(write("f.json", R"({"fp16": {"enabled": true}})"));
  EXPECT_EQ(recipe(over_recipe, "loss_scale: {hysteresis: 1}\n").loss_scale.hysteresis, 1)
      << "a default of the tool, which the recipe may override";
  const char* both = R"({"fp16": {"enabled": true}, "bf16": {"enabled": false}})";
  EXPECT_EQ(recipe(read_deepspeed(write("f.json", both))).training.precision, "fp16");
  const char* none = R"({"fp16": {"enabled": false, "loss_scale": 0}, "bf16": {"enabled": false}})";
  EXPECT_EQ(recipe(read_deepspeed(write("f.json", none))).training.precision, "fp32");
  EXPECT_EQ(recipe(read_accelerate(write("a.yaml", "mixed_precision: fp16\n"))).training.precision, "fp16");
}

TEST_F(Foreign, UnsupportedValuesAreRefusedWithAReason) {
  EXPECT_THAT(
      deepspeed_refusal("\"device\": \"none\"", "\"device\": \"disk\""),
      has_all("ds.json:34:23: zero_optimization.offload_optimizer.device:", "\"disk\"", "none, cpu or nvme"));
  EXPECT_THAT(refusal([&] { read_deepspeed(write("ds.json", R"({"fp16": {"enabled": "Ture"}})")); }),
              has_all("ds.json:1:22: fp16.enabled:", "found \"Ture\"", "expected true or false"));
  EXPECT_THAT(deepspeed_refusal("\"stage\": 2", "\"stage\": 4"),
              has_all("ds.json:32:18: zero_optimization.stage:", "\"4\"", "0, 1, 2, 3"));
  EXPECT_THAT(deepspeed_refusal("\"AdamW\"", "\"Lion\""),
              has_all("ds.json:", "optimizer.type:", "\"Lion\"", "Adam, AdamW or Lamb"));
  for (const char* type : {"OneBitAdam", "ZeroOneAdam", "OneBitLamb"}) {
    EXPECT_THAT(
        refusal([&] {
          read_deepspeed(write("ds.json", fmt::format(R"({{"optimizer": {{"params": {{"freeze_step": 400,
  "cuda_aware": false, "comm_backend_name": "nccl", "var_freeze_step": 3}}, "type": "{}"}}}})",
                                                      type)));
        }),
        has_all("ds.json:2:", "optimizer.type:", type, "1 bit"));
  }
  EXPECT_THAT(
      deepspeed_refusal("\"WarmupDecayLR\"", "\"OneCycle\""),
      has_all("ds.json:", "scheduler.type:", "\"OneCycle\"", "WarmupLR, WarmupDecayLR or WarmupCosineLR"));
  EXPECT_THAT(refusal([&] {
                read_deepspeed(write("ds.json", R"({"fp16": {"fp16_master_weights_and_grads": true}})"));
              }),
              has_all("ds.json:1:44: fp16.fp16_master_weights_and_grads:", "are fp32; set it to false"));
  EXPECT_THAT(deepspeed_refusal("gradient_clipping", "gradient_cliping"),
              has_all("ds.json:45:5: gradient_cliping:", "did you mean \"gradient_clipping\"?"));
  EXPECT_THAT(deepspeed_refusal("\"stage\": 2", "\"stage\": [2]"),
              has_all("ds.json:32:18: zero_optimization.stage:", "expected a value", "list"));
  EXPECT_THAT(deepspeed_refusal("{\n        \"enabled\": true\n    }", "true"),
              has_all("ds.json:", "bf16: ", "section"));
  EXPECT_THAT(deepspeed_refusal("wall_clock_breakdown\": false", "train_batch_size\": 3"),
              has_all("ds.json:49:5:", "\"train_batch_size\"", "ds.json:47:5;"));
  EXPECT_THAT(refusal([&] { read_deepspeed(folder_.path() / "none.json"); }),
              has_all("none.json:", "no such file", "configuration of DeepSpeed"));
  EXPECT_THAT(refusal([&] { recipe(read_deepspeed(write("ds.json", "{\"gradient_clipping\": \"much\"}"))); }),
              has_all("ds.json:1:23: gradient_clipping", "\"much\""));
}

// Every key of DeepSpeed's page on its configuration, with a value that asks for nothing.
constexpr const char* documented_deepspeed = R"({
"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1,
"managed_gradient_accumulation": true,
"optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "betas": [0.9, 0.98], "eps": 1e-8, "weight_decay": 0.1,
  "torch_adam": true, "adam_w_mode": true, "bias_correction": true}},
"scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 9, "warmup_num_steps": 3,
  "warmup_type": "linear",
  "warmup_min_ratio": 0.0, "cos_min_ratio": 0.1}},
"communication_data_type": "fp32", "fp32_allreduce": true, "gradient_allreduce_op": "mean",
  "prescale_gradients": false,
"gradient_predivide_factor": 1.0, "sparse_gradients": false,
"fp16": {"enabled": false, "auto_cast": false, "loss_scale": 0, "initial_scale_power": 16,
  "loss_scale_window": 1000,
  "hysteresis": 2, "consecutive_hysteresis": false, "min_loss_scale": 1,
  "fused_mode": true, "fp16_master_weights_and_grads": false},
"bf16": {"enabled": true, "bf16_master_weights_and_grads": false, "bf16_optimizer_states": false},
"torch_autocast": {"enabled": true, "dtype": "bfloat16", "lower_precision_safe_modules": ["torch.nn.Linear"]},
"amp": {"enabled": false, "opt_level": "O1"}, "gradient_clipping": 1.0,
"zero_optimization": {"stage": 2, "allgather_partitions": true, "allgather_bucket_size": 5e8,
  "compute_grad_norm": true,
  "overlap_comm": false, "reduce_scatter": true, "reduce_bucket_size": 5e8, "contiguous_gradients": true,
  "grad_hooks": true, "load_from_fp32_weights": true, "round_robin_gradients": false,
  "parameter_alignment": false,
  "offload_param": {"device": "none", "nvme_path": "/local_nvme", "pin_memory": false, "buffer_count": 5,
    "buffer_size": 1e8, "max_in_cpu": 1e9},
  "offload_optimizer": {"device": "none", "nvme_path": "/local_nvme", "pin_memory": false, "ratio": 0.3,
    "buffer_count": 4, "fast_init": false},
  "stage3_max_live_parameters": 1e9, "stage3_max_reuse_distance": 1e9, "stage3_prefetch_bucket_size": 5e8,
  "stage3_param_persistence_threshold": 1e6, "sub_group_size": 1e12, "elastic_checkpoint": true,
  "stage3_gather_16bit_weights_on_model_save": true, "stage3_module_granularity_threshold": 0,
  "stage3_model_persistence_threshold": 1e9, "gather_16bit_weights_on_model_save": true,
  "max_live_parameters": 1e9, "stage3_allgather_sequential": false, "partition_stream_chunk_size": 0,
  "leaf_module": {"classes": ["a.B"], "names": [], "name_suffixes": []}, "cpu_offload_param": false,
  "use_multi_rank_bucket_allreduce": true, "zero_quantized_nontrainable_weights": false,
  "override_module_apply": true, "enable_sanity_checks": false, "pipeline_loading_checkpoint": false,
  "ignore_unused_parameters": true, "zero_hpz_partition_size": 1, "zero_quantized_weights": false,
  "zero_quantized_gradients": false, "log_trace_cache_warnings": false, "cpu_offload": false,
  "save_muon_momentum_buffer_in_memory": false},
"aio": {"block_size": 1048576, "queue_depth": 8, "thread_count": 1, "single_submit": false,
  "overlap_events": true},
"tensor_parallel": {"autotp_size": 0, "preset_model": "llama", "tp_overlap_comm": false,
  "vocab_parallel_lm_head": false,
  "partition_config": {"use_default_specs": false, "layer_specs": [{"patterns": ["a"],
  "partition_type": "row"}]}},
"hybrid_engine": {"enabled": false, "max_out_tokens": 512, "inference_tp_size": 1,
  "enable_cuda_graph": false},
"expert_parallel": {"enabled": false, "autoep_size": 4, "preset_model": "mixtral"},
"disable_python_gc": false, "steps_per_print": 10, "wall_clock_breakdown": false, "dump_state": false,
"autotuning": {"enabled": false, "results_dir": "a", "exps_dir": "b", "overwrite": false,
  "metric": "throughput",
  "fast": true, "mp_size": 1, "tuner_type": "model_based", "arg_mappings": null},
"flops_profiler": {"enabled": false, "profile_step": 1, "module_depth": -1, "top_modules": 1,
  "detailed": true},
"activation_checkpointing": {"partition_activations": false, "cpu_checkpointing": false, "profile": false,
  "contiguous_memory_optimization": false, "number_checkpoints": null,
  "synchronize_checkpoint_boundary": false},
"sparse_attention": {"enabled": false, "mode": "fixed", "block": 16, "num_local_blocks": 4},
"data_efficiency": {"enabled": false, "seed": 1234, "data_routing": {"enabled": true,
  "random_ltd": {"enabled": true}},
  "data_sampling": {"enabled": true, "num_epochs": 1, "curriculum_learning": {"enabled": true}}},
"curriculum_learning": {"enabled": false, "curriculum_type": "seqlen", "min_difficulty": 8},
"progressive_layer_drop": {"enabled": false, "theta": 0.5, "gamma": 0.001},
"compression_training": {"weight_quantization": {"shared_parameters": {"enabled": false,
  "quantizer_kernel": false}},
  "layer_reduction": {"enabled": false, "keep_number_layer": 5}},
"eigenvalue": {"enabled": false, "verbose": true}, "quantize_training": {"enabled": false},
"elasticity": {"enabled": false, "max_train_batch_size": 2000}, "nebula": {"enabled": false},
"tensorboard": {"enabled": true, "output_path": "o", "job_name": "n"}, "wandb": {"enabled": true,
  "group": "g"},
"comet": {"enabled": true, "workspace": "w"}, "csv_monitor": {"enabled": true, "output_path": "o"},
"comms_logger": {"enabled": true, "verbose": false, "prof_all": true, "debug": false,
  "prof_ops": ["all_reduce"]},
"checkpoint": {"tag_validation": "Warn", "load_universal": false, "use_node_local_storage": false,
  "parallel_write": {"pipeline_stage": false}},
"compile": {"deepcompile": false, "passes": [], "offload_activation": false},
"data_types": {"grad_accum_dtype": "fp32"}, "cuda_visible_devices": "0", "dataloader_drop_last": false,
"zero_allow_untested_optimizer": true, "zero_force_ds_cpu_optimizer": false, "graph_harvesting": false,
"seq_parallel_communication_data_type": "fp32", "use_data_before_expert_parallelism": false,
  "pipeline": {"stages": 1}
})";

TEST_F(Foreign, EveryDocumentedKeyOfDeepSpeedIsKnown) {
  const ForeignConfig foreign = read_deepspeed(write("ds.json", documented_deepspeed));
  const Recipe set = recipe(foreign);
  EXPECT_EQ(set.training.strategy, "zero2");
  EXPECT_EQ(set.training.precision, "bf16");
  EXPECT_EQ(set.scheduler.type, "CosineWithWarmup");
  EXPECT_EQ(set.scheduler.value("min_lr_rate"), 0.1);
  EXPECT_EQ(set.scheduler.value("num_training_steps"), 9);
  EXPECT_THAT(foreign.notes, testing::Not(Contains(testing::ContainsRegex(
                                 "autotuning|data_efficiency|progressive_layer_drop|compression_training"))))
      << "what is disabled needs no note";
}

// DeepSpeed reads its file by hjson.
TEST_F(Foreign, CommentsOfJsonAreLeftOut) {
  const ForeignConfig foreign = read_deepspeed(write("ds.json", R"(// a file
{
  "gradient_clipping": 0.5, // "gradient_clipping": 2
  /* "train_batch_size": 3,
  */ "tensorboard": {"output_path": "http://a//b", "job_name": "a \" // b"},
  "train_batch_size": 8, // the last
}
)"));
  EXPECT_EQ(recipe(foreign).training.max_grad_norm, 0.5);
  EXPECT_EQ(recipe(foreign).training.global_batch_size, 8);
  EXPECT_THAT(refusal([&] { read_deepspeed(write("ds.json", "{\n  // a\n  /* b */ \"stag\": 1\n}")); }),
              has_all("ds.json:3:11: stag"));
}

TEST_F(Foreign, ADecayEndsAtDeepSpeedsTotalNumberOfSteps) {
  const auto schedule = [&](const std::string& type) {
    return read_deepspeed(
        write("ds.json", R"({"scheduler": {"type": ")" + type +
                             R"(", "params": {"warmup_num_steps": 3, "total_num_steps": 9}}})"));
  };
  EXPECT_EQ(recipe(schedule("WarmupDecayLR")).scheduler.value("num_training_steps"), 9);
  const ForeignConfig constant = schedule("WarmupLR");
  EXPECT_EQ(recipe(constant).scheduler.type, "ConstantWithWarmup");
  EXPECT_THAT(constant.notes, Contains(has_all("scheduler.params.total_num_steps:", "stays constant")));
}

TEST_F(Foreign, SchedulesHaveDeepSpeedsDefaults) {
  const auto cosine = [&](const std::string& params, const std::string& own = "output: run\n") {
    const auto file =
        write("ds.json", R"({"scheduler": {"type": "WarmupCosineLR", "params": {)" + params + "}}}");
    return recipe(read_deepspeed(file), own).scheduler.as<optim::CosineWithWarmupOptions>();
  };
  const auto unset = cosine("");
  EXPECT_EQ(unset.num_warmup_steps, 1000);
  EXPECT_EQ(unset.warmup_type, "log");
  EXPECT_EQ(unset.min_lr_rate, 1e-4);
  const auto set = cosine(R"("warmup_num_steps": 3, "warmup_type": "linear", "cos_min_ratio": 0)");
  EXPECT_EQ(set.num_warmup_steps, 3);
  EXPECT_EQ(set.warmup_type, "linear");
  EXPECT_EQ(set.min_lr_rate, 0);
  const auto own =
      cosine(R"("warmup_num_steps": "auto")",
             "scheduler: {type: CosineWithWarmup, warmup_ratio: 0.5, warmup_type: linear, min_lr: 1e-6}\n");
  EXPECT_EQ(own.num_warmup_steps, std::nullopt) << "the recipe's";
  EXPECT_EQ(own.warmup_type, "linear");
  EXPECT_EQ(own.min_lr_rate, 0);
  EXPECT_EQ(cosine("", "scheduler: {warmup_ratio: 0.5}\n").num_warmup_steps, std::nullopt);
}

TEST_F(Foreign, WhatDeepSpeedHasAndStrettoHasNotIsRefusedByName) {
  const auto refuses = [&](const std::string& json, const auto&... parts) {
    EXPECT_THAT(refusal([&] { recipe(read_deepspeed(write("ds.json", json))); }),
                has_all("ds.json:1:", parts...))
        << json;
  };
  refuses(R"({"compression_training": {"layer_reduction": {"enabled": true}}})",
          "compression_training.layer_reduction.enabled:", "\"true\"", "pruned");
  refuses(R"({"data_efficiency": {"enabled": true}})", "data_efficiency.enabled:", "curricula");
  refuses(R"({"data_types": {"data_efficiency": {"enabled": true}}})", "data_types.data_efficiency.enabled:");
  refuses(R"({"progressive_layer_drop": {"enabled": true}})",
          "progressive_layer_drop.enabled:", "all layers");
  refuses(R"({"zero_optimization": {"progressive_layer_drop": {"enabled": true}}})",
          "zero_optimization.progressive_layer_drop.enabled:");
  refuses(R"({"sparse_attention": {"mode": "fixed"}})", "sparse_attention:", "this section", "dense");
  refuses(R"({"autotuning": {"enabled": true}})", "autotuning.enabled:", "stretto plan");
  refuses(R"({"curriculum_learning": {"enabled": true}})", "curriculum_learning.enabled:");
  refuses(R"({"tensor_parallel": {"autotp_size": -4}})", "tensor_parallel.autotp_size:", "\"-4\"");
  refuses(R"({"gradient_allreduce_op": "sum"})", "gradient_allreduce_op:", "means");
  refuses(R"({"torch_autocast": {"enabled": true, "dtype": "float16"}})",
          "torch_autocast.dtype:", "bfloat16");
  refuses(R"({"optimizer": {"type": "AdamW", "params": {"bias_correction": false}}})",
          "optimizer.params.bias_correction:", "\"false\"", "remove this key");
  refuses(R"({"optimizer": {"type": "AdamX"}})", "optimizer.type:", "\"AdamX\"", "did you mean");
  refuses(R"({"optimizer": {"type": "SGD", "params": {"momentun": 0.9}}})",
          "optimizer.params.momentun:", "momentum");
}

TEST_F(Foreign, LayersOfDeepSpeedsTensorParallelismAreDivided) {
  const auto tp = [&](const std::string& size) {
    return recipe(read_deepspeed(write("ds.json", R"({"tensor_parallel": {"autotp_size": )" + size + "}}")))
        .training.mesh.tp;
  };
  EXPECT_EQ(tp("4"), 4);
  EXPECT_EQ(tp("1"), 1);
  EXPECT_EQ(tp("0"), 1);
}

TEST_F(Foreign, DeepSpeedsOtherOptimizersAreThoseOfTorch) {
  const Recipe sgd = recipe(read_deepspeed(
      write("ds.json",
            R"({"optimizer": {"type": "SGD", "params": {"lr": 0.1, "momentum": 0.9, "nesterov": true}}})")));
  EXPECT_EQ(sgd.optimizer.as<optim::SgdOptions>().momentum, 0.9);
  EXPECT_TRUE(sgd.optimizer.as<optim::SgdOptions>().nesterov);
  const Recipe muon = recipe(read_deepspeed(
      write("ds.json",
            R"({"optimizer": {"type": "Muon", "params": {"momentum": 0.9, "muon_lr": 0.02, "adam_lr": 3e-4,
  "ns_method": "gram"}}})")));
  EXPECT_EQ(muon.optimizer.as<optim::MuonOptions>().lr, 0.02);
  EXPECT_EQ(muon.optimizer.as<optim::MuonOptions>().weight_decay, 0);
}

}  // namespace
}  // namespace stretto::compat
