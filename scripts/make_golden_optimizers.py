#!/usr/bin/env python3
"""Writes tests/golden/optim/optimizers.json: 25 steps of torch.optim's optimizers from fixed weights with fixed gradients.

Needs torch, timm and torch-optimizer (the file in the repository: torch 2.13, timm 1.0.31, torch-optimizer 0.3.0):
    python3 scripts/make_golden_optimizers.py

One object per case: {"type", "options", "lr": [25], "momentum": [25] or null, "final": {name: [values]}}. Three parameters,
in fp64: w [4, 3] and t [2, 3, 2] with weight decay, b [3] without. Element i of parameter p begins at
sin(1 + i + 10 p); its gradient in step s (the first is 0) is cos((i + 1) (s + 1) + p) (1 + s mod 3), and 0 where
(i + s) mod 5 is 0. lr is the optimizer's in every step but one, 11, where it is half.

Cases of SparseAdam have "sparse": true. There w alone has a gradient, of which step s has the rows r with (r + s) mod 3 = 0,
as a sparse tensor.

Cases of Muon update w and t, as matrices [4, 3] and [2, 6], by torch.optim.Muon, whose products are computed in fp64
instead of bf16, and b by torch.optim.AdamW.

Cases of Lamb are computed by timm's Lamb, whose trust_clip is a max_coeff of 1, if bias_correction is moments, and else by
torch_optimizer's, which corrects the step size, as DeepSpeed's FusedLamb does. Neither limits the trust ratio from below.

Cases of LBFGS have "loss": "rosenbrock": the gradients are those of rosenbrock() below, of all parameters in one vector; there
are 5 steps, and "losses" holds the loss before each.
"""

import functools
import importlib.util
import json
import math
import pathlib
import sys
import types

import torch
import torch_optimizer

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "optim" / "optimizers.json"
STEPS = 25
torch.set_default_dtype(torch.float64)  # also of the numbers that ASGD and NAdam keep in tensors
SHAPES = {"w": (4, 3), "t": (2, 3, 2), "b": (3,)}
CASES = [
    ("AdamW", dict()),
    ("AdamW", dict(lr=0.01, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1)),
    ("SGD", dict()),
    ("SGD", dict(lr=0.02, momentum=0.9, dampening=0.3, weight_decay=0.05)),
    ("SGD", dict(lr=0.02, momentum=0.9, nesterov=True)),
    ("Adam", dict()),
    ("Adam", dict(lr=0.01, betas=(0.7, 0.9), eps=1e-4, weight_decay=0.1, amsgrad=True)),
    ("Adadelta", dict()),
    ("Adadelta", dict(lr=0.5, rho=0.8, eps=1e-3, weight_decay=0.1)),
    ("Adagrad", dict()),
    ("Adagrad", dict(lr=0.1, lr_decay=0.05, initial_accumulator_value=0.3, eps=1e-4, weight_decay=0.1)),
    ("Adamax", dict()),
    ("Adamax", dict(lr=0.1, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1)),
    ("Adafactor", dict()),
    ("Adafactor", dict(lr=0.5, beta2_decay=-0.5, eps=(1e-2, 1e-1), d=1.5, weight_decay=0.1)),
    ("ASGD", dict()),
    ("ASGD", dict(lr=0.1, lambd=0.01, alpha=0.6, t0=10.0, weight_decay=0.1)),
    ("NAdam", dict()),
    ("NAdam", dict(lr=0.01, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1, momentum_decay=0.1)),
    ("NAdam", dict(lr=0.01, weight_decay=0.1, decoupled_weight_decay=True)),
    ("RAdam", dict()),
    ("RAdam", dict(lr=0.1, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.1)),
    ("RAdam", dict(lr=0.1, betas=(0.8, 0.9), weight_decay=0.1, decoupled_weight_decay=True)),
    ("RMSprop", dict()),
    ("RMSprop", dict(lr=0.02, alpha=0.9, eps=1e-4, weight_decay=0.1, momentum=0.8, centered=True)),
    ("RMSprop", dict(momentum=0.5)),
    ("Rprop", dict()),
    ("Rprop", dict(lr=0.1, etas=(0.3, 1.5), step_sizes=(0.02, 0.2))),
]
SPARSE = [dict(), dict(lr=0.05, betas=(0.8, 0.95), eps=1e-3)]
MUON = [
    dict(),
    dict(lr=0.02, momentum=0.9, weight_decay=0.05, adjust_lr_fn="match_rms_adamw", adamw_lr=0.01, adamw_betas=[0.8, 0.95],
         adamw_eps=1e-6),
    dict(lr=0.05, nesterov=False, ns_steps=3, ns_coefficients=[2.0, -1.5, 0.5]),
]
LAMB = [
    dict(bias_correction="moments", min_coeff=0.0, max_coeff=1e9),
    dict(bias_correction="moments", min_coeff=0.0, max_coeff=1.0, lr=0.02, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
    dict(bias_correction="step", min_coeff=0.0, max_coeff=1e9),
    dict(bias_correction="step", min_coeff=0.0, max_coeff=1e9, lr=0.02, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
    dict(bias_correction="none", min_coeff=0.0, max_coeff=1e9, lr=0.02, weight_decay=0.1),
]
LBFGS = [
    dict(lr=0.3, max_iter=4, history_size=3),
    dict(max_iter=3, history_size=10, line_search_fn="strong_wolfe"),
    dict(line_search_fn="strong_wolfe"),
    dict(lr=0.01, max_iter=10, max_eval=12, line_search_fn="strong_wolfe"),
    dict(lr=30.0, max_iter=5, max_eval=9, history_size=2, line_search_fn="strong_wolfe"),
    dict(line_search_fn="strong_wolfe", tolerance_grad=1.0, tolerance_change=1e-3),
]
MOMENTUM = {"AdamW", "Adam", "SGD", "RMSprop", "NAdam", "RAdam", "Adamax"}


def weights():
    return {name: torch.tensor([math.sin(1 + i + 10 * p) for i in range(math.prod(shape))], dtype=torch.float64).view(shape)
            for p, (name, shape) in enumerate(SHAPES.items())}


def gradient(p, shape, step):
    values = [0.0 if (i + step) % 5 == 0 else math.cos((i + 1) * (step + 1) + p) * (1 + step % 3)
              for i in range(math.prod(shape))]
    return torch.tensor(values, dtype=torch.float64).view(shape)


def trajectory(name, options, cycles_momentum):
    parameters = {key: torch.nn.Parameter(value) for key, value in weights().items()}
    no_decay = dict(weight_decay=0.0) if name != "Rprop" else dict()
    groups = [dict(params=[parameters["w"], parameters["t"]]), dict(params=[parameters["b"]], **no_decay)]
    return steps_of(getattr(torch.optim, name)(groups, **options), name, options, parameters, cycles_momentum)


def steps_of(optimizer, name, options, parameters, cycles_momentum):
    lrs, momenta = [], []
    for step in range(STEPS):
        lr = optimizer.defaults["lr"] * (0.5 if step == 11 else 1)
        momentum = 0.9 - 0.02 * step
        for group in optimizer.param_groups:
            group["lr"] = lr
            if cycles_momentum and "betas" in group:
                group["betas"] = (momentum, group["betas"][1])
            elif cycles_momentum:
                group["momentum"] = momentum
        lrs.append(lr)
        momenta.append(momentum)
        for p, (key, shape) in enumerate(SHAPES.items()):
            parameters[key].grad = gradient(p, shape, step)
        optimizer.step()
    options = {key: list(value) if isinstance(value, tuple) else value for key, value in options.items()}
    final = {key: parameter.detach().flatten().tolist() for key, parameter in parameters.items()}
    return dict(type=name, options=options, lr=lrs, momentum=momenta if cycles_momentum else None, final=final)


def sparse_trajectory(options):
    weight = torch.nn.Parameter(weights()["w"])
    optimizer = torch.optim.SparseAdam([weight], **options)
    lrs = []
    for step in range(STEPS):
        lrs.append(optimizer.defaults["lr"] * (0.5 if step == 11 else 1))
        optimizer.param_groups[0]["lr"] = lrs[-1]
        rows = [row for row in range(SHAPES["w"][0]) if (row + step) % 3 == 0]
        weight.grad = torch.sparse_coo_tensor([rows], gradient(0, SHAPES["w"], step)[rows], SHAPES["w"])
        optimizer.step()
    options = {key: list(value) if isinstance(value, tuple) else value for key, value in options.items()}
    return dict(type="SparseAdam", sparse=True, options=options, lr=lrs, momentum=None,
                final={"w": weight.detach().flatten().tolist()})


def muon_trajectory(options):
    parameters = {key: torch.nn.Parameter(value) for key, value in weights().items()}
    matrices = [parameters["w"], torch.nn.Parameter(parameters["t"].detach().view(2, 6))]
    own = {key: value for key, value in options.items() if not key.startswith("adamw_")}
    muon = torch.optim.Muon(matrices, **own)
    lr = muon.defaults["lr"]
    adamw = torch.optim.AdamW([parameters["b"]], lr=options.get("adamw_lr", lr), weight_decay=0.0,
                              betas=tuple(options.get("adamw_betas", (0.9, 0.999))), eps=options.get("adamw_eps", 1e-8))
    rounded = torch.Tensor.bfloat16
    torch.Tensor.bfloat16 = torch.Tensor.clone
    lrs = []
    for step in range(STEPS):
        factor = 0.5 if step == 11 else 1
        lrs.append(lr * factor)
        for optimizer in (muon, adamw):
            optimizer.param_groups[0]["lr"] = optimizer.defaults["lr"] * factor
        for p, parameter in enumerate([*matrices, parameters["b"]]):
            parameter.grad = gradient(p, tuple(parameter.shape), step)
        muon.step()
        adamw.step()
    torch.Tensor.bfloat16 = rounded
    final = dict(zip("wtb", (p.detach().flatten().tolist() for p in [*matrices, parameters["b"]])))
    return dict(type="Muon", options=options, lr=lrs, momentum=None, final=final)


@functools.cache
def lamb_of_timm():
    """timm.optim.Lamb. timm's __init__ files import torchvision, which its optimizers do not need."""
    folder = pathlib.Path(importlib.util.find_spec("timm").submodule_search_locations[0])
    for name, path in (("timm", folder), ("timm.optim", folder / "optim")):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [str(path)]
    return importlib.import_module("timm.optim.lamb").Lamb


def lamb_trajectory(options, cycles_momentum):
    parameters = {key: torch.nn.Parameter(value) for key, value in weights().items()}
    own = {key: value for key, value in options.items() if key not in ("bias_correction", "min_coeff", "max_coeff")}
    own = dict(lr=1e-3, eps=1e-8, weight_decay=0.0) | own
    groups = [dict(params=[parameters["w"], parameters["t"]]), dict(params=[parameters["b"]], weight_decay=0.0)]
    if options["bias_correction"] == "moments":
        optimizer = lamb_of_timm()(groups, max_grad_norm=None, always_adapt=True, trust_clip=options["max_coeff"] == 1, **own)
    else:
        optimizer = torch_optimizer.Lamb(groups, clamp_value=1e9, debias=options["bias_correction"] == "step", **own)
    return steps_of(optimizer, "Lamb", options, parameters, cycles_momentum)


def rosenbrock(x):
    return (10 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def lbfgs_trajectory(options):
    parameters = {key: torch.nn.Parameter(value) for key, value in weights().items()}
    optimizer = torch.optim.LBFGS(parameters.values(), **options)

    def closure():
        optimizer.zero_grad()
        loss = rosenbrock(torch.cat([parameter.flatten() for parameter in parameters.values()]))
        loss.backward()
        return loss

    losses, lrs = [], []
    for step in range(5):
        lrs.append(optimizer.defaults["lr"] * (0.5 if step == 3 else 1))
        optimizer.param_groups[0]["lr"] = lrs[-1]
        losses.append(optimizer.step(closure).item())
    final = {key: parameter.detach().flatten().tolist() for key, parameter in parameters.items()}
    return dict(type="LBFGS", loss="rosenbrock", options=options, lr=lrs, momentum=None, losses=losses, final=final)


def main():
    cases = []
    for name, options in CASES:
        cases.append(trajectory(name, options, False))
        if name in MOMENTUM and options and ("betas" in options or options.get("momentum", 0) > 0):
            cases.append(trajectory(name, options, True))
    cases += [sparse_trajectory(options) for options in SPARSE]
    cases += [muon_trajectory(options) for options in MUON]
    cases += [lamb_trajectory(options, False) for options in LAMB]
    cases += [lamb_trajectory(LAMB[1], True)]
    cases += [lbfgs_trajectory(options) for options in LBFGS]
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


main()
