#!/usr/bin/env python3
"""Writes tests/golden/gpt2/: tiny random GPT-2 models and what transformers computes with them.

Needs torch, transformers and safetensors (the files in the repository: torch 2.13, transformers 5.23):
    python3 scripts/make_golden_gpt2.py

<case>/     see golden_decoders.make_case
parity/     see golden_decoders.make_parity
old_names/  plain/'s weights as the first GPT-2 files named them, in pytorch_model.bin: no "transformer." prefix, the
            head's copy of the table, and the buffers of the causal mask
sharded/    plain/'s weights in two files and model.safetensors.index.json

The reference runs each sequence by itself, with eager attention, no dropout, on one thread.
"""

import json

import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel

import golden_decoders as decoders
import make_golden_bert as common

ROOT = common.ROOT.parent / "gpt2"
SMALL = dict(vocab_size=40, n_embd=16, n_layer=2, n_head=2, n_positions=24, bos_token_id=0, eos_token_id=0)
CASES = {
    "plain": SMALL,
    "inverse": dict(SMALL, n_layer=3, scale_attn_by_inverse_layer_idx=True, reorder_and_upcast_attn=True),
    "inner_odd": dict(SMALL, vocab_size=41, n_embd=15, n_head=3, n_inner=37, activation_function="relu",
                      scale_attn_weights=False, layer_norm_epsilon=1e-3),
    "untied": dict(SMALL, activation_function="gelu", tie_word_embeddings=False),
}
# transformers upcasts to fp32 alone.
PRECISIONS = {"inverse": ("fp32",)}


def fan_in(name):
    return 1 if name == "lm_head.weight" else 0  # Conv1D's weights are [in, out]


def make_old_names(source):
    folder = ROOT / "old_names"
    common.copy_config(source, folder)
    old = {}
    for name, tensor in load_file(source / "model.safetensors").items():
        old[name.removeprefix("transformer.")] = tensor
    old["lm_head.weight"] = old["wte.weight"]
    for layer in range(SMALL["n_layer"]):
        old[f"h.{layer}.attn.bias"] = torch.ones(24, 24).tril()[None, None]
        old[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    torch.save(old, folder / "pytorch_model.bin")


def make_sharded(source):
    folder = ROOT / "sharded"
    common.copy_config(source, folder)
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
    decoders.set_up()
    for seed, (name, config) in enumerate(CASES.items(), start=1):
        config = GPT2Config(**config, embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0)
        decoders.make_case(ROOT, GPT2LMHeadModel, name, config, seed, fan_in, PRECISIONS.get(name, ("fp64", "fp32")))
    config = GPT2Config(**SMALL, embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0)
    decoders.make_parity(ROOT, GPT2LMHeadModel, "parity", config, 60, fan_in)
    make_old_names(ROOT / "plain")
    make_sharded(ROOT / "plain")


if __name__ == "__main__":
    main()
