"""One optimizer step of a tiny BERT under torchrun, with bare DDP or Accelerate; prints a line when it is done."""

import sys

import torch
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

how, folder, train = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForSequenceClassification.from_config(AutoConfig.from_pretrained(folder))
with open(train, encoding="utf-8") as file:
    rows = [line.rstrip("\n").split("\t") for line in file][1:33]
batch = dict(tokenizer([text for text, _ in rows], return_tensors="pt", padding=True))
batch["labels"] = torch.tensor([int(label) for _, label in rows])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
if how == "accelerate":
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model, optimizer = accelerator.prepare(model, optimizer)
    accelerator.backward(model(**batch).loss)
else:
    torch.distributed.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(model)
    model(**batch).loss.backward()
optimizer.step()
print("first step done", flush=True)
torch.distributed.destroy_process_group()
