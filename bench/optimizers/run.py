#!/usr/bin/env python3
"""A step of each optimizer over 22.7 M parameters on one core: stretto versus torch.optim (default and fused) and a memory copy."""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

PEER = """
import json, statistics, sys, time, torch
torch.set_num_threads(1)
result = {}
for name in sys.argv[1:]:
    for way in ["default", "fused"]:
        parameters = [torch.randn(shape, requires_grad=True)
                      for shape in [(30522, 384)] + [(1536, 384)] * 18 + [(376_704,)]]
        for parameter in parameters:
            parameter.grad = torch.full_like(parameter, 1e-3)
        try:
            optimizer = getattr(torch.optim, name)(parameters, lr=5e-5, **({"fused": True} if way == "fused" else {}))
        except (TypeError, RuntimeError):
            continue
        seconds = []
        for repeat in range(8):
            start = time.perf_counter()
            optimizer.step()
            seconds.append(time.perf_counter() - start)
        result.setdefault(name, {})[way] = 1e3 * statistics.median(seconds[1:])
print(json.dumps(result))
"""

# At least three times torch's default where that makes many passes over memory.
MUSTS = {name: 3 for name in ["Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Adafactor"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=pathlib.Path, required=True, help="the program optimizers_bench")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch (default: this one)")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    measure.require_tools("taskset")
    ours, theirs = [], []
    for turn in range(options.rounds):
        ours.append(json.loads(measure.run([options.program.resolve()], cores=measure.one_core()).out))
        names = list(ours[0]["steps"])
        theirs.append(json.loads(measure.run([options.python, "-c", PEER, *names], cores=measure.one_core()).out))
        print(f"turn {turn + 1} of {options.rounds} done", file=sys.stderr)
    copying = [record["copy_gb_s"] for record in ours]
    for name in ours[0]["steps"]:
        steps = [record["steps"][name] for record in ours]
        measure.print_row(f"{name} 22.7 M", "GB/s", [step["gb_s"] for step in steps], "copying", copying, True, 0.85)
        for way, must in [("default", MUSTS.get(name)), ("fused", 0.95)]:
            if all(way in record.get(name, {}) for record in theirs):
                measure.print_row(f"{name} 22.7 M", "ms", [step["ms"] for step in steps], f"torch {way}",
                                  [record[name][way] for record in theirs], False, must)


if __name__ == "__main__":
    main()
