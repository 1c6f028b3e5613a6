#!/usr/bin/env python3
"""Writes tests/golden/bert_heads/: tiny random BERT models with a head on each token and what transformers computes with them.

Needs torch, transformers and safetensors (the files in the repository: torch 2.13, transformers 5.23):
    python3 scripts/make_golden_bert_heads.py

token/, qa/             config.json, model.safetensors (fp32) and golden.safetensors:
    ids, token_type_ids [T] int64, cu_seqlens [B+1] int64                         the packed batch
    labels [T] int64, -100 = ignored (token); starts, ends [B] int64 (qa)
    <prec>.logits [T, C], <prec>.loss_sum []                                      prec = fp64, fp32
    <prec>.grad.<name>                                                            of loss_sum
parity_token/, parity_qa/   a folder to start from, and 20 steps of training on batch_<k>.{ids,...}:
    <prec>.loss [20] (batch mean, before the step), <prec>.grad_norm [20] (before clipping), lr [20], <prec>.final.<name>

As in make_golden_bert.py, the reference runs on the padded batch with an attention mask, without dropout. The sequences of a batch
for question answering have equal lengths: transformers' softmax over the tokens includes padding.
"""

import functools
import os

import torch
import transformers
from transformers import BertForQuestionAnswering, BertForTokenClassification

import make_golden_bert as common

ROOT = common.ROOT.parent / "bert_heads"
CONFIGS = {"token": dict(common.SMALL, num_hidden_layers=2, num_labels=5), "qa": dict(common.SMALL, num_hidden_layers=2)}
MODELS = {"token": BertForTokenClassification, "qa": BertForQuestionAnswering}


def random_model(head, seed):
    common.BertForSequenceClassification = MODELS[head]
    return common.random_model(CONFIGS[head], seed)


def random_batch(head, config, lengths, generator):
    batch = common.random_batch(config, lengths, generator, pairs=head == "qa")
    if head == "token":
        batch["labels"] = torch.randint(0, config.num_labels, (sum(lengths),), generator=generator)
        batch["labels"][torch.rand(sum(lengths), generator=generator) < 0.3] = -100
    else:
        del batch["labels"]
        low, high = (torch.randint(0, lengths[0], (2, len(lengths)), generator=generator)).sort(0).values
        batch["starts"], batch["ends"] = low, high
    return batch


def forward(head, model, batch):
    """Logits [T, C], and the sum and number of the losses, from the padded form of a packed batch."""
    bounds = batch["cu_seqlens"].tolist()
    rows, longest = len(bounds) - 1, max(e - b for b, e in zip(bounds, bounds[1:]))
    ids, types, mask = (torch.zeros(rows, longest, dtype=torch.int64) for _ in range(3))
    labels = torch.full((rows, longest), -100)
    for row, (begin, end) in enumerate(zip(bounds, bounds[1:])):
        ids[row, :end - begin] = batch["ids"][begin:end]
        types[row, :end - begin] = batch["token_type_ids"][begin:end]
        mask[row, :end - begin] = 1
        if head == "token":
            labels[row, :end - begin] = batch["labels"][begin:end]
    inputs = dict(input_ids=ids, token_type_ids=types, attention_mask=mask)
    if head == "token":
        output = model(**inputs, labels=labels)
        count = int((labels != -100).sum())
        logits = output.logits
    else:
        output = model(**inputs, start_positions=batch["starts"], end_positions=batch["ends"])
        count = rows
        logits = torch.stack([output.start_logits, output.end_logits], -1)
    packed = torch.cat([logits[row, :end - begin] for row, (begin, end) in enumerate(zip(bounds, bounds[1:]))])
    return packed, output.loss * count, count


def load(head, folder, dtype):
    return MODELS[head].from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).to(dtype).train()


def make_case(head, seed):
    folder = ROOT / head
    model = random_model(head, seed)
    common.save_model(model, folder)
    generator = torch.Generator().manual_seed(1000 + seed)
    batch = random_batch(head, model.config, [5, 11, 1, 24] if head == "token" else [13, 13, 13], generator)
    golden = dict(batch)
    for prec, dtype in common.PRECISIONS.items():
        model = load(head, folder, dtype)
        logits, loss, _ = forward(head, model, batch)
        loss.backward()
        golden |= {f"{prec}.logits": logits, f"{prec}.loss_sum": loss}
        golden |= {f"{prec}.grad.{n}": p.grad for n, p in model.named_parameters()}
    common.save_golden(golden, folder)


def mean_loss(head, model, batch):
    _, total, count = forward(head, model, batch)
    return total / count


def make_parity(head, seed):
    folder = ROOT / f"parity_{head}"
    model = random_model(head, seed)
    common.save_model(model, folder)
    generator = torch.Generator().manual_seed(1000 + seed)
    batches = []
    for _ in range(20):
        lengths = torch.randint(2, 33, (6,), generator=generator).tolist()
        batches.append(random_batch(head, model.config, lengths if head == "token" else lengths[:1] * 6, generator))
    common.parity_golden(folder, functools.partial(load, head), batches, functools.partial(mean_loss, head))


def main():
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for seed, head in enumerate(MODELS, start=31):
        make_case(head, seed)
        make_parity(head, seed + 50)


if __name__ == "__main__":
    main()
