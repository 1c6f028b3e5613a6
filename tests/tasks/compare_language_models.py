"""Compares the folders of language_models_test.py with transformers."""

import json
import sys

import torch

from load_with_transformers import load

TOLERANCE = 1e-5
STRIDE = 16  # of the tests whose losses.jsonl are compared


def windows_of(model, ids):
    """The loss of each window, as in transformers' guide on the perplexity of models of a fixed length."""
    length, end, losses = model.config.max_position_embeddings, 0, []
    for begin in range(0, len(ids), STRIDE):
        previous, end = end, min(begin + length, len(ids))
        window = torch.tensor([ids[begin:end]])
        labels = window.clone()
        labels[:, :window.shape[1] - (end - previous)] = -100
        with torch.no_grad():
            losses.append(model(window, labels=labels).loss.item())
        if end == len(ids):
            return losses


def main(folder):
    lines = (folder / "dev.txt").read_text(encoding="utf-8").splitlines()
    for path, tested in (("one/model", "one"), ("llama-one/model", "llama-one"), ("llama-sharded", "llama-one")):
        model, tokenizer = load(folder / path, "CausalLM")
        wanted = windows_of(model, [token for line in lines for token in tokenizer(line)["input_ids"]])
        found = [json.loads(line)["loss"] for line in (folder / tested / "losses.jsonl").read_text().splitlines()]
        if len(found) != len(wanted) or any(abs(a - b) > TOLERANCE for a, b in zip(found, wanted)):
            sys.exit(f"{path}: stretto's losses are {found}, transformers' {wanted}")
        print(f"{path}: the losses of {len(found)} windows are those of transformers")
