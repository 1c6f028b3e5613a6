"""Trains a GPT-2 with random weights on a GPU and generates with one, and prints a line of JSON per result: run.py starts it.

  loop     transformers' model with SDPA in a plain PyTorch loop: autocast, torch's fused AdamW, gradients clipped to norm 1
  trainer  the same by transformers' Trainer, on samples in memory
  generate seconds per step of generation with the shape of GPT-2 small

    peers.py CONFIG MODEL CASE...       a case: loop:bf16:8:0.1 (batch size, dropout), trainer:bf16:64:0, generate:bf16:8
"""

import json
import statistics
import sys
import tempfile
import time

import torch
import transformers

config_file, model_folder, *cases = sys.argv[1:]
with open(config_file, encoding="utf-8") as file:
    CONFIG = json.load(file)
LENGTH = CONFIG["n_positions"]
WARMUP, STEPS = 20, 60
transformers.utils.logging.set_verbosity_error()


def make_model(dropout):
    torch.manual_seed(1)
    config = transformers.GPT2Config(**{**CONFIG, "resid_pdrop": dropout, "embd_pdrop": dropout, "attn_pdrop": dropout}, attn_implementation="sdpa")
    return transformers.GPT2LMHeadModel(config).to("cuda").train()


def samples(count):
    torch.manual_seed(2)
    return torch.randint(0, 400, (count, LENGTH))


def loop(precision, batch, dropout):
    """Tokens/s."""
    model = make_model(dropout)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    batches = [samples(batch).pin_memory() for _ in range(4)]
    marks = []
    for step in range(WARMUP + STEPS):
        ids = batches[step % 4].to("cuda", non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=precision == "bf16"):
            loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if (step + 1) % 10 == 0:
            loss.item()  # as a loop that logs
            torch.cuda.synchronize()
            marks.append(time.monotonic())
    seconds = [after - before for before, after in zip(marks[1:], marks[2:])]
    return batch * LENGTH * 10 / statistics.median(seconds)


def trainer(precision, batch, dropout):
    ids = samples(batch * 8)
    rows = [{"input_ids": row, "labels": row} for row in ids]
    marks = []

    class Clock(transformers.TrainerCallback):
        def on_step_end(self, arguments, state, control, **_):
            if state.global_step % 10 == 0:
                torch.cuda.synchronize()
                marks.append(time.monotonic())

    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            output_dir=folder, per_device_train_batch_size=batch, max_steps=WARMUP + STEPS, bf16=precision == "bf16", save_strategy="no",
            report_to=[], logging_steps=10, optim="adamw_torch_fused", learning_rate=1e-3, disable_tqdm=True, dataloader_num_workers=0)
        transformers.Trainer(make_model(dropout), arguments, train_dataset=rows, callbacks=[Clock()]).train()
    seconds = [after - before for before, after in zip(marks[1:], marks[2:])]
    return batch * LENGTH * 10 / statistics.median(seconds)


def generate(precision, batch):
    """Seconds per step."""
    model = transformers.GPT2LMHeadModel.from_pretrained(model_folder, dtype=torch.bfloat16 if precision == "bf16" else torch.float32)
    model = model.to("cuda").eval()
    ids = torch.randint(0, 256, (batch, 64), device="cuda")

    def seconds(tokens):
        torch.cuda.synchronize()
        start = time.monotonic()
        model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, pad_token_id=50256)
        torch.cuda.synchronize()
        return time.monotonic() - start
    seconds(4)
    return (min(seconds(132) for _ in range(2)) - min(seconds(4) for _ in range(2))) / 128


for case in cases:
    kind, precision, batch, *dropout = case.split(":")
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    try:
        if kind == "generate":
            value = generate(precision, int(batch))
        else:
            value = {"loop": loop, "trainer": trainer}[kind](precision, int(batch), float(dropout[0]))
        print(json.dumps({"case": case, "value": value, "mib": torch.cuda.max_memory_reserved() / 2**20}), flush=True)
    except Exception as error:  # the other cases are measured nevertheless
        print(json.dumps({"case": case, "error": repr(error)[:300]}), flush=True)
