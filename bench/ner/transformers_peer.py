"""Fine-tunes on CoNLL files like recipes/ner.yaml, with transformers and torch.optim in one process: prints span F1 and samples/s.

Settings are the recipe's: batches of 16 of similar lengths, padded to the longest of each; 3 epochs; AdamW with lr 2e-4 and weight
decay 0.01 (none for biases and norms), 10 % warm-up, then linear decay, gradients clipped to norm 1; the loss is the mean over the first
tokens of words. Dev is evaluated after each epoch, and the best F1 is printed: spans as seqeval and conlleval count them.

Without --train: evaluates a fine-tuned model on dev, and prints its F1 and samples/s, from the sentences to the F1; in batches sorted by
length, with --any-lengths as run_ner.py does.
"""
import argparse
import json
import pathlib
import random
import sys
import time

import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import fine_tuning

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--train", help="a CoNLL file: word first, tag last")
parser.add_argument("--dev", required=True)
parser.add_argument("--encoder", required=True)
parser.add_argument("--seed", type=int, default=42)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
parser.add_argument("--any-lengths", action="store_true", help="batches of random samples, not of similar lengths")
parser.add_argument("--max-steps", type=int, help="end early, to measure only the speed")
arguments = parser.parse_args()

torch.set_num_threads(1)
random.seed(arguments.seed)
torch.manual_seed(arguments.seed)
tokenizer = AutoTokenizer.from_pretrained(arguments.encoder)


def read(path):
    sentences = [[]]
    with open(path, encoding="utf-8") as file:
        for line in file:
            columns = line.split()
            if columns:
                sentences[-1].append((columns[0], columns[-1]))
            elif sentences[-1]:
                sentences.append([])
    return [sentence for sentence in sentences if sentence and sentence[0][0] != "-DOCSTART-"]


def encode(sentences):
    """Of each sentence, ids and the class of each token that is the first of its word, else -100. Tags unseen in training count as O."""
    encoding = tokenizer([[word for word, _ in sentence] for sentence in sentences], is_split_into_words=True, truncation=True,
                         max_length=128)
    samples = []
    for index, sentence in enumerate(sentences):
        labels, previous = [], None
        for word in encoding.word_ids(index):
            first = word is not None and word != previous
            labels.append(label_ids.get(sentence[word][1], label_ids["O"]) if first else -100)
            previous = word
        samples.append((encoding["input_ids"][index], labels))
    return samples


def lengths(samples):
    return [len(ids) for ids, _ in samples]


def collate(samples):
    return ({"input_ids": fine_tuning.padded([ids for ids, _ in samples]),
             "attention_mask": fine_tuning.padded([[1] * len(ids) for ids, _ in samples])},
            fine_tuning.padded([labels for _, labels in samples], -100))


def spans_of(tags):
    """(type, begin, end): a span begins at B-, and at an I- of another type than the tag before."""
    spans, begin, kind = set(), None, None
    for i, tag in enumerate([*tags, "O"]):
        prefix, _, name = tag.partition("-")
        if kind is not None and (prefix != "I" or name != kind):
            spans.add((kind, begin, i))
            kind = None
        if prefix != "O" and kind is None:
            begin, kind = i, name
    return spans


def evaluate(samples):
    model.eval()
    right = predicted = gold = 0
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=arguments.precision == "bf16"):
        for batch in fine_tuning.evaluation_batches(lengths(samples), 64, not arguments.any_lengths):
            inputs, labels = collate([samples[i] for i in batch])
            best = model(**inputs).logits.argmax(-1)
            for row, i in enumerate(batch):
                tags = [tag for _, tag in dev[i]]
                found = [names[k] for k in best[row][labels[row] != -100].tolist()]
                found += ["O"] * (len(tags) - len(found))  # words behind the longest sequence
                right += len(spans_of(found) & spans_of(tags))
                predicted += len(spans_of(found))
                gold += len(spans_of(tags))
    model.train()
    return round(2 * right / max(1, predicted + gold), 4)


def fine_tune(samples):
    """Samples/s, and F1 after each whole epoch."""
    stepper = fine_tuning.Stepper(model, 2e-4, arguments.epochs * -(-len(samples) // 16), 0.1, arguments.precision)
    speed, scores, steps = fine_tuning.Speed(), [], 0
    model.train()
    for _ in range(arguments.epochs):
        for batch in fine_tuning.batches_of(lengths(samples), 16, not arguments.any_lengths):
            inputs, labels = collate([samples[i] for i in batch])
            stepper.step(lambda: torch.nn.functional.cross_entropy(model(**inputs).logits.flatten(0, 1), labels.flatten()))
            speed.count(len(batch))
            steps += 1
            if steps == arguments.max_steps:
                return speed.per_second(), scores
        scores.append(evaluate(encode(dev)))
        speed.rest()
    return speed.per_second(), scores


dev = read(arguments.dev)
result = {"seed": arguments.seed}
if arguments.train:
    train = read(arguments.train)
    names = sorted({tag for sentence in train for _, tag in sentence})
    label_ids = {name: i for i, name in enumerate(names)}
    model = AutoModelForTokenClassification.from_pretrained(arguments.encoder, num_labels=len(names))
    speed, scores = fine_tune(encode(train))
    result.update(f1=max(scores, default=None), f1_by_epoch=scores, samples_per_second=speed)
else:
    model = AutoModelForTokenClassification.from_pretrained(arguments.encoder)
    names = [model.config.id2label[i] for i in range(model.config.num_labels)]
    label_ids = {name: i for i, name in enumerate(names)}
    start = time.perf_counter()
    result["f1"] = evaluate(encode(dev))
    result["samples_per_second"] = round(len(dev) / (time.perf_counter() - start), 2)
print(json.dumps(result))
