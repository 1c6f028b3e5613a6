#!/usr/bin/env python3
"""Writes tests/golden/optim/schedules.json: learning rates and momenta of torch's and transformers' schedules.

Needs torch and transformers (the file in the repository: torch 2.13, transformers 5.23):
    python3 scripts/make_golden_schedules.py

One object per case: {"type", "options", "lr" of the optimizer, "total_steps", "rates": [[lr, momentum or null], ...]}, with
one element for each of the first steps of a run. Schedules that follow a metric also have "metrics": the value observed after
each step, or null where there is no evaluation.
"""

import json
import math
import pathlib

import torch
import transformers
from torch.optim import lr_scheduler

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "optim" / "schedules.json"
LR, STEPS = 0.3, 200

TORCH = [
    ("StepLR", dict(step_size=7)),
    ("StepLR", dict(step_size=1, gamma=0.9)),
    ("LinearLR", dict()),
    ("LinearLR", dict(start_factor=0.9, end_factor=0.1, total_iters=31)),
    ("ExponentialLR", dict(gamma=0.93)),
    ("CosineAnnealingLR", dict(T_max=13)),
    ("CosineAnnealingLR", dict(T_max=STEPS, eta_min=0.01)),
    ("CyclicLR", dict(base_lr=0.01, max_lr=0.2, step_size_up=6)),
    ("CyclicLR", dict(base_lr=0.01, max_lr=0.2, step_size_up=5, step_size_down=8, mode="triangular2")),
    ("CyclicLR", dict(base_lr=0.3, max_lr=0.5, step_size_up=4, mode="exp_range", gamma=0.97, base_momentum=0.7,
                      max_momentum=0.99)),
    ("CyclicLR", dict(base_lr=0.01, max_lr=0.2, step_size_up=9, cycle_momentum=False)),
    ("OneCycleLR", dict(max_lr=0.5)),
    ("OneCycleLR", dict(max_lr=0.5, pct_start=0.21, anneal_strategy="linear", div_factor=10.0, final_div_factor=50.0)),
    ("OneCycleLR", dict(max_lr=0.5, three_phase=True, base_momentum=0.6, max_momentum=0.9)),
    ("OneCycleLR", dict(max_lr=0.5, total_steps=283, cycle_momentum=False)),
    ("CosineAnnealingWarmRestarts", dict(T_0=9)),
    ("CosineAnnealingWarmRestarts", dict(T_0=4, T_mult=2, eta_min=0.02)),
]
TRANSFORMERS = [
    ("Constant", transformers.get_constant_schedule, dict()),
    ("ConstantWithWarmup", transformers.get_constant_schedule_with_warmup, dict(num_warmup_steps=8)),
    ("LinearWithWarmup", transformers.get_linear_schedule_with_warmup, dict(num_warmup_steps=8)),
    ("LinearWithWarmup", transformers.get_linear_schedule_with_warmup, dict(num_warmup_steps=0)),
    ("LinearWithWarmup", transformers.get_linear_schedule_with_warmup, dict(num_warmup_steps=8, num_training_steps=90)),
    ("CosineWithWarmup", transformers.get_cosine_schedule_with_warmup, dict(num_warmup_steps=8)),
    ("CosineWithWarmup", transformers.get_cosine_schedule_with_warmup, dict(num_warmup_steps=3, num_cycles=1.75)),
    ("CosineWithWarmup", transformers.get_cosine_schedule_with_warmup, dict(num_warmup_steps=8, num_training_steps=270)),
    ("CosineWithWarmup", transformers.get_cosine_schedule_with_warmup, dict(num_warmup_steps=8, num_training_steps=90)),
    ("CosineWithHardRestartsWithWarmup", transformers.get_cosine_with_hard_restarts_schedule_with_warmup,
     dict(num_warmup_steps=8)),
    ("CosineWithHardRestartsWithWarmup", transformers.get_cosine_with_hard_restarts_schedule_with_warmup,
     dict(num_warmup_steps=5, num_cycles=4)),
    ("CosineWithHardRestartsWithWarmup", transformers.get_cosine_with_hard_restarts_schedule_with_warmup,
     dict(num_warmup_steps=5, num_cycles=3, num_training_steps=90)),
    ("InverseSQRT", transformers.get_inverse_sqrt_schedule, dict(num_warmup_steps=8)),
    ("InverseSQRT", transformers.get_inverse_sqrt_schedule, dict(num_warmup_steps=0)),
    ("InverseSQRT", transformers.get_inverse_sqrt_schedule, dict(num_warmup_steps=4, timescale=20)),
    ("PolynomialDecayWithWarmup", transformers.get_polynomial_decay_schedule_with_warmup, dict(num_warmup_steps=8)),
    ("PolynomialDecayWithWarmup", transformers.get_polynomial_decay_schedule_with_warmup,
     dict(num_warmup_steps=8, lr_end=0.01, power=2.5)),
    ("PolynomialDecayWithWarmup", transformers.get_polynomial_decay_schedule_with_warmup,
     dict(num_warmup_steps=8, lr_end=0.01, power=2.5, num_training_steps=90)),
]
PLATEAU = [
    dict(mode="min"),
    dict(mode="min", factor=0.5, patience=2),
    dict(mode="max", factor=0.3, patience=1, threshold=0.05),
    dict(mode="min", patience=0, threshold=0.02, threshold_mode="abs", factor=0.6),
    dict(mode="max", patience=1, threshold=0.01, threshold_mode="abs", cooldown=3, factor=0.7),
    dict(mode="min", patience=1, factor=0.1, min_lr=0.002, eps=1e-3),
]
NEEDS_TOTAL = ("Linear", "Cosine", "Polynomial")


def metric(step, mode):
    """What is observed after a step: improves, then stagnates, with noise; None between evaluations."""
    if step % 2 == 1:
        return None
    loss = 1.5 / (1 + step / 6) + 0.2 * math.sin(step * 1.7) - 0.9
    return loss if mode == "min" else -loss


def rates(make, moves_momentum, metrics=None):
    """[lr, momentum] of each step."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=LR, momentum=0.9)
    schedule = make(optimizer)
    rows = []
    for step in range(STEPS):
        group = optimizer.param_groups[0]
        rows.append([group["lr"], group["momentum"] if moves_momentum else None])
        optimizer.step()
        if metrics is None:
            schedule.step()
        elif metrics[step] is not None:
            schedule.step(metrics[step])
    return rows


def main():
    cases = []

    def add(name, options, make):
        moves_momentum = name in ("CyclicLR", "OneCycleLR") and options.get("cycle_momentum", True)
        cases.append(dict(type=name, options=options, lr=LR, total_steps=STEPS, rates=rates(make, moves_momentum)))

    for name, options in TORCH:
        total = dict(total_steps=STEPS) if name == "OneCycleLR" else dict()
        add(name, options, lambda optimizer: getattr(lr_scheduler, name)(optimizer, **(total | options)))
    for name, function, options in TRANSFORMERS:
        total = dict(num_training_steps=STEPS) if name.startswith(NEEDS_TOTAL) else dict()
        add(name, options, lambda optimizer: function(optimizer, **(total | options)))
    for options in PLATEAU:
        metrics = [metric(step, options["mode"]) for step in range(STEPS)]
        made = rates(lambda optimizer: lr_scheduler.ReduceLROnPlateau(optimizer, **options), False, metrics)
        cases.append(dict(type="ReduceLROnPlateau", options=options, lr=LR, total_steps=STEPS, metrics=metrics, rates=made))
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


main()
