#pragma once

// Example files of other tools.
namespace stretto::compat {

// The example of DeepSpeed's page "Getting Started".
inline constexpr const char* deepspeed_json = R"({
  "train_batch_size": 8,
  "gradient_accumulation_steps": 1,
  "optimizer": {
    "type": "Adam",
    "params": {
      "lr": 0.00015
    }
  },
  "fp16": {
    "enabled": true
  },
  "zero_optimization": true
}
)";

// The example of transformers' documentation for ZeRO-2, with numbers for some values.
inline constexpr const char* zero2_json = R"({
    "fp16": {
        "enabled": "auto",
        "loss_scale": 0,
        "loss_scale_window": 1000,
        "initial_scale_power": 16,
        "hysteresis": 2,
        "min_loss_scale": 1
    },
    "bf16": {
        "enabled": true
    },
    "optimizer": {
        "type": "AdamW",
        "params": {
            "lr": 3e-5,
            "betas": [0.9, 0.98],
            "eps": "auto",
            "weight_decay": "auto"
        }
    },
    "scheduler": {
        "type": "WarmupDecayLR",
        "params": {
            "warmup_min_lr": "auto",
            "warmup_max_lr": "auto",
            "warmup_num_steps": 7,
            "total_num_steps": "auto"
        }
    },
    "zero_optimization": {
        "stage": 2,
        "offload_optimizer": {
            "device": "none",
            "pin_memory": true
        },
        "allgather_partitions": true,
        "allgather_bucket_size": 2e8,
        "overlap_comm": true,
        "reduce_scatter": true,
        "reduce_bucket_size": 2e8,
        "contiguous_gradients": true
    },
    "gradient_accumulation_steps": 4,
    "gradient_clipping": 0.5,
    "steps_per_print": 2000,
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": 8,
    "wall_clock_breakdown": false
}
)";

// The output of `accelerate config` for FSDP.
inline constexpr const char* fsdp_yaml = R"(compute_environment: LOCAL_MACHINE
debug: false
distributed_type: FSDP
downcast_bf16: 'no'
enable_cpu_affinity: false
fsdp_config:
  fsdp_activation_checkpointing: false
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_backward_prefetch: BACKWARD_PRE
  fsdp_cpu_ram_efficient_loading: true
  fsdp_forward_prefetch: false
  fsdp_offload_params: false
  fsdp_sharding_strategy: FULL_SHARD
  fsdp_state_dict_type: SHARDED_STATE_DICT
  fsdp_sync_module_states: true
  fsdp_transformer_layer_cls_to_wrap: BertLayer
  fsdp_use_orig_params: true
machine_rank: 0
main_training_function: main
mixed_precision: bf16
num_machines: 1
num_processes: 2
rdzv_backend: static
same_network: true
tpu_env: []
tpu_use_cluster: false
tpu_use_sudo: false
use_cpu: true
)";

// The output of `accelerate config` for DeepSpeed without a JSON file.
inline constexpr const char* deepspeed_yaml = R"(compute_environment: LOCAL_MACHINE
debug: false
deepspeed_config:
  gradient_accumulation_steps: 2
  gradient_clipping: 1.0
  offload_optimizer_device: none
  offload_param_device: none
  zero3_init_flag: false
  zero_stage: 1
distributed_type: DEEPSPEED
downcast_bf16: 'no'
machine_rank: 0
main_training_function: main
mixed_precision: 'no'
num_machines: 1
num_processes: 4
rdzv_backend: static
same_network: true
tpu_env: []
tpu_use_cluster: false
tpu_use_sudo: false
use_cpu: false
)";

// The parameters.yml in pytorch_universal_trainer's repository, with shorter comments.
inline constexpr const char* parameters_yml = R"(---
data-params:
    data_dir: '~/pytorch_universal_trainer/data'
    is_dev_file: True

transformers-params:
    mode: 'train'
    continue_training: False
    continue_training_path: ""
    pretrained_model_dir: '~/facebook/bart-base'
    model_dir: '~/pytorch_universal_trainer/models/bart_base_sst_baseline'
    is_distributed: True
    use_native_fp16: True
    use_fairscale_optimizer_sharding: False
    use_fairscale_model_sharding: False
    use_fairscale_autowrap: False
    use_fairscale_reshard_forward: False
    num_loader_workers: 0
    batch_size: 256
    use_max_length: False
    max_length: 200
    num_epochs: 3
    gradient_accumulation_steps: 1
    log_steps_ratio: 10
    save_steps_ratio: 1
    learning_rate: 2e-05
    warmup_proportion: 0.01
    num_labels: 2

dist-params:
    nodes: 1
    gpus: 2
    current_node: 0
    master_addr: '10.100.69.32' # of the first host
    master_port: '1234' # any free port

## Keys may be added.

# data_dir: the folder of the data
)";

// The file that `accmt example` writes.
inline constexpr const char* hps_yaml = R"(hps:
  epochs: 40
  #max_steps: 100
  batch_size: 35
  optimizer:
    type: AdamW
    lr: 1e-3
    weight_decay: 1e-3
  scheduler:
    type: OneCycleLR
    max_lr: 1e-3
)";

}  // namespace stretto::compat
