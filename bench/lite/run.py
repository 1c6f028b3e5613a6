#!/usr/bin/env python3
"""Overhead per step, compared with a bare loop: stretto's Lite, Lightning Fabric, Accelerate."""

import argparse
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

PEER = pathlib.Path(__file__).with_name("peer.py")


def peer_command(python, library, ranks):
    if ranks == 1:
        return [python, PEER, library]
    return [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks, PEER, library]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=pathlib.Path, default=measure.ROOT / "build/release/bench/lite_bench")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch, and lightning-fabric or accelerate")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    peers = [name for name, package in [("fabric", "lightning_fabric"), ("accelerate", "accelerate")]
             if subprocess.run([options.python, "-c", f"import {package}"], capture_output=True).returncode == 0]
    if not peers:
        sys.exit(f"{options.python} has neither lightning-fabric nor accelerate")
    for ranks in [1, 2]:
        ours, theirs = [], {name: [] for name in peers}
        for _ in range(options.rounds):
            ours.append(json.loads(measure.run([options.program, ranks]).out))
            for name in peers:
                out = measure.run(peer_command(options.python, name, ranks), env={"OMP_NUM_THREADS": "1"}).out
                theirs[name].append(json.loads(out.strip().splitlines()[-1]))
        print(f"bare loops, {ranks} rank(s), us per step: stretto {measure.spread([row['bare_us'] for row in ours])}, "
              f"torch {measure.spread([row['bare_us'] for rows in theirs.values() for row in rows])}")
        for name in peers:
            measure.print_row(f"step overhead, {ranks} rank(s)", "us", [row["overhead_us"] for row in ours], name,
                              [row["overhead_us"] for row in theirs[name]], higher_is_better=False)


if __name__ == "__main__":
    main()
