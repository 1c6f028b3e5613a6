"""Trains a GPT-2 with random weights on random tokens in Python, and prints the seconds of each step as JSON.

  transformers  transformers' model with SDPA, torch's fused AdamW
  tuned         the fastest plain loop found: SDPA, fused AdamW, no module but torch.nn's
  muon          the tuned loop with torch's Muon for the layers' matrices
  fsdp          the tuned loop with torch's fully_shard by layer, as Accelerate's FSDP 2 does; under torchrun

bf16 is autocast; gradients are clipped to norm 1.
"""

import argparse
import json
import os
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("how", choices=["transformers", "tuned", "muon", "fsdp"])
parser.add_argument("--config", required=True, help="a config.json of a GPT-2")
parser.add_argument("--precision", choices=["fp32", "bf16"], required=True)
parser.add_argument("--steps", type=int, required=True)
parser.add_argument("--batch-size", type=int, default=8)
options = parser.parse_args()

rank = int(os.environ.get("LOCAL_RANK", 0))
if "WORLD_SIZE" in os.environ:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})

import torch  # after pinning, so that its threads inherit it
from torch.nn import functional

torch.set_num_threads(1)
torch.manual_seed(1)
with open(options.config, encoding="utf-8") as file:
    CONFIG = json.load(file)
WIDTH, HEADS, LENGTH = CONFIG["n_embd"], CONFIG["n_head"], CONFIG["n_positions"]


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1, self.norm_2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (part.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2) for part in self.qkv(self.norm_1(x)).split(WIDTH, dim=2))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.narrow(functional.gelu(self.wide(self.norm_2(x)), approximate="tanh"))


class Gpt(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.positions = torch.nn.Embedding(CONFIG["vocab_size"], WIDTH), torch.nn.Embedding(LENGTH, WIDTH)
        self.layers, self.norm = torch.nn.ModuleList(Layer() for _ in range(CONFIG["n_layer"])), torch.nn.LayerNorm(WIDTH)
        self.head = torch.nn.Linear(WIDTH, CONFIG["vocab_size"], bias=False)
        self.head.weight = self.words.weight
        for parameter in self.parameters():
            if parameter.dim() == 2:
                torch.nn.init.normal_(parameter, std=0.02)

    def forward(self, ids):
        x = self.words(ids) + self.positions.weight
        for layer in self.layers:
            x = layer(x)
        logits = self.head(self.norm(x))
        return functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def make_model():
    if options.how != "transformers":
        return Gpt()
    import transformers

    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**CONFIG, attn_implementation="sdpa")).train()
    model.forward_loss = lambda ids: model(input_ids=ids, labels=ids).loss
    return model


def make_optimizers(model):
    if options.how != "muon":
        return [torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)]
    matrices = [parameter for parameter in model.layers.parameters() if parameter.dim() == 2]
    others = [parameter for parameter in model.parameters() if all(parameter is not matrix for matrix in matrices)]
    return [torch.optim.Muon(matrices, lr=0.02), torch.optim.AdamW(others, lr=1e-3, fused=True)]


model = make_model()
if options.how == "fsdp":
    from torch.distributed.fsdp import fully_shard

    torch.distributed.init_process_group("gloo")
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
optimizers = make_optimizers(model)
ids = torch.randint(0, min(400, CONFIG["vocab_size"]), (options.batch_size, LENGTH))
seconds = []
for _ in range(options.steps):
    start = time.monotonic()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.precision == "bf16"):
        loss = model.forward_loss(ids) if options.how == "transformers" else model(ids)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
    seconds.append(time.monotonic() - start)
if rank == 0:
    print(json.dumps(seconds), flush=True)
if options.how == "fsdp":
    torch.distributed.destroy_process_group()
