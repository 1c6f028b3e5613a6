#!/usr/bin/env python3
"""Writes tests/golden/bert/: tiny random BERT classifiers and what transformers computes with them.

Needs torch, transformers and safetensors (the files in the repository: torch 2.13, transformers 5.23):
    python3 scripts/make_golden_bert.py

<case>/                 config.json, model.safetensors (fp32) and golden.safetensors:
    ids, token_type_ids [T] int64, cu_seqlens [B+1] int64, labels [B] int64       the packed batch
    <prec>.logits [B, C], <prec>.loss_sum [], <prec>.loss_mean []                 prec = fp64, fp32
    <prec>.grad.<name>                                                            of loss_sum
parity/                 a folder to start from, and 20 steps of training on batch_<k>.{ids,...}:
    <prec>.loss [20] (batch mean, before the step), <prec>.grad_norm [20] (before clipping), lr [20],
    <prec>.final.<name>
old_names/              silu/'s encoder as the first BERT files named it: no "bert." prefix, LayerNorm.gamma/beta, a
                        position_ids buffer, no classifier
sharded/                silu/'s weights in two files and model.safetensors.index.json

The reference runs on the padded batch with an attention mask, eager attention, no dropout, on one thread.

attention.self.key.bias has gradient 0 in exact arithmetic (softmax ignores a shift), so its stored gradients are
rounding noise: compare them with the scale of query.bias's. AdamW magnifies that noise, so in parity/ fp32.final of the
key biases differs from fp64.final by 9e-4 of the largest value, where every other tensor agrees to 6e-7.
"""

import json
import math
import os
import pathlib
import shutil

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForSequenceClassification

ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "bert"
PRECISIONS = {"fp64": torch.float64, "fp32": torch.float32}
SMALL = dict(vocab_size=60, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=48,
             max_position_embeddings=48, type_vocab_size=2, num_labels=2)
CASES = {
    "gelu": dict(SMALL, num_hidden_layers=2),
    "relu_odd": dict(SMALL, hidden_act="relu", hidden_size=30, num_hidden_layers=2, num_attention_heads=3,
                     intermediate_size=37, vocab_size=101, max_position_embeddings=40, num_labels=3),
    "gelu_new": dict(SMALL, hidden_act="gelu_new", layer_norm_eps=1e-5),
    "silu": dict(SMALL, hidden_act="silu"),
    "pairs": dict(SMALL, num_hidden_layers=2, max_position_embeddings=40, num_labels=4),
    "large": dict(SMALL, num_labels=3),
}
LENGTHS = {"pairs": [1, 2, 17, 40]}
WEIGHT_SCALE = {"large": 3.0}


def random_model(config, seed, scale=1.0):
    """A model without parameters that are all zeros or all ones, so that an error in any of them shows."""
    config = BertConfig(**config, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    config._attn_implementation = "eager"
    model = BertForSequenceClassification(config).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith("LayerNorm.weight"):
                parameter.copy_(1 + 0.2 * noise)
            elif name.endswith("bias"):
                parameter.copy_(0.2 * noise)
            elif "embeddings" in name:
                parameter.copy_(0.5 * scale * noise)
            else:
                parameter.copy_(1.2 * scale * noise / math.sqrt(parameter.shape[-1]))
    return model


def random_batch(config, lengths, generator, pairs):
    """A packed batch. With pairs, a random tail of each sequence has token type 1."""
    total = sum(lengths)
    ids = torch.randint(1, config.vocab_size, (total,), generator=generator)
    types = torch.zeros(total, dtype=torch.int64)
    cu_seqlens = torch.tensor([0] + lengths).cumsum(0)
    if pairs:
        for begin, end in zip(cu_seqlens[:-1], cu_seqlens[1:]):
            first = int(torch.randint(1, int(end - begin) + 1, (), generator=generator))
            types[begin + first:end] = 1
    labels = torch.randint(0, config.num_labels, (len(lengths),), generator=generator)
    return {"ids": ids, "cu_seqlens": cu_seqlens, "token_type_ids": types, "labels": labels}


def forward(model, batch):
    """Logits [B, C] and the sum of the B cross entropies, from the padded form of a packed batch."""
    bounds = batch["cu_seqlens"].tolist()
    rows, longest = len(bounds) - 1, max(e - b for b, e in zip(bounds, bounds[1:]))
    ids, types, mask = (torch.zeros(rows, longest, dtype=torch.int64) for _ in range(3))
    for row, (begin, end) in enumerate(zip(bounds, bounds[1:])):
        ids[row, :end - begin] = batch["ids"][begin:end]
        types[row, :end - begin] = batch["token_type_ids"][begin:end]
        mask[row, :end - begin] = 1
    logits = model(input_ids=ids, token_type_ids=types, attention_mask=mask).logits
    return logits, torch.nn.functional.cross_entropy(logits, batch["labels"], reduction="sum")


def load(folder, dtype):
    model = BertForSequenceClassification.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    return model.to(dtype).train()  # dropout is 0: train mode only because that is what is imitated


def save_model(model, folder):
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)


def save_golden(tensors, folder):
    save_file({name: t.detach().clone().contiguous() for name, t in tensors.items()}, folder / "golden.safetensors")


def make_case(name, config, seed):
    folder = ROOT / name
    model = random_model(config, seed, WEIGHT_SCALE.get(name, 1.0))
    save_model(model, folder)
    generator = torch.Generator().manual_seed(1000 + seed)
    batch = random_batch(model.config, LENGTHS.get(name, [5, 11, 1, 24]), generator, pairs=name == "pairs")
    golden = dict(batch)
    for prec, dtype in PRECISIONS.items():
        model = load(folder, dtype)
        logits, loss = forward(model, batch)
        loss.backward()
        golden |= {f"{prec}.logits": logits, f"{prec}.loss_sum": loss, f"{prec}.loss_mean": loss / len(batch["labels"])}
        golden |= {f"{prec}.grad.{n}": p.grad for n, p in model.named_parameters()}
    save_golden(golden, folder)


def train(model, batches, mean_loss):
    """20 fine-tuning steps on mean_loss(model, batch); returns the loss, gradient norm and learning rate of each."""
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.01},
         {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0}],  # biases and norms
        lr=1e-3, betas=(0.9, 0.999), eps=1e-8)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, 4, len(batches))
    losses, norms, rates = [], [], []
    for batch in batches:
        optimizer.zero_grad()
        loss = mean_loss(model, batch)
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0))
        losses.append(loss.detach())
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return torch.stack(losses), torch.stack(norms), torch.tensor(rates, dtype=torch.float64)


def parity_golden(folder, load_model, batches, mean_loss):
    """Writes golden.safetensors of parity/: the batches, and what training on them gives in both precisions."""
    golden = {f"batch_{k}.{name}": tensor for k, batch in enumerate(batches) for name, tensor in batch.items()}
    for prec, dtype in PRECISIONS.items():
        model = load_model(folder, dtype)
        golden[f"{prec}.loss"], golden[f"{prec}.grad_norm"], golden["lr"] = train(model, batches, mean_loss)
        golden |= {f"{prec}.final.{n}": p for n, p in model.named_parameters()}
    save_golden(golden, folder)


def make_parity():
    folder = ROOT / "parity"
    model = random_model(CASES["gelu"], 77)
    save_model(model, folder)
    generator = torch.Generator().manual_seed(1077)
    batches = []
    for _ in range(20):
        lengths = torch.randint(1, 33, (6,), generator=generator).tolist()
        batches.append(random_batch(model.config, lengths, generator, pairs=True))
    parity_golden(folder, load, batches, lambda model, batch: forward(model, batch)[1] / len(batch["labels"]))


def copy_config(source, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(source / "config.json", folder)


def make_old_names(source):
    folder = ROOT / "old_names"
    copy_config(source, folder)
    old = {"embeddings.position_ids": torch.arange(SMALL["max_position_embeddings"]).unsqueeze(0)}
    for name, tensor in load_file(source / "model.safetensors").items():
        if name.startswith("bert."):
            name = name.removeprefix("bert.")
            name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
            old[name] = tensor
    save_file(old, folder / "model.safetensors", metadata={"format": "pt"})


def make_sharded(source):
    folder = ROOT / "sharded"
    copy_config(source, folder)
    weights = sorted(load_file(source / "model.safetensors").items())
    half = len(weights) // 2
    weight_map = {}
    for number, shard in enumerate((dict(weights[:half]), dict(weights[half:])), start=1):
        file = f"model-{number:05d}-of-00002.safetensors"
        save_file(shard, folder / file, metadata={"format": "pt"})
        weight_map |= {name: file for name in shard}
    index = {"metadata": {"total_size": sum(t.nbytes for _, t in weights)}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def main():
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for seed, (name, config) in enumerate(CASES.items(), start=1):
        make_case(name, config, seed)
    make_parity()
    make_old_names(ROOT / "silu")
    make_sharded(ROOT / "silu")


if __name__ == "__main__":
    main()
