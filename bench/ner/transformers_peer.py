"""Fine-tunes on CoNLL files like recipes/ner.yaml, with transformers and torch.optim in one process: prints span F1 and samples/s.

Settings are the recipe's: batches of 16 of similar lengths, padded to the longest of each; 3 epochs; AdamW with lr 2e-4 and weight
decay 0.01 (none for biases and norms), 10 % warm-up, then linear decay, gradients clipped to norm 1; the loss is the mean over the first
tokens of words. Dev is evaluated after each epoch, and the best F1 is printed: spans as seqeval and conlleval count them.
"""
import argparse
import json
import random
import time

import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer, get_linear_schedule_with_warmup

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--train", required=True, help="a CoNLL file: word first, tag last")
parser.add_argument("--dev", required=True)
parser.add_argument("--encoder", required=True)
parser.add_argument("--seed", type=int, default=42)
parser.add_argument("--epochs", type=int, default=3)
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


def encode(sentence):
    """Ids, and the tag of each token that is the first of its word, else -100."""
    encoding = tokenizer([word for word, _ in sentence], is_split_into_words=True, truncation=True, max_length=128)
    labels, previous = [], None
    for word in encoding.word_ids():
        labels.append(-100 if word is None or word == previous else label_ids[sentence[word][1]])
        previous = word
    return encoding["input_ids"], labels


def collate(samples):
    longest = max(len(ids) for ids, _ in samples)
    pad = lambda row, value: row + [value] * (longest - len(row))
    return ({"input_ids": torch.tensor([pad(ids, 0) for ids, _ in samples]),
             "attention_mask": torch.tensor([pad([1] * len(ids), 0) for ids, _ in samples])},
            torch.tensor([pad(labels, -100) for _, labels in samples]))


def batches_of(samples, size, window=50):
    """Batches of samples of similar lengths, in random order."""
    order = random.sample(range(len(samples)), len(samples))
    for begin in range(0, len(order), size * window):
        alike = sorted(order[begin:begin + size * window], key=lambda index: len(samples[index][0]))
        cut = [alike[at:at + size] for at in range(0, len(alike), size)]
        random.shuffle(cut)
        yield from cut


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


def evaluate():
    model.eval()
    right = predicted = gold = 0
    with torch.no_grad():
        for begin in range(0, len(dev), 64):
            inputs, labels = collate([encoded_dev[i] for i in dev_order[begin:begin + 64]])
            best = model(**inputs).logits.argmax(-1)
            for row, i in enumerate(dev_order[begin:begin + 64]):
                tags = [tag for _, tag in dev[i]]
                found = [names[k] for k in best[row][labels[row] != -100].tolist()]
                found += ["O"] * (len(tags) - len(found))  # words behind the longest sequence
                right += len(spans_of(found) & spans_of(tags))
                predicted += len(spans_of(found))
                gold += len(spans_of(tags))
    model.train()
    return 2 * right / max(1, predicted + gold)


train, dev = read(arguments.train), read(arguments.dev)
names = sorted({tag for sentence in train for _, tag in sentence})
label_ids = {name: i for i, name in enumerate(names)}
encoded, encoded_dev = [encode(s) for s in train], [encode([(w, t if t in label_ids else "O") for w, t in s]) for s in dev]
dev_order = sorted(range(len(dev)), key=lambda i: len(encoded_dev[i][0]))
model = AutoModelForTokenClassification.from_pretrained(arguments.encoder, num_labels=len(names))
without_decay = [p for name, p in model.named_parameters() if name.endswith("bias") or "LayerNorm" in name]
kept = {id(p) for p in without_decay}
optimizer = torch.optim.AdamW([{"params": [p for p in model.parameters() if id(p) not in kept], "weight_decay": 0.01},
                               {"params": without_decay, "weight_decay": 0.0}], lr=2e-4, fused=True)
total = arguments.epochs * -(-len(train) // 16)
schedule = get_linear_schedule_with_warmup(optimizer, int(0.1 * total), total)

model.train()
seconds, done, steps, scores = 0.0, 0, 0, []
for epoch in range(arguments.epochs):
    start = time.time()
    for batch in batches_of(encoded, 16):
        if steps == arguments.max_steps:
            break
        inputs, labels = collate([encoded[i] for i in batch])
        loss = torch.nn.functional.cross_entropy(model(**inputs).logits.flatten(0, 1), labels.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        done += len(batch)
        steps += 1
    seconds += time.time() - start
    if steps == arguments.max_steps:
        break
    scores.append(round(evaluate(), 4))
print(json.dumps({"seed": arguments.seed, "f1": max(scores, default=None), "f1_by_epoch": scores, "samples_per_second": round(done / seconds, 1)}))
