#!/usr/bin/env python3
"""Writes tests/golden/roberta/: tiny random models of the family and what transformers computes with them.

Needs torch, transformers and safetensors (the files in the repository: torch 2.13, transformers 5.23):
    python3 scripts/make_golden_roberta.py

sequence/, token/, qa/    config.json, model.safetensors (fp32) and golden.safetensors, with the tensors of make_golden_bert.py's
                          cases; labels of token/ are of tokens, those of qa/ are starts and ends
parity_sequence/, parity_token/, parity_qa/   a folder to start from, and 20 steps of training, as in make_golden_bert.py's parity/
"""

import functools
import os

import torch
import transformers
from transformers import RobertaConfig, RobertaForQuestionAnswering, RobertaForSequenceClassification, RobertaForTokenClassification

import make_golden_bert as common

ROOT = common.ROOT.parent / "roberta"
PAD = 1
SMALL = dict(vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
             max_position_embeddings=50, type_vocab_size=1, pad_token_id=PAD, bos_token_id=0, eos_token_id=2, layer_norm_eps=1e-5)
CASES = {"sequence": (RobertaForSequenceClassification, 3), "token": (RobertaForTokenClassification, 5),
         "qa": (RobertaForQuestionAnswering, 2)}
LENGTHS = [5, 11, 1, 24]


def make_config(labels):
    return RobertaConfig(**SMALL, num_labels=labels, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def random_batch(name, labels, generator, lengths=LENGTHS):
    total = sum(lengths)
    ids = torch.randint(3, SMALL["vocab_size"], (total,), generator=generator)
    bounds = torch.tensor([0] + lengths).cumsum(0)
    batch = {"ids": ids, "token_type_ids": torch.zeros(total, dtype=torch.int64), "cu_seqlens": bounds}
    if name == "qa":
        low_high = [torch.randint(0, length, (2,), generator=generator).sort().values for length in lengths]
        return batch | {"starts": torch.stack([pair[0] for pair in low_high]), "ends": torch.stack([pair[1] for pair in low_high])}
    labels = torch.randint(0, labels, (total if name == "token" else len(lengths),), generator=generator)
    return batch | {"labels": labels}


def forward(name, model, batch):
    """Logits [B or T, C] and the sum of the losses, from the padded form of a packed batch: cross entropies, in question answering the
    mean of those of start and end over the tokens of a sequence, without padding."""
    bounds = batch["cu_seqlens"].tolist()
    lengths = [end - begin for begin, end in zip(bounds, bounds[1:])]
    ids = torch.full((len(lengths), max(lengths)), PAD)
    for row, (begin, end) in enumerate(zip(bounds, bounds[1:])):
        ids[row, :end - begin] = batch["ids"][begin:end]
    output = model(input_ids=ids, attention_mask=(ids != PAD).long())
    if name == "qa":
        logits = torch.stack([output.start_logits, output.end_logits], -1)
        rows = [logits[row, :length] for row, length in enumerate(lengths)]
        loss = sum(torch.nn.functional.cross_entropy(rows[b].T, torch.stack([batch["starts"][b], batch["ends"][b]])) for b in range(len(rows)))
        return torch.cat(rows), loss
    logits = output.logits
    if name == "token":
        logits = torch.cat([logits[row, :length] for row, length in enumerate(lengths)])
    return logits, torch.nn.functional.cross_entropy(logits, batch["labels"], reduction="sum")


def save_random_model(folder, kind, labels, generator):
    model = kind(make_config(labels))
    with torch.no_grad():
        for parameter_name, parameter in sorted(model.named_parameters()):
            noise = torch.randn(parameter.shape, generator=generator)
            is_norm = parameter_name.lower().endswith(("layernorm.weight", "layer_norm.weight"))
            parameter.copy_(1 + 0.2 * noise if is_norm else 0.25 * noise)
    common.save_model(model, folder)


def load(kind, folder, dtype):
    return kind.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).to(dtype).train()


def make_case(name, kind, labels, seed):
    folder = ROOT / name
    generator = torch.Generator().manual_seed(seed)
    save_random_model(folder, kind, labels, generator)
    batch = random_batch(name, labels, generator)
    golden = dict(batch)
    for prec, dtype in common.PRECISIONS.items():
        model = load(kind, folder, dtype)
        logits, loss = forward(name, model, batch)
        loss.backward()
        golden |= {f"{prec}.logits": logits, f"{prec}.loss_sum": loss}
        golden |= {f"{prec}.grad.{n}": p.grad for n, p in model.named_parameters()}
    common.save_golden(golden, folder)


def make_parity(name, kind, labels, seed):
    folder = ROOT / f"parity_{name}"
    generator = torch.Generator().manual_seed(seed)
    save_random_model(folder, kind, labels, generator)
    batches = [random_batch(name, labels, generator, torch.randint(1, 33, (6,), generator=generator).tolist()) for _ in range(20)]
    common.parity_golden(folder, functools.partial(load, kind), batches,
                         lambda model, batch: forward(name, model, batch)[1] / len(batch["starts" if name == "qa" else "labels"]))


def main():
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for seed, (name, (kind, labels)) in enumerate(CASES.items(), start=1):
        make_case(name, kind, labels, seed)
        make_parity(name, kind, labels, 50 + seed)


if __name__ == "__main__":
    main()
