"""Compares the folder of questions_test.py with transformers.

Computes the predictions as run_qa does, from its features (transformers' tokenizer) and the logits of transformers' model.
"""

import json
import sys

import torch

from load_with_transformers import load

TOLERANCE = 1e-4
MAX_LENGTH, DOC_STRIDE, N_BEST, MAX_ANSWER = 32, 8, 20, 30


def answers_of(model, tokenizer, question, context):
    """Returns the candidates (score, begin, end) of all windows, best first, and the null score."""
    encoding = tokenizer(question, context, truncation="only_second", max_length=MAX_LENGTH, stride=DOC_STRIDE,
                         return_overflowing_tokens=True, return_offsets_mapping=True)
    candidates, null = [], None
    for window in range(len(encoding["input_ids"])):
        inputs = {key: torch.tensor([encoding[key][window]]) for key in ["input_ids", "token_type_ids", "attention_mask"]}
        with torch.no_grad():
            output = model(**inputs)
        starts, ends = output.start_logits[0].tolist(), output.end_logits[0].tolist()
        offsets = [offset if part == 1 else None
                   for offset, part in zip(encoding["offset_mapping"][window], encoding.sequence_ids(window))]
        score = starts[0] + ends[0]
        null = score if null is None else min(null, score)
        best = lambda values: sorted(range(len(values)), key=values.__getitem__, reverse=True)[:N_BEST]
        for start in best(starts):
            for end in best(ends):
                if offsets[start] and offsets[end] and start <= end < start + MAX_ANSWER:
                    candidates.append((starts[start] + ends[end], offsets[start][0], offsets[end][1]))
    return sorted(candidates, reverse=True), null


def check_predictions(folder, run, model, tokenizer):
    predictions, odds = [json.loads((folder / run / name).read_text()) for name in ["predictions.json", "null_odds.json"]]
    worst = 0
    for paragraph in json.loads((folder / "data/test.json").read_text())["data"][0]["paragraphs"]:
        for qa in paragraph["qas"]:
            candidates, null = answers_of(model, tokenizer, qa["question"], paragraph["context"])
            score, begin, end = candidates[0]
            difference = abs(odds[qa["id"]] - (null - score))
            worst = max(worst, difference)
            answer = "" if null - score > 0 else paragraph["context"][begin:end]
            near = abs(null - score) < TOLERANCE or len(candidates) > 1 and score - candidates[1][0] < TOLERANCE
            if difference > TOLERANCE or answer != predictions[qa["id"]] and not near:
                sys.exit(f"{qa}: stretto predicts {predictions[qa['id']]!r} with odds {odds[qa['id']]}, expected {answer!r}, {null - score}")
    print(f"{len(predictions)} predictions are those of transformers; odds differ by at most {worst:.1e}")


def check_pipeline(folder, model, tokenizer):
    """Returns the probabilities of start times those of end among [CLS] and the context, as in the
    question-answering pipeline."""
    compared = nulls = 0
    lines = [(folder / name).read_text().splitlines() for name in ("answers.jsonl", "null_answers.jsonl")]
    for line, with_null, (question, context) in zip(*lines, questions_of(folder), strict=True):
        encoding = tokenizer(question, context, return_offsets_mapping=True, return_tensors="pt")
        offsets, parts = encoding.pop("offset_mapping")[0].tolist(), encoding.sequence_ids(0)
        if len(offsets) > model.config.max_position_embeddings:
            continue
        with torch.no_grad():
            output = model(**encoding)
        kept = torch.tensor([index == 0 or part == 1 for index, part in enumerate(parts)])
        start, end = [torch.softmax(logits[0].double().masked_fill(~kept, -1e9), 0) for logits in (output.start_logits, output.end_logits)]
        best = max((start[i] * end[j], i, j) for i in range(1, len(parts)) for j in range(i, min(len(parts), i + 15))
                   if parts[i] == parts[j] == 1)
        plain = json.loads(line)["answers"]
        null = {"score": (start[0] * end[0]).item(), "start": 0, "end": 0, "answer": ""}
        expected = sorted([*plain, null], key=lambda answer: -answer["score"])[:3]
        for one, other in zip(json.loads(with_null), expected, strict=True):
            if abs(one.pop("score") - other["score"]) > TOLERANCE or one != {key: other[key] for key in one}:
                sys.exit(f"{question!r} with no answer: stretto finds {with_null}, expected {expected}")
            nulls += one["answer"] == ""
        found = plain[0]
        words = encoding.word_ids(0)
        inside = [index for index, part in enumerate(parts) if part == 1]
        first = min(index for index in inside if words[index] == words[best[1]])
        last = max(index for index in inside if words[index] == words[best[2]])
        wanted = {"start": offsets[first][0], "end": offsets[last][1], "answer": context[offsets[first][0]:offsets[last][1]]}
        if abs(found.pop("score") - best[0].item()) > TOLERANCE or found != wanted:
            sys.exit(f"{question!r}: stretto finds {found}, transformers {wanted} with {best[0]}")
        compared += 1
    if compared < 20 or nulls < 5:
        sys.exit(f"only {compared} answers and {nulls} of none compared")
    print(f"{compared} answers of stretto predict are those of transformers")


def questions_of(folder):
    for paragraph in json.loads((folder / "data/test.json").read_text())["data"][0]["paragraphs"]:
        for qa in paragraph["qas"]:
            yield qa["question"], paragraph["context"]


def main(folder, run="one"):
    path = folder / run / "model"
    model, tokenizer = load(path, "QuestionAnswering")
    check_predictions(folder, run, model, tokenizer)
    check_pipeline(folder, model, tokenizer)
