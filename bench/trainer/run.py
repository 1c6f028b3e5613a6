#!/usr/bin/env python3
"""Overhead of a trainer per step, compared with a bare loop: stretto's Trainer, Accelerate, Lightning's Trainer; and of records of
every step for three trackers, compared with a step of MiniLM."""

import argparse
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

PEER = pathlib.Path(__file__).with_name("peer.py")
MINILM_STEP_US = 90_000  # of 32 samples on one core in bf16, the fastest that bench/train has measured


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=pathlib.Path, required=True, help="the program trainer_bench")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch, accelerate and pytorch-lightning")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    peers = [name for name, package in [("accelerate", "accelerate"), ("lightning", "pytorch_lightning")]
             if subprocess.run([options.python, "-c", f"import {package}"], capture_output=True).returncode == 0]
    ours, theirs = [], {name: [] for name in peers}
    for turn in range(options.rounds):
        ours.append(json.loads(measure.run([options.program.resolve()], cores=measure.one_core()).out.splitlines()[-1]))
        for name in peers:
            out = measure.run([options.python, PEER, name], cores=measure.one_core(), env={"OMP_NUM_THREADS": "1"}).out
            theirs[name].append(json.loads(out.strip().splitlines()[-1]))
        print(f"turn {turn + 1} of {options.rounds} done", file=sys.stderr)
    print(f"bare loops, us per step: stretto {measure.spread([row['bare_us'] for row in ours])}, "
          f"torch {measure.spread([row['bare_us'] for rows in theirs.values() for row in rows])}")
    for name in ["accelerate", "lightning"]:
        if name not in peers:
            measure.print_skipped(f"trainer overhead against {name}", f"{options.python} has no {name}")
            continue
        measure.print_row("trainer overhead per step", "us", [row["overhead_us"] for row in ours], name,
                          [row["overhead_us"] for row in theirs[name]], False, 10)
    measure.print_row("records for 3 trackers per step", "us", [row["tracking_us"] for row in ours],
                      "1 % of a step of MiniLM", [MINILM_STEP_US / 100], False, 1)


if __name__ == "__main__":
    main()
