"""Trains transformers' Llama with random weights on random tokens by Accelerate, under torchrun, and prints the seconds of each step
as JSON.

  ddp    DistributedDataParallel over Gloo
  fsdp2  fully_shard of each layer and of the rest (FSDP2), released after forward

SDPA, fused AdamW, gradients clipped to norm 1; bf16 is Accelerate's mixed precision.
"""

import json
import time

import loop

options = loop.arguments(__doc__, ["ddp", "fsdp2"], "a config.json of a Llama")
rank, ranks = loop.pin()

import torch  # after pinning, so that its threads inherit it
from accelerate import Accelerator
from accelerate.utils import FullyShardedDataParallelPlugin
from transformers import AutoConfig, AutoModelForCausalLM

torch.set_num_threads(1)
torch.manual_seed(1)
sharding = FullyShardedDataParallelPlugin(fsdp_version=2, reshard_after_forward=True, auto_wrap_policy="transformer_based_wrap",
                                          transformer_cls_names_to_wrap=["LlamaDecoderLayer"], cpu_ram_efficient_loading=False)
accelerator = Accelerator(cpu=True, mixed_precision="bf16" if options.precision == "bf16" else "no",
                          fsdp_plugin=sharding if options.how == "fsdp2" else None)
with open(options.config, encoding="utf-8") as file:
    config = AutoConfig.for_model(**json.load(file))
model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa", dtype=torch.float32)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
model, optimizer = accelerator.prepare(model, optimizer)
model.train()
torch.manual_seed(rank)
ids = torch.randint(0, config.vocab_size, (options.batch_size // ranks, options.length))
seconds = []
for _ in range(options.steps):
    start = time.monotonic()
    accelerator.backward(model(input_ids=ids, labels=ids, use_cache=False).loss)
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    seconds.append(time.monotonic() - start)
if rank == 0:
    print(json.dumps(seconds), flush=True)
accelerator.end_training()
