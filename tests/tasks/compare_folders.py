"""Compares the folders of folders_test.py with transformers."""

import json
import sys

import torch

from load_with_transformers import load

TOLERANCE = 1e-5


def check_labels(config, labels):
    names = [f"LABEL_{label}" if label.isdigit() else label for label in labels]
    if config.id2label != dict(enumerate(names)) or config.label2id != {name: i for i, name in enumerate(names)}:
        sys.exit(f"the model's classes are {config.id2label} and {config.label2id}, expected {names}")


def check_logits(model, tokenizer, predictions):
    """Returns the largest difference. Ends the program if it is too large, or if the logits of the texts are too similar."""
    worst, first_logits = 0.0, []
    for record in map(json.loads, predictions.read_text(encoding="utf-8").splitlines()):
        encoding = tokenizer(record["text"], truncation=True, max_length=model.config.max_position_embeddings,
                             return_tensors="pt")
        with torch.no_grad():
            logits = model(**encoding).logits[0].double()
        difference = (logits - torch.tensor(record["logits"], dtype=torch.float64)).abs().max().item()
        if not difference <= TOLERANCE:
            sys.exit(f"{predictions}: {record['text']!r}: transformers gives {logits.tolist()}, stretto {record['logits']}")
        worst = max(worst, difference)
        first_logits.append(record["logits"][0])
    first_logits.sort()
    if any(b - a < 10 * TOLERANCE for a, b in zip(first_logits, first_logits[1:])):
        sys.exit(f"{predictions}: the logits of the texts are too similar for a comparison: {first_logits}")
    return worst


def main(folder):
    for case in sorted(folder.iterdir()):
        for name in ["run/model", "converted"]:
            model, tokenizer = load(case / name, "SequenceClassification")
            check_labels(model.config, json.loads((case / "labels.json").read_text()))
            worst = check_logits(model, tokenizer, case / "predictions.jsonl")
            print(f"{case.name}: {name}: {model.config.num_labels} classes, logits differ by at most {worst:.1e}")
