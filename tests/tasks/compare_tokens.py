"""Compares the folder of tokens_test.py with transformers."""

import json
import sys

import torch
import transformers

from load_with_transformers import load

TOLERANCE = 1e-5


def records(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main(folder, run="one"):
    path = folder / run / "model"
    model, tokenizer = load(path, "TokenClassification")
    compared = 0
    for record in records(folder / "logits.jsonl"):
        encoding = tokenizer(record["text"], return_tensors="pt")
        if encoding["input_ids"].shape[1] > model.config.max_position_embeddings:
            continue  # stretto reads it in windows
        with torch.no_grad():
            wanted = model(**encoding).logits[0, 1:-1].double()
        found = torch.tensor([token["logits"] for token in record["tokens"]], dtype=torch.float64).view(-1, wanted.shape[1])
        if found.shape != wanted.shape or (len(found) and (found - wanted).abs().max().item() > TOLERANCE):
            sys.exit(f"{record['text']!r}: the logits differ")
        compared += 1
    for strategy in ["none", "simple", "first", "average", "max"]:
        pipeline = transformers.pipeline("token-classification", model=model, tokenizer=tokenizer, aggregation_strategy=strategy)
        for record in records(folder / f"{strategy}.jsonl"):
            if len(tokenizer(record["text"])["input_ids"]) > model.config.max_position_embeddings:
                if not record["entities"]:
                    sys.exit(f"{strategy}: no entities in a long text")
                continue
            wanted = pipeline(record["text"]) if record["text"] else []
            found = record["entities"]
            scores = [(a.pop("score"), float(b.pop("score"))) for a, b in zip(found, wanted)]
            if found != wanted or any(abs(a - b) > TOLERANCE for a, b in scores):
                sys.exit(f"{strategy}: {record['text']!r}: stretto gives {found}, transformers {wanted}, scores {scores}")
        sentences = [record["tokens"] for record in records(folder / "words.jsonl")]
        for words, found in zip(sentences, records(folder / f"words.{strategy}.jsonl"), strict=True):
            if len(tokenizer(words, is_split_into_words=True)["input_ids"]) > model.config.max_position_embeddings:
                if not found:
                    sys.exit(f"{strategy}: no entities in a long sentence")
                continue
            wanted = pipeline(words, is_split_into_words=True) if words else []
            wanted = wanted[0] if wanted and isinstance(wanted[0], list) else wanted
            scores = [(a.pop("score"), float(b.pop("score"))) for a, b in zip(found, wanted)]
            if found != wanted or any(abs(a - b) > TOLERANCE for a, b in scores):
                sys.exit(f"{strategy}: {words}: stretto gives {found}, transformers {wanted}, scores {scores}")
            compared += 1
    print(f"{compared} texts: the logits, and the entities by 5 strategies, are those of transformers")
