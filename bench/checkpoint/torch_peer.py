"""torch_peer.py FOLDER REPEATS "SHAPE SHAPE ...": like checkpoint_bench, with torch.save and torch.load.

Saves as safely as stretto: a new file, fsync, rename, fsync of the folder. Loading ends when the values are in the tensors
that training uses, once with torch.load's defaults and once with a mapped file.
"""

import json
import os
import sys
import time

import torch


def make_state(shapes):
    return {f"{kind}.{number}": torch.randn([int(size) for size in shape.split("x")])
            for number, shape in enumerate(shapes.split())
            for kind in ["model", "optimizer.exp_avg", "optimizer.exp_avg_sq"]}


def save(state, path):
    partial = path + ".partial"
    with open(partial, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(partial, path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def load(target, path, **options):
    for name, tensor in torch.load(path, weights_only=True, **options).items():
        target[name].copy_(tensor)


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main(folder, repeats, shapes):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "state.pt")
    state, target = make_state(shapes), make_state(shapes)
    for _ in range(int(repeats)):
        times = {"save": seconds(lambda: save(state, path)),
                 "load": seconds(lambda: load(target, path)),
                 "mapped load": seconds(lambda: load(target, path, mmap=True))}
        print(json.dumps(times), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
