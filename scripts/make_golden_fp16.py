#!/usr/bin/env python3
"""Writes tests/golden/trainer/fp16.json: trajectories of torch.amp in fp16 on the CPU, with a GradScaler whose scale grows until
gradients overflow.

Needs torch (the file in the repository: torch 2.13):
    python3 scripts/make_golden_fp16.py

"x" [samples, inputs], "y" [samples]; "initial": the weights of Linear, tanh, Linear by name; "batch_size": each step takes the
next samples in order. One object per case: {"ranks", "optimizer", "lr", "max_grad_norm" (0: none), "scaler": GradScaler's
arguments, "steps": [{"loss", "scale" of the step, "skipped", "lr"}, ...], "final": the weights after the last step}. The
learning rate falls linearly to 0 over as many updates as there are steps; a skipped step does not advance it. Several ranks are
parts of a batch whose gradients are added, as in the accumulation of torch's examples: rank r has the samples r, r + ranks, ...
"""

import json
import pathlib

import torch

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "trainer" / "fp16.json"
SAMPLES, INPUTS, HIDDEN, BATCH, EPOCHS = 32, 6, 16, 8, 6
STEPS = EPOCHS * SAMPLES // BATCH
SCALER = dict(init_scale=2.0**20, growth_factor=2.0, backoff_factor=0.5, growth_interval=2)
CASES = [case | dict(ranks=ranks) for ranks in (1, 2) for case in (
    dict(optimizer="SGD", lr=0.05, max_grad_norm=0.0, scaler=SCALER),
    dict(optimizer="AdamW", lr=0.02, max_grad_norm=0.3, scaler=SCALER | dict(growth_factor=4.0, backoff_factor=0.25)),
)]


def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(INPUTS, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, 1))


def weights(model):
    return {name: tensor.flatten().tolist() for name, tensor in model.state_dict().items()}


def run(case, x, y):
    model = net()
    kinds = {
        "SGD": lambda: torch.optim.SGD(model.parameters(), lr=case["lr"], momentum=0.9),
        "AdamW": lambda: torch.optim.AdamW(model.parameters(), lr=case["lr"], weight_decay=0.0),
    }
    optimizer = kinds[case["optimizer"]]()
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: 1 - update / STEPS)
    scaler = torch.amp.GradScaler("cpu", **case["scaler"])
    steps = []
    for step in range(STEPS):
        first = step * BATCH % SAMPLES
        optimizer.zero_grad()
        scale, lr, mean = scaler.get_scale(), optimizer.param_groups[0]["lr"], 0.0
        for rank in range(case["ranks"]):
            own = slice(first + rank, first + BATCH, case["ranks"])
            with torch.autocast("cpu", dtype=torch.float16):
                out = model(x[own]).squeeze(1)
            loss = torch.nn.functional.mse_loss(out.float(), y[own]) / case["ranks"]
            scaler.scale(loss).backward()
            mean += loss.item()
        scaler.unscale_(optimizer)
        if case["max_grad_norm"] > 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), case["max_grad_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        steps.append(dict(loss=mean, scale=scale, skipped=skipped, lr=lr))
    return case | dict(steps=steps, final=weights(model))


def main():
    torch.set_num_threads(1)
    i = torch.arange(SAMPLES, dtype=torch.float64).unsqueeze(1)
    x = torch.sin((i + 1) * torch.arange(1, INPUTS + 1)).float()
    y = (2 * x[:, 0] - x[:, 1] * x[:, 2] + 1.5).float()
    golden = dict(x=x.tolist(), y=y.tolist(), batch_size=BATCH, initial=weights(net()), cases=[run(case, x, y) for case in CASES])
    OUTPUT.write_text(json.dumps(golden) + "\n")
    for case in golden["cases"]:
        skipped = [step for step, record in enumerate(case["steps"]) if record["skipped"]]
        losses = [record["loss"] for record in case["steps"]]
        print(f"{case['ranks']} ranks, {case['optimizer']}: losses {losses[0]:.4f} to {losses[-1]:.4f}, skipped {skipped}")


if __name__ == "__main__":
    main()
