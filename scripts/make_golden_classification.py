#!/usr/bin/env python3
"""Writes tests/golden/classification/: 20 steps of training of a tiny BERT with each kind of labels and loss of a sequence
classification, by transformers.

Needs torch, transformers and safetensors (the files in the repository: torch 2.13, transformers 5.23):
    python3 scripts/make_golden_classification.py

regression/, multi_label/   config.json with the problem_type, whose loss transformers computes
smoothed/                   label smoothing of 0.1, by transformers' LabelSmoother
weighted/                   class weights 1, 2.5, 0.5 and label smoothing of 0.1, by torch's CrossEntropyLoss
weighted_multi_label/       weights 1, 2.5, 0.5 of the wanted classes, by torch's BCEWithLogitsLoss
Each with the tensors of the parity folders of make_golden_bert_heads.py; labels [B] int64 or float32, or [B, C] float32.
"""

import functools
import os

import torch
import transformers
from transformers import BertForSequenceClassification
from transformers.trainer_pt_utils import LabelSmoother

import make_golden_bert as common
import make_golden_bert_heads as heads

ROOT = common.ROOT.parent / "classification"
WEIGHTS = torch.tensor([1.0, 2.5, 0.5], dtype=torch.float64)
SMOOTHING = 0.1
PROBLEMS = {"regression": "regression", "multi_label": "multi_label_classification", "smoothed": "single_label_classification",
            "weighted": "single_label_classification", "weighted_multi_label": "multi_label_classification"}


def random_labels(problem, rows, generator):
    if problem == "regression":
        return 5 * torch.rand(rows, generator=generator)
    if problem == "multi_label_classification":
        return (torch.rand(rows, len(WEIGHTS), generator=generator) < 0.4).float()
    return torch.randint(0, len(WEIGHTS), (rows,), generator=generator)


def loss_of(case, model, inputs, labels):
    """The mean over the batch."""
    if case in ("regression", "multi_label"):
        return model(**inputs, labels=labels.to(model.dtype)).loss
    output = model(**inputs)
    weights = WEIGHTS.to(model.dtype)
    if case == "smoothed":
        return LabelSmoother(epsilon=SMOOTHING)(output, labels.unsqueeze(1))
    if case == "weighted":
        return torch.nn.functional.cross_entropy(output.logits, labels, weight=weights, label_smoothing=SMOOTHING)
    return torch.nn.functional.binary_cross_entropy_with_logits(output.logits, labels.to(model.dtype), pos_weight=weights)


def forward(case, model, batch):
    """As heads.forward: nothing, the loss, 1."""
    bounds = batch["cu_seqlens"].tolist()
    rows, longest = len(bounds) - 1, max(e - b for b, e in zip(bounds, bounds[1:]))
    ids, types, mask = (torch.zeros(rows, longest, dtype=torch.int64) for _ in range(3))
    for row, (begin, end) in enumerate(zip(bounds, bounds[1:])):
        ids[row, :end - begin] = batch["ids"][begin:end]
        types[row, :end - begin] = batch["token_type_ids"][begin:end]
        mask[row, :end - begin] = 1
    return None, loss_of(case, model, dict(input_ids=ids, token_type_ids=types, attention_mask=mask), batch["labels"]), 1


def make_parity(case, seed):
    folder = ROOT / case
    problem = PROBLEMS[case]
    common.BertForSequenceClassification = BertForSequenceClassification
    config = dict(common.SMALL, num_hidden_layers=2, num_labels=1 if problem == "regression" else len(WEIGHTS), problem_type=problem)
    model = common.random_model(config, seed)
    common.save_model(model, folder)
    generator = torch.Generator().manual_seed(4000 + seed)
    batches = []
    for _ in range(20):
        lengths = torch.randint(2, 33, (6,), generator=generator).tolist()
        batch = common.random_batch(model.config, lengths, generator, pairs=False)
        batches.append(dict(batch, labels=random_labels(problem, len(lengths), generator)))
    heads.forward = forward
    load = lambda folder, dtype: BertForSequenceClassification.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float32).to(dtype).train()
    common.parity_golden(folder, load, batches, functools.partial(heads.mean_loss, case))


def main():
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for seed, case in enumerate(PROBLEMS, start=11):
        make_parity(case, seed)


if __name__ == "__main__":
    main()
