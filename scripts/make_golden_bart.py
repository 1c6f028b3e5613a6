#!/usr/bin/env python3
"""Writes tests/golden/bart/: tiny random BART classifiers and what transformers computes with them.

Needs torch, transformers and safetensors (the files in the repository: torch 2.13, transformers 5.23):
    python3 scripts/make_golden_bart.py

<case>/    config.json, model.safetensors (fp32) and golden.safetensors, with the tensors of make_golden_bert.py's cases
           (no token types). Each sequence begins with token 0 and ends with token 2.
parity/    20 steps of training, as there

The reference runs on the padded batch with an attention mask, eager attention, no dropout, on one thread.
"""

import math
import os

import torch
import transformers
from transformers import BartConfig, BartForSequenceClassification

import make_golden_bert as common

ROOT = common.ROOT.parent / "bart"
SMALL = dict(vocab_size=60, d_model=32, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=48, decoder_layers=2,
             decoder_attention_heads=4, decoder_ffn_dim=48, max_position_embeddings=48, num_labels=4)
CASES = {
    "gelu": SMALL,
    "relu_odd": dict(SMALL, vocab_size=101, d_model=30, encoder_layers=1, encoder_attention_heads=3, encoder_ffn_dim=37,
                     decoder_layers=3, decoder_attention_heads=5, decoder_ffn_dim=41, activation_function="relu",
                     num_labels=3),
}
PAD, END = 1, 2


def random_model(config, seed):
    """A model without parameters that are all zeros or all ones, so that an error in any of them shows."""
    config = BartConfig(**config, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, classifier_dropout=0.0)
    config._attn_implementation = "eager"
    model = BartForSequenceClassification(config).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith(("layer_norm.weight", "layernorm_embedding.weight")):
                parameter.copy_(1 + 0.2 * noise)
            elif name.endswith("bias"):
                parameter.copy_(0.2 * noise)
            elif "embed" in name or "shared" in name:
                parameter.copy_(0.5 * noise)
            else:
                parameter.copy_(1.2 * noise / math.sqrt(parameter.shape[-1]))
    return model


def random_batch(config, lengths, generator):
    total = sum(lengths)
    ids = torch.randint(3, config.vocab_size, (total,), generator=generator)
    bounds = torch.tensor([0] + lengths).cumsum(0)
    ids[bounds[:-1]] = 0
    ids[bounds[1:] - 1] = END
    labels = torch.randint(0, config.num_labels, (len(lengths),), generator=generator)
    return {"ids": ids, "cu_seqlens": bounds, "labels": labels}


def forward(model, batch):
    """Logits [B, C] and the sum of the B cross entropies, from the padded form of a packed batch."""
    bounds = batch["cu_seqlens"].tolist()
    rows, longest = len(bounds) - 1, max(e - b for b, e in zip(bounds, bounds[1:]))
    ids, mask = torch.full((rows, longest), PAD), torch.zeros(rows, longest, dtype=torch.int64)
    for row, (begin, end) in enumerate(zip(bounds, bounds[1:])):
        ids[row, :end - begin] = batch["ids"][begin:end]
        mask[row, :end - begin] = 1
    logits = model(input_ids=ids, attention_mask=mask).logits
    return logits, torch.nn.functional.cross_entropy(logits, batch["labels"], reduction="sum")


def load(folder, dtype):
    return BartForSequenceClassification.from_pretrained(folder, attn_implementation="eager",
                                                         dtype=torch.float32).to(dtype).train()


def make_case(name, config, seed):
    folder = ROOT / name
    model = random_model(config, seed)
    common.save_model(model, folder)
    generator = torch.Generator().manual_seed(3000 + seed)
    batch = random_batch(model.config, [5, 11, 2, 24], generator)
    golden = dict(batch)
    for prec, dtype in common.PRECISIONS.items():
        model = load(folder, dtype)
        logits, loss = forward(model, batch)
        loss.backward()
        golden |= {f"{prec}.logits": logits, f"{prec}.loss_sum": loss}
        golden |= {f"{prec}.grad.{n}": p.grad for n, p in model.named_parameters()}
    common.save_golden(golden, folder)


def train(model, batches):
    """20 fine-tuning steps; returns the loss and gradient norm of each. Norms and biases have no weight decay."""
    no_decay = [p for n, p in model.named_parameters() if n.endswith("bias") or "norm" in n]
    decay = [p for n, p in model.named_parameters() if not (n.endswith("bias") or "norm" in n)]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.01}, {"params": no_decay, "weight_decay": 0.0}], lr=1e-3)
    losses, norms = [], []
    for batch in batches:
        optimizer.zero_grad()
        loss = forward(model, batch)[1] / len(batch["labels"])
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0))
        losses.append(loss.detach())
        optimizer.step()
    return torch.stack(losses), torch.stack(norms)


def make_parity():
    folder = ROOT / "parity"
    model = random_model(CASES["gelu"], 77)
    common.save_model(model, folder)
    generator = torch.Generator().manual_seed(3077)
    batches = [random_batch(model.config, torch.randint(2, 33, (6,), generator=generator).tolist(), generator)
               for _ in range(20)]
    golden = {f"batch_{k}.{name}": tensor for k, batch in enumerate(batches) for name, tensor in batch.items()}
    for prec, dtype in common.PRECISIONS.items():
        model = load(folder, dtype)
        golden[f"{prec}.loss"], golden[f"{prec}.grad_norm"] = train(model, batches)
        golden |= {f"{prec}.final.{n}": p for n, p in model.named_parameters()}
    common.save_golden(golden, folder)


def main():
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for seed, (name, config) in enumerate(CASES.items(), start=1):
        make_case(name, config, seed)
    make_parity()


if __name__ == "__main__":
    main()
