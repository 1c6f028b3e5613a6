"""Fine-tunes on SST-2 like recipes/sst2.yaml, with transformers and torch.optim in one process: prints accuracy and samples/s.

Settings are those of the recipe on two ranks: batches of 64 of similar lengths, one epoch, AdamW with lr 5e-5 and weight
decay 0.01 (none for biases and norms), 6 % warm-up, then linear decay, gradients clipped to norm 1.
"""
import argparse
import csv
import pathlib
import random
import sys
import time

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import fine_tuning

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data", required=True, help="folder with SST-2's train.tsv and dev.tsv")
parser.add_argument("--encoder", required=True)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--max-steps", type=int, help="end early, to measure only the speed")
arguments = parser.parse_args()

torch.set_num_threads(1)
random.seed(arguments.seed)
torch.manual_seed(arguments.seed)
tokenizer = AutoTokenizer.from_pretrained(arguments.encoder)
model = AutoModelForSequenceClassification.from_pretrained(arguments.encoder, num_labels=2)


def read(name):
    with open(f"{arguments.data}/{name}.tsv", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    return [(tokenizer(text.strip(), truncation=True, max_length=128)["input_ids"], int(label)) for text, label in rows]


def collate(samples):
    ids = [ids for ids, _ in samples]
    return ({"input_ids": fine_tuning.padded(ids), "attention_mask": fine_tuning.padded([[1] * len(row) for row in ids])},
            torch.tensor([label for _, label in samples]))


train, dev = read("train"), read("dev")
batches = list(fine_tuning.batches_of([len(ids) for ids, _ in train], arguments.batch_size))
stepper = fine_tuning.Stepper(model, 5e-5, len(batches), 0.06, arguments.precision)

model.train()
start, done = time.time(), 0
for batch in batches[:arguments.max_steps]:
    inputs, labels = collate([train[index] for index in batch])
    stepper.step(lambda: model(**inputs, labels=labels).loss)
    done += len(batch)
speed = done / (time.time() - start)

model.eval()
right = 0
with torch.no_grad():
    for begin in range(0, len(dev), 64):
        inputs, labels = collate(dev[begin:begin + 64])
        right += (model(**inputs).logits.argmax(-1) == labels).sum().item()
print(f"seed {arguments.seed} {arguments.precision}: accuracy {right / len(dev):.4f}, {speed:.1f} samples/s")
