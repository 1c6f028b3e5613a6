"""Fine-tunes on a file of SQuAD 2.0 like recipes/qa.yaml, with transformers and torch.optim in one process, and writes the predictions of
each epoch: OUTPUT/epoch-1/predictions.json and null_odds.json.

Settings are the recipe's: windows of 384 tokens that share 128, batches of 16 of similar lengths, 2 epochs; AdamW with lr 1e-4 and weight
decay 0.01 (none for biases and norms), 10 % warm-up, then linear decay, gradients clipped to norm 1. Answers are chosen as run_qa.py does:
the best of 20 starts times 20 ends in each window, at most 30 tokens, or none if its score is lower than that of [CLS].
"""
import argparse
import json
import pathlib
import random
import sys

import torch
from transformers import AutoModelForQuestionAnswering, AutoTokenizer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import fine_tuning
import windows

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--train", required=True, help="a file in SQuAD's layout")
parser.add_argument("--dev", required=True)
parser.add_argument("--encoder", required=True)
parser.add_argument("--output", required=True, type=pathlib.Path)
parser.add_argument("--seed", type=int, default=42)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
arguments = parser.parse_args()

random.seed(arguments.seed)
torch.manual_seed(arguments.seed)
tokenizer = AutoTokenizer.from_pretrained(arguments.encoder)
questions, dev_questions = windows.read_questions(arguments.train), windows.read_questions(arguments.dev)
train, dev = (windows.windows_of(part, tokenizer, 384, 128) for part in (questions, dev_questions))
model = AutoModelForQuestionAnswering.from_pretrained(arguments.encoder)
lengths, dev_lengths = ([len(window["input_ids"]) for window in part] for part in (train, dev))
stepper = fine_tuning.Stepper(model, 1e-4, arguments.epochs * -(-len(train) // 16), 0.1, arguments.precision)


def answers_of(window, starts, ends):
    """The score of no answer, and (score, begin, end in the context) of each answer in this window."""
    found = []
    for first in torch.argsort(starts, descending=True)[:20].tolist():
        for last in torch.argsort(ends, descending=True)[:20].tolist():
            if window["offsets"][first] and window["offsets"][last] and first <= last < first + 30:
                found.append((float(starts[first] + ends[last]), window["offsets"][first][0], window["offsets"][last][1]))
    return float(starts[0] + ends[0]), found


def evaluate(folder):
    model.eval()
    null_scores, candidates = {}, {}
    with torch.no_grad():
        for batch in fine_tuning.evaluation_batches(dev_lengths, 32):
            part = [dev[index] for index in batch]
            output = model(**windows.batch_of(part))
            for row, window in enumerate(part):
                length = len(window["input_ids"])
                null, found = answers_of(window, output.start_logits[row][:length], output.end_logits[row][:length])
                question = window["question"]
                null_scores[question] = min(null, null_scores.get(question, null))
                candidates.setdefault(question, []).extend(found)
    predictions, odds = {}, {}
    for index, (name, _, context, _) in enumerate(dev_questions):
        score, begin, end = max(candidates[index], default=(float("-inf"), 0, 0))
        odds[name] = null_scores[index] - score
        predictions[name] = "" if odds[name] > 0 else context[begin:end]
    folder.mkdir(parents=True)
    (folder / "predictions.json").write_text(json.dumps(predictions), encoding="utf-8")
    (folder / "null_odds.json").write_text(json.dumps(odds), encoding="utf-8")
    model.train()


model.train()
for epoch in range(arguments.epochs):
    for batch in fine_tuning.batches_of(lengths, 16):
        part = [train[index] for index in batch]
        stepper.step(lambda: model(**windows.batch_of(part), start_positions=torch.tensor([window["start"] for window in part]),
                                   end_positions=torch.tensor([window["end"] for window in part])).loss)
    evaluate(arguments.output / f"epoch-{epoch + 1}")
