#!/usr/bin/env python3
"""Runs the benchmarks one after the other and prints one table of all ratios at the end.

Names as arguments run only these; --quick runs one round of each, without a spread.
"""

import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

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


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def main():
    names = [argument for argument in sys.argv[1:] if argument != "--quick"]
    rounds = ["--rounds", "1"] if "--quick" in sys.argv else []
    wanted = names or [name for name in BENCHMARKS if name not in BY_NAME]
    unknown = set(wanted) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"no such benchmark: {', '.join(sorted(unknown))}; expected any of {', '.join(BENCHMARKS)}")
    print(f"{processor()}, {os.cpu_count()} cores; results are valid only on an otherwise idle machine")
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as results:
        environment = {**os.environ, "STRETTO_BENCH_RESULTS": results.name}
        failed = [name for name in wanted
                  if subprocess.run([sys.executable, str(FOLDER / name / "run.py"), *map(str, BENCHMARKS[name]), *rounds],
                                    env=environment).returncode != 0]
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
