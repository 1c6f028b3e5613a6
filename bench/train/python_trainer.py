"""Fine-tunes a BERT classifier in Python for a limited time and prints its speed as JSON.

  hf          transformers' Trainer: random batches padded to the longest sample, fused AdamW
  accelerate  an Accelerate loop: the same batches, torch.optim.AdamW; under torchrun with more than one rank
  tuned       the fastest Python loop found: batches of similar lengths (on all ranks), bf16 autocast, fused AdamW, bare DDP
  zero1       the tuned loop with torch's ZeroRedundancyOptimizer
  fsdp        the tuned loop with torch's fully_shard, by layer of the encoder
"""

import argparse
import csv
import json
import os
import random
import statistics
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("how", choices=["hf", "accelerate", "tuned", "zero1", "fsdp"])
parser.add_argument("--train", required=True, help="text<TAB>label with a header line")
parser.add_argument("--encoder", required=True)
parser.add_argument("--config", help="a config.json: random weights of that shape instead of the encoder's")
parser.add_argument("--precision", choices=["fp32", "bf16"], required=True)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--seconds", type=float, default=20, help="duration of the measured steps")
parser.add_argument("--warmup-steps", type=int, default=3)
options = parser.parse_args()

rank = int(os.environ.get("RANK", 0))
local_rank = int(os.environ.get("LOCAL_RANK", 0))
world_size = int(os.environ.get("WORLD_SIZE", 1))
if world_size > 1:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[local_rank % len(cores)]})

import torch  # after pinning, so that its threads inherit it
from transformers import (AutoConfig, AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding, Trainer,
                          TrainerCallback, TrainingArguments)

torch.set_num_threads(1)
torch.manual_seed(1)
tokenizer = AutoTokenizer.from_pretrained(options.encoder)
if options.config:
    with open(options.config, encoding="utf-8") as file:
        model = AutoModelForSequenceClassification.from_config(AutoConfig.for_model(**json.load(file), num_labels=2))
else:
    model = AutoModelForSequenceClassification.from_pretrained(options.encoder, num_labels=2)


def read_samples():
    with open(options.train, encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:20001]
    ids = tokenizer([text.strip() for text, _ in rows], truncation=True, max_length=128)["input_ids"]
    return [{"input_ids": one, "attention_mask": [1] * len(one), "labels": int(label)} for one, (_, label) in zip(ids, rows)]


class Watch:
    """Measures steps until the time is up."""

    def __init__(self):
        self.times, self.steps, self.last = [], 0, time.perf_counter()

    def step(self):
        now = time.perf_counter()
        self.steps += 1
        if self.steps > options.warmup_steps:
            self.times.append(now - self.last)
        self.last = now
        return sum(self.times) < options.seconds or len(self.times) < 3

    def report(self):
        speed = options.batch_size * world_size * len(self.times) / sum(self.times)
        if rank == 0:
            print(json.dumps({"samples_per_second": speed, "step_seconds": statistics.median(self.times),
                              "steps": len(self.times)}))


def all_agree(go_on):
    if world_size == 1:
        return go_on
    flag = torch.tensor([float(go_on)])
    torch.distributed.broadcast(flag, 0)
    return flag.item() > 0


samples, watch, collate = read_samples(), Watch(), DataCollatorWithPadding(tokenizer)


def with_trainer():
    class Stop(TrainerCallback):
        def on_step_end(self, arguments, state, control, **unused):
            control.should_training_stop = not watch.step()

    with tempfile.TemporaryDirectory(prefix="stretto-bench-") as folder:  # which the Trainer makes, but does not use
        arguments = TrainingArguments(
            output_dir=folder, per_device_train_batch_size=options.batch_size, bf16=options.precision == "bf16", use_cpu=True,
            optim="adamw_torch_fused", learning_rate=5e-5, weight_decay=0.01, max_steps=100000, report_to=[],
            save_strategy="no", logging_strategy="no", disable_tqdm=True)
        Trainer(model=model, args=arguments, train_dataset=samples, data_collator=collate, callbacks=[Stop()]).train()


def with_accelerate():
    from accelerate import Accelerator

    accelerator = Accelerator(mixed_precision="bf16" if options.precision == "bf16" else "no", cpu=True)
    loader = torch.utils.data.DataLoader(samples, batch_size=options.batch_size, shuffle=True, collate_fn=collate)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0.01)
    net, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    net.train()
    while True:
        for batch in loader:
            accelerator.backward(net(**batch).loss)
            accelerator.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            if not all_agree(watch.step()):
                return


def alike_in_length(size, window=50):
    order = list(range(len(samples)))
    random.Random(1).shuffle(order)  # the same on every rank
    for begin in range(0, len(order) - size * window + 1, size * window):
        alike = sorted(order[begin:begin + size * window], key=lambda index: len(samples[index]["input_ids"]))
        cut = [alike[at:at + size] for at in range(0, len(alike), size)]
        random.Random(begin).shuffle(cut)
        yield from cut


def adamw(parameters, **settings):
    return torch.optim.AdamW(parameters, lr=5e-5, weight_decay=0.01, **settings)


def data_parallel():
    return torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)


def of_one_process():
    return model, adamw(model.parameters(), fused=True)


def with_ddp():
    return data_parallel(), adamw(model.parameters(), fused=True)


def with_sharded_optimizer():
    from torch.distributed.optim import ZeroRedundancyOptimizer

    net = data_parallel()
    return net, ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=5e-5, weight_decay=0.01, fused=True)


def with_full_sharding():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (world_size,))
    for layer in model.base_model.encoder.layer:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model, adamw(model.parameters())


def batches_of_similar_lengths(make):
    if world_size > 1:
        torch.distributed.init_process_group("gloo")
    net, optimizer = make()
    net.train()
    while True:
        for batch in alike_in_length(options.batch_size * world_size):
            mine = collate([samples[index] for index in batch[rank::world_size]])
            with torch.autocast("cpu", torch.bfloat16, enabled=options.precision == "bf16"):
                loss = net(**mine).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=world_size == 1)
            if not all_agree(watch.step()):
                return


if options.how == "hf":
    with_trainer()
elif options.how == "accelerate":
    with_accelerate()
else:
    batches_of_similar_lengths({"tuned": with_ddp if world_size > 1 else of_one_process, "zero1": with_sharded_optimizer,
                                "fsdp": with_full_sharding}[options.how])
watch.report()
if torch.distributed.is_initialized():
    torch.distributed.destroy_process_group()
