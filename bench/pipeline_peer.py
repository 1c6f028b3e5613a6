"""Predicts with transformers' pipeline what `stretto predict` predicts, and prints texts/s: from the texts to a file of JSON lines.

The pipeline gets the texts sorted by length, in batches; with --batch-size 1, its default, as they are. Starting Python and loading the model are not counted.
"""
import argparse
import json
import time

import torch
from transformers import pipeline

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("task", choices=["text-classification", "token-classification"])
parser.add_argument("--model", required=True)
parser.add_argument("--input", required=True, help="a text per line")
parser.add_argument("--output", required=True)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
arguments = parser.parse_args()

torch.set_num_threads(1)
settings = {"aggregation_strategy": "simple"} if arguments.task == "token-classification" else {}
predict = pipeline(arguments.task, model=arguments.model, device="cpu", batch_size=arguments.batch_size,
                   dtype=torch.bfloat16 if arguments.precision == "bf16" else torch.float32, **settings)
with open(arguments.input, encoding="utf-8") as file:
    texts = file.read().splitlines()

start = time.perf_counter()
order = sorted(range(len(texts)), key=lambda index: len(texts[index])) if arguments.batch_size > 1 else range(len(texts))
with torch.no_grad():
    found = dict(zip(order, predict([texts[index] for index in order])))
with open(arguments.output, "w", encoding="utf-8") as file:
    for index in range(len(texts)):
        file.write(json.dumps(found[index], default=float) + "\n")
print(json.dumps({"texts_per_second": round(len(texts) / (time.perf_counter() - start), 2)}))
