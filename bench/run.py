#!/usr/bin/env python3
"""Runs the benchmarks one after the other and prints one table of all ratios at the end."""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

import measure

FOLDER = pathlib.Path(__file__).resolve().parent
PROGRAMS = FOLDER.parent / "build/release/bench"

# Folder of the benchmark -> its arguments; each prints its rows with measure.print_row.
BENCHMARKS = {
    "start": [],
    "tokenize": [],
    "corpora": [],
    "language_models": [],
    "generate": [],
    "checkpoint": ["--program", PROGRAMS / "checkpoint_bench"],
    "adamw": ["--program", PROGRAMS / "adamw_bench"],
    "collectives": ["--program", PROGRAMS / "collectives_bench"],
    "optimizers": ["--program", PROGRAMS / "optimizers_bench"],
    "trainer": ["--program", PROGRAMS / "trainer_bench"],
    "lite": ["--program", PROGRAMS / "lite_bench"],
    "train": [],
    "ner": [],
    "qa": [],
    "tagger": [],
    "sharding": [],
    "parallel": [],
    "hosts": ["--program", PROGRAMS / "collectives_bench"],
    "large": [],
}
BY_NAME = {"large"}  # run only if named: they take long and much memory

# Folder of the benchmark -> what --quick adds.
QUICK = {
    "corpora": ["--megabytes", 10],
    "language_models": ["--only", "steps", "--steps", 4],
    "checkpoint": ["--repeats", 2, "--steps", 30],
    "train": ["--only", "minilm-1-PRECISION", "minilm-2-PRECISION", "--steps", 20, "--seconds", 8],
    "sharding": ["--only", "minilm-2-PRECISION", "--steps", 20, "--seconds", 8],
    "parallel": ["--only", "llama", "--steps", 4],
    "hosts": ["--steps", 20, "--seconds", 8],
}


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def arguments_of(name, options):
    arguments = [*BENCHMARKS[name], *(["--rounds", options.rounds] if options.rounds else [])]
    if options.quick:
        arguments += ["--rounds", 1, *QUICK.get(name, [])]
    return [str(argument).replace("PRECISION", measure.fastest_precision()) for argument in arguments]


def rounds(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rounds from 1")
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(BENCHMARKS)}; default: all but {', '.join(BY_NAME)}")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--rounds", type=rounds, metavar="N", help="turns of each program; default: several, which give a spread")
    how.add_argument("--quick", action="store_true", help="one round of the smallest cases, in one precision")
    options = parser.parse_args()
    wanted = options.names or [name for name in BENCHMARKS if name not in BY_NAME]
    unknown = set(wanted) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"no such benchmark: {', '.join(sorted(unknown))}; expected any of {', '.join(BENCHMARKS)}")
    print(f"{processor()}, {os.cpu_count()} cores; results are valid only on an otherwise idle machine")
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as results:
        environment = {**os.environ, "STRETTO_BENCH_RESULTS": results.name}
        if options.quick:
            environment["STRETTO_BENCH_PRECISIONS"] = measure.fastest_precision()
        failed = [name for name in wanted
                  if subprocess.run([sys.executable, str(FOLDER / name / "run.py"), *arguments_of(name, options)], env=environment).returncode != 0]
        rows = [json.loads(line) for line in results]
    print("\n| work | unit | stretto | peer | peer's | ratio | must | goal |\n|---|---|---|---|---|---|---|---|")
    for row in rows:
        if "skipped" in row:
            print(f"| {row['work']} | skipped: {row['skipped']} | | | | | | |")
            continue
        must = "" if row["must"] is None else f"{row['must']:.3g}x {'met' if row['ratio'] >= row['must'] else 'MISSED'}"
        goal = "" if row["goal"] is None else f"{row['goal']:.3g}x"
        print(f"| {row['work']} | {row['unit']} | {row['stretto']} | {row['peer']} | {row['peer_value']} | {row['ratio']:.2f} | "
              f"{must} | {goal} |")
    if failed:
        sys.exit(f"these benchmarks failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
