"""Builds the training samples of SQuAD's files as transformers' run_qa.py does, then fine-tunes on them with transformers and torch.optim
in one process, like recipes/qa.yaml: prints questions/s of building, and samples/s of training.

Building: the tokenizer with windows of max_length tokens that share doc_stride, offsets, and the answer's first and last token of each
window. Training: batches of 16 of similar lengths, padded to the longest of each; AdamW, gradients clipped to norm 1.
"""
import argparse
import json
import random
import time

import torch
from transformers import AutoModelForQuestionAnswering, AutoTokenizer

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--train", required=True, help="a file in SQuAD's layout")
parser.add_argument("--encoder", required=True)
parser.add_argument("--max-length", type=int, default=384)
parser.add_argument("--doc-stride", type=int, default=128)
parser.add_argument("--steps", type=int, default=20)
arguments = parser.parse_args()

torch.set_num_threads(1)
random.seed(1)
tokenizer = AutoTokenizer.from_pretrained(arguments.encoder)
with open(arguments.train, encoding="utf-8") as file:
    questions = [(qa["question"].lstrip(), paragraph["context"], qa["answers"]) for article in json.load(file)["data"]
                 for paragraph in article["paragraphs"] for qa in paragraph["qas"]]


def answer_tokens(encoding, sample, answers):
    """The first and last token of the answer, or those of [CLS] if this window does not hold it."""
    if not answers:
        return 0, 0
    offsets, sequences = encoding["offset_mapping"][sample], encoding.sequence_ids(sample)
    begin = answers[0]["answer_start"]
    end = begin + len(answers[0]["text"])
    first, last = 0, len(sequences) - 1
    while sequences[first] != 1:
        first += 1
    while sequences[last] != 1:
        last -= 1
    if offsets[first][0] > begin or offsets[last][1] < end:
        return 0, 0
    while first < len(offsets) and offsets[first][0] <= begin:
        first += 1
    while offsets[last][1] >= end:
        last -= 1
    return first - 1, last + 1


start = time.time()
samples = []
for at in range(0, len(questions), 1000):  # the batches of datasets.map
    part = questions[at:at + 1000]
    encoding = tokenizer([q for q, _, _ in part], [c for _, c, _ in part], truncation="only_second", max_length=arguments.max_length,
                         stride=arguments.doc_stride, return_overflowing_tokens=True, return_offsets_mapping=True)
    for sample, question in enumerate(encoding["overflow_to_sample_mapping"]):
        samples.append((encoding["input_ids"][sample], encoding["token_type_ids"][sample],
                        *answer_tokens(encoding, sample, part[question][2])))
building = len(questions) / (time.time() - start)

model = AutoModelForQuestionAnswering.from_pretrained(arguments.encoder).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
order = sorted(random.sample(range(len(samples)), min(len(samples), 16 * 50)), key=lambda i: len(samples[i][0]))
batches = [order[at:at + 16] for at in range(0, len(order), 16)]
random.shuffle(batches)
done, start = 0, 0.0
for step, batch in enumerate(batches[:arguments.steps + 1]):
    if step == 1:  # the first one is not measured
        start = time.time()
    rows = [samples[i] for i in batch]
    longest = max(len(row[0]) for row in rows)
    pad = lambda row: row + [0] * (longest - len(row))
    loss = model(input_ids=torch.tensor([pad(ids) for ids, _, _, _ in rows]), token_type_ids=torch.tensor([pad(types) for _, types, _, _ in rows]),
                 attention_mask=torch.tensor([pad([1] * len(ids)) for ids, _, _, _ in rows]),
                 start_positions=torch.tensor([row[2] for row in rows]), end_positions=torch.tensor([row[3] for row in rows])).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    done += len(batch) if step else 0
print(json.dumps({"questions": len(questions), "samples": len(samples), "questions_per_second": round(building, 1),
                  "samples_per_second": round(done / (time.time() - start), 2)}))
