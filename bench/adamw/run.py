#!/usr/bin/env python3
"""AdamW steps over 22.7 M parameters on one core: stretto versus torch.optim.AdamW and versus a memory copy."""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

PEER = """
import json, statistics, time, torch
torch.set_num_threads(1)
times = {}
for name, options in {"default": {}, "fused": {"fused": True}}.items():
    parameters = [torch.randn(size, requires_grad=True) for size in [30522 * 384] + [1536 * 384] * 18 + [376_704]]
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, 1e-3)
    optimizer = torch.optim.AdamW(parameters, lr=5e-5, **options)
    seconds = []
    for repeat in range(23):
        start = time.perf_counter()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    times[name] = 1e3 * statistics.median(seconds[2:])
print(json.dumps(times))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=pathlib.Path, required=True, help="the program adamw_bench")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch (default: this one)")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    measure.require_tools("taskset")
    ours, theirs = [], []
    for turn in range(options.rounds):
        ours.append(json.loads(measure.run([options.program.resolve()], cores=measure.one_core()).out))
        theirs.append(json.loads(measure.run([options.python, "-c", PEER], cores=measure.one_core()).out))
        print(f"turn {turn + 1} of {options.rounds} done", file=sys.stderr)

    def of(records, name):
        return [record[name] for record in records]

    measure.print_row("AdamW 22.7 M", "GB/s", of(ours, "step_gb_s"), "copying", of(ours, "copy_gb_s"), True, 0.85)
    measure.print_row("AdamW 22.7 M", "ms", of(ours, "step_ms"), "torch default", of(theirs, "default"), False)
    measure.print_row("AdamW 22.7 M", "ms", of(ours, "step_ms"), "torch fused", of(theirs, "fused"), False)
    measure.print_row("AdamW, words by rows", "ms", of(ours, "sparse_step_ms"), "torch fused", of(theirs, "fused"), False,
                      None, 2)


if __name__ == "__main__":
    main()
