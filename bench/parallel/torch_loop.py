"""Trains a Llama with random weights on random tokens on two ranks in Python, under torchrun, and prints the seconds of each step
and the memory of the larger rank as JSON.

  tp   torch's tensor parallelism (DTensor over Gloo): layers, embedding and head divided, the loss over divided classes
  dp   DistributedDataParallel over Gloo

Plain torch.nn modules, SDPA, fused AdamW. bf16 is autocast; gradients are clipped to norm 1.
"""

import json
import time

import loop

options = loop.arguments(__doc__, ["tp", "dp"], "a config.json of a Llama with as many heads of keys as of queries")
rank, ranks = loop.pin()

import torch  # after pinning, so that its threads inherit it
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, loss_parallel, parallelize_module
from torch.nn import functional

torch.set_num_threads(1)
torch.manual_seed(1)
with open(options.config, encoding="utf-8") as file:
    CONFIG = json.load(file)
WIDTH, HEADS, INNER = CONFIG["hidden_size"], CONFIG["num_attention_heads"], CONFIG["intermediate_size"]
HEAD = WIDTH // HEADS


def linear(inputs, outputs):
    return torch.nn.Linear(inputs, outputs, bias=False)


def rotated(x, cosine, sine):
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1, self.norm_2 = torch.nn.RMSNorm(WIDTH, eps=1e-6), torch.nn.RMSNorm(WIDTH, eps=1e-6)
        self.q, self.k, self.v, self.o = (linear(WIDTH, WIDTH) for _ in range(4))
        self.gate, self.up, self.down = linear(WIDTH, INNER), linear(WIDTH, INNER), linear(INNER, WIDTH)

    def forward(self, x, cosine, sine):
        batch, length, _ = x.shape
        normed = self.norm_1(x)
        q, k, v = (projection(normed).view(batch, length, -1, HEAD).transpose(1, 2) for projection in (self.q, self.k, self.v))
        q, k = rotated(q, cosine, sine).to(v.dtype), rotated(k, cosine, sine).to(v.dtype)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(attended.transpose(1, 2).reshape(batch, length, -1))
        normed = self.norm_2(x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))


class Llama(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(CONFIG["vocab_size"], WIDTH)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(CONFIG["num_hidden_layers"]))
        self.norm, self.head = torch.nn.RMSNorm(WIDTH, eps=1e-6), linear(WIDTH, CONFIG["vocab_size"])
        for parameter in self.parameters():
            if parameter.dim() == 2:
                torch.nn.init.normal_(parameter, std=0.02)
        angles = torch.arange(options.length)[:, None] / 10000 ** (torch.arange(0, HEAD, 2) / HEAD)
        self.cosine, self.sine = torch.cat((angles, angles), 1).cos(), torch.cat((angles, angles), 1).sin()

    def forward(self, ids):
        x = self.words(ids)
        for layer in self.layers:
            x = layer(x, self.cosine, self.sine)
        logits = self.head(self.norm(x))
        targets = functional.pad(ids[:, 1:], (0, 1), value=-100)  # all logits take part, so that none is sliced
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def divide(model):
    mesh = dist.init_device_mesh("cpu", (ranks,))
    plan = {"words": RowwiseParallel(input_layouts=Replicate()),
            "head": ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)}
    for name in ("q", "k", "v", "gate", "up"):
        plan[f"layers.*.{name}"] = ColwiseParallel()
    for name in ("o", "down"):
        plan[f"layers.*.{name}"] = RowwiseParallel()
    return parallelize_module(model, mesh, plan)


def clip(parameters):
    """torch's clip_grad_norm_ takes no mixture of divided and whole gradients."""
    divided = [p.grad.to_local() for p in parameters if isinstance(p, DTensor)]
    whole = [p.grad for p in parameters if not isinstance(p, DTensor)]
    square = torch.zeros(())
    if divided:
        square = torch.nn.utils.get_total_norm(divided) ** 2
        dist.all_reduce(square)
    square = square + torch.nn.utils.get_total_norm(whole) ** 2
    torch._foreach_mul_(divided + whole, (1 / (square.sqrt() + 1e-6)).clamp(max=1))


dist.init_process_group("gloo")
model = Llama()
if options.how == "tp":
    model = divide(model)
    parameters = list(model.parameters())
else:
    parameters = list(model.parameters())
    model = torch.nn.parallel.DistributedDataParallel(model)
kinds = ([p for p in parameters if isinstance(p, DTensor)], [p for p in parameters if not isinstance(p, DTensor)])
optimizers = [torch.optim.AdamW(kind, lr=1e-3, fused=True) for kind in kinds if kind]
torch.manual_seed(1 if options.how == "tp" else rank)
ids = torch.randint(0, CONFIG["vocab_size"], (options.batch_size // (1 if options.how == "tp" else ranks), options.length))
seconds = []
for _ in range(options.steps):
    start = time.monotonic()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.precision == "bf16"), loss_parallel():
        loss = model(ids)
        loss.backward()
    clip(parameters)
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
    seconds.append(time.monotonic() - start)
if rank == 0:
    print(json.dumps(seconds), flush=True)
dist.destroy_process_group()
