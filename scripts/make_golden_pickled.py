#!/usr/bin/env python3
"""Writes tests/golden/pickled/: the weights of tests/golden/bert/old_names as torch.save writes them.

Needs torch and safetensors (the files in the repository: torch 2.13):
    python3 scripts/make_golden_pickled.py

whole/    pytorch_model.bin: a state_dict with its _metadata
sharded/  pytorch_model.bin.index.json and two shards, of parameters
code/     pytorch_model.bin that runs a command when Python loads it
small/    pytorch_model.bin of every type, a transposed tensor, two views of one storage, a scalar and an empty tensor
"""
import collections
import json
import os
import pathlib

import torch
from safetensors.torch import load_file

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"
ROOT = GOLDEN / "pickled"
TYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]


class Code:
    def __reduce__(self):
        return os.system, ("touch executed",)


def save(value, *path):
    file = ROOT.joinpath(*path)
    file.parent.mkdir(parents=True, exist_ok=True)
    torch.save(value, file)


def main():
    weights = load_file(GOLDEN / "bert" / "old_names" / "model.safetensors")
    whole = collections.OrderedDict(weights)
    whole._metadata = {"": {"version": 1}}
    save(whole, "whole", "pytorch_model.bin")
    names = sorted(weights)
    shards = [names[: len(names) // 2], names[len(names) // 2 :]]
    files = ["pytorch_model-%05d-of-00002.bin" % (i + 1) for i in range(2)]
    for file, part in zip(files, shards):
        save({name: torch.nn.Parameter(weights[name], requires_grad=weights[name].is_floating_point()) for name in part}, "sharded", file)
    index = {"metadata": {}, "weight_map": {name: file for file, part in zip(files, shards) for name in part}}
    (ROOT / "sharded" / "pytorch_model.bin.index.json").write_text(json.dumps(index, indent=1) + "\n")
    numbers = torch.arange(6.0)
    small = {str(dtype).removeprefix("torch."): torch.tensor([0, 1, 2]).to(dtype) for dtype in TYPES}
    small |= {"transposed": numbers.reshape(2, 3).t(), "view": numbers[2:4], "scalar": torch.tensor(2.5), "empty": torch.zeros(0, 4)}
    save(small, "small", "pytorch_model.bin")
    save({"a": numbers, "b": Code()}, "code", "pytorch_model.bin")


if __name__ == "__main__":
    main()
