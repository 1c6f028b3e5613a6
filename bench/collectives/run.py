#!/usr/bin/env python3
"""Reduction of gradients over the ranks of one host: stretto's shared memory versus Gloo, alternately in one program."""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

# Bytes -> required and desired speed-up over Gloo.
WANTED = {4 << 10: (None, None), 64 << 10: (20, 50), 1 << 20: (5, 10), 25 << 20: (5, 10), 100 << 20: (4, 8)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stretto", type=pathlib.Path, default=measure.ROOT / "build/release/bin/stretto")
    parser.add_argument("--program", type=pathlib.Path, required=True, help="the program collectives_bench")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    outcome = measure.run([options.stretto, "launch", "-N", options.ranks, "--", options.program.resolve(),
                           options.rounds])
    rounds = [json.loads(line) for line in outcome.out.splitlines() if line.startswith("{")]
    for size in sorted({record["bytes"] for record in rounds}):
        ours = [record for record in rounds if record["bytes"] == size]
        gloo = [record["gloo"] for record in ours]
        name = f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
        must, goal = WANTED[size] if options.ranks == 2 else (None, None)
        measure.print_row(f"all-reduce {name}, {options.ranks} ranks", "ms", [record["in place"] for record in ours], "Gloo",
                          gloo, False, must, goal)
        measure.print_row(f"all-reduce {name}, copied in and out", "ms", [record["staged"] for record in ours], "Gloo",
                          gloo, False)


if __name__ == "__main__":
    main()
