"""Fine-tunes on SST-2 like recipes/sst2.yaml, with transformers and torch.optim in one process: prints accuracy and samples/s.

Settings are those of the recipe on two ranks: batches of 64 of similar lengths, one epoch, AdamW with lr 5e-5 and weight
decay 0.01 (none for biases and norms), 6 % warm-up, then linear decay, gradients clipped to norm 1.
"""
import argparse
import csv
import random
import time

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, get_linear_schedule_with_warmup

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
    longest = max(len(ids) for ids, _ in samples)
    ids = torch.tensor([ids + [0] * (longest - len(ids)) for ids, _ in samples])
    mask = torch.tensor([[1] * len(ids) + [0] * (longest - len(ids)) for ids, _ in samples])
    return {"input_ids": ids, "attention_mask": mask}, torch.tensor([label for _, label in samples])


def batches_of(samples, size, window=50):
    """Batches of samples of similar lengths, in random order."""
    order = random.sample(range(len(samples)), len(samples))
    for begin in range(0, len(order), size * window):
        alike = sorted(order[begin:begin + size * window], key=lambda index: len(samples[index][0]))
        cut = [alike[at:at + size] for at in range(0, len(alike), size)]
        random.shuffle(cut)
        yield from cut


train, dev = read("train"), read("dev")
batches = list(batches_of(train, arguments.batch_size))
without_decay = [p for name, p in model.named_parameters() if name.endswith("bias") or "LayerNorm" in name]
kept = {id(p) for p in without_decay}
with_decay = [p for p in model.parameters() if id(p) not in kept]
optimizer = torch.optim.AdamW([{"params": with_decay, "weight_decay": 0.01},
                               {"params": without_decay, "weight_decay": 0.0}], lr=5e-5, fused=True)
schedule = get_linear_schedule_with_warmup(optimizer, int(0.06 * len(batches)), len(batches))

model.train()
start, done = time.time(), 0
for batch in batches[:arguments.max_steps]:
    inputs, labels = collate([train[index] for index in batch])
    with torch.autocast("cpu", torch.bfloat16, enabled=arguments.precision == "bf16"):
        loss = model(**inputs, labels=labels).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    done += len(batch)
speed = done / (time.time() - start)

model.eval()
right = 0
with torch.no_grad():
    for begin in range(0, len(dev), 64):
        inputs, labels = collate(dev[begin:begin + 64])
        right += (model(**inputs).logits.argmax(-1) == labels).sum().item()
print(f"seed {arguments.seed} {arguments.precision}: accuracy {right / len(dev):.4f}, {speed:.1f} samples/s")
