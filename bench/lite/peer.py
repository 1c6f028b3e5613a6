#!/usr/bin/env python3
"""The overhead of Lightning Fabric and Accelerate: microseconds per step of a model with one parameter.

Each is compared, alternately, with a bare loop over torch's DistributedDataParallel (on one rank: over the module itself).
Use torchrun for several ranks. Prints a JSON object.
"""

import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        return (x * self.factor).sum()


def microseconds(steps, step):
    start = time.perf_counter()
    for _ in range(steps):
        step()
    return (time.perf_counter() - start) / steps * 1e6


def make_step(model, optimizer, backward):
    x = torch.ones(1)

    def step():
        optimizer.zero_grad()
        backward(model(x))
        optimizer.step()
    return step


def bare():
    model = Scale()
    if dist.is_initialized():
        model = torch.nn.parallel.DistributedDataParallel(model)
    return make_step(model, torch.optim.SGD(model.parameters(), lr=1e-6), lambda loss: loss.backward())


def fabric():
    from lightning_fabric import Fabric
    world = int(os.environ.get("WORLD_SIZE", 1))
    library = Fabric(accelerator="cpu", devices=world, strategy="ddp" if world > 1 else "auto")
    library.launch()
    model = Scale()
    model, optimizer = library.setup(model, torch.optim.SGD(model.parameters(), lr=1e-6))
    return make_step(model, optimizer, library.backward)


def accelerate():
    from accelerate import Accelerator
    library = Accelerator(cpu=True)
    model = Scale()
    model, optimizer = library.prepare(model, torch.optim.SGD(model.parameters(), lr=1e-6))
    return make_step(model, optimizer, library.backward)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", choices=["fabric", "accelerate"])
    parser.add_argument("--steps", type=int, default=1000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    theirs = {"fabric": fabric, "accelerate": accelerate}[options.library]()
    plain = bare()
    turns = [(microseconds(options.steps, theirs), microseconds(options.steps, plain)) for _ in range(11)][1:]
    with_library, without = (statistics.median(times) for times in zip(*turns))
    if int(os.environ.get("RANK", 0)) == 0:
        print(json.dumps({"library": options.library, "ranks": int(os.environ.get("WORLD_SIZE", 1)),
                          "us": with_library, "bare_us": without, "overhead_us": with_library - without}))


if __name__ == "__main__":
    main()
