#!/usr/bin/env python3
"""Exact match and F1 on questions of SQuAD 2.0 that training has not seen, over seeds: stretto (recipes/qa.yaml on two ranks) and
transformers. The first nine articles of a file train, the other three evaluate; of each run the epoch with the best F1 counts."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

PEER = pathlib.Path(__file__).with_name("accuracy_peer.py")


def split(path, folder):
    content = json.loads(path.read_text(encoding="utf-8"))
    for name, articles in ("train", content["data"][:9]), ("dev", content["data"][9:]):
        (folder / f"{name}.json").write_text(json.dumps({**content, "data": articles}), encoding="utf-8")


def score(options, predictions, odds):
    out = subprocess.run([options.stretto, "score", "squad", options.output / "dev.json", predictions, "--na-prob", odds],
                         check=True, capture_output=True, text=True).stdout
    return json.loads(out)


def stretto_run(options, seed):
    run = options.output / f"stretto-{seed}"
    command = [options.stretto, "train", measure.ROOT / "recipes/qa.yaml", "-N", options.ranks]
    for name, value in {"data.train": options.output / "train.json", "data.validation": options.output / "dev.json", "data.test": "null",
                        "model.path": options.encoder, "training.seed": seed,
                        "training.precision": options.precision, "output": run}.items():
        command += ["--set", f"{name}={value}"]
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "STRETTO_DATA": str(options.output)})
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return max(({"exact": row["eval_exact"], "f1": row["eval_f1"]} for row in rows if "eval_f1" in row), key=lambda row: row["f1"])


def peer_run(options, seed):
    folder = options.output / f"transformers-{seed}"
    subprocess.run([options.python, PEER, "--train", options.output / "train.json", "--dev", options.output / "dev.json", "--encoder",
                    options.encoder, "--seed", str(seed), "--precision", options.precision, "--output", folder], check=True)
    return max((score(options, epoch / "predictions.json", epoch / "null_odds.json") for epoch in folder.iterdir()),
               key=lambda row: row["f1"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="a file in SQuAD's layout with twelve articles")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="a folder for the runs")
    parser.add_argument("--stretto", type=pathlib.Path, default=measure.ROOT / "build/release/bin/stretto")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch and transformers")
    parser.add_argument("--encoder", help="default: STRETTO_ENCODER, else the demo's")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 42])
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--only", choices=["stretto", "transformers"])
    options = parser.parse_args()
    options.encoder = measure.encoder(options.encoder)
    options.output.mkdir(parents=True, exist_ok=True)
    split(options.data, options.output)
    for name, run in ("stretto", stretto_run), ("transformers", peer_run):
        if options.only not in (None, name):
            continue
        rows = [run(options, seed) for seed in options.seeds]
        for seed, row in zip(options.seeds, rows):
            print(f"{name} seed {seed}: exact {row['exact']:.2f}, f1 {row['f1']:.2f}", flush=True)
        print(f"{name}: mean exact {statistics.mean(row['exact'] for row in rows):.2f}, f1 {statistics.mean(row['f1'] for row in rows):.2f}",
              flush=True)


if __name__ == "__main__":
    main()
