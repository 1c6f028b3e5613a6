#!/usr/bin/env python3
"""Samples/s of fine-tuning MiniLM on named entities (WNUT-17's training file), one core, fp32: stretto versus transformers with dynamic
padding and batches of similar lengths. Without STRETTO_DATA: generated sentences of scripts/make_entities.py."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

PEER = pathlib.Path(__file__).with_name("transformers_peer.py")
STEPS = 40


def data_files(folder):
    """(train, dev)."""
    real = pathlib.Path(os.environ.get("STRETTO_DATA", "")) / "wnut17"
    if (real / "wnut17train.conll").exists():
        return real / "wnut17train.conll", real / "emerging.dev.conll"
    print("STRETTO_DATA is not set: using generated sentences", file=sys.stderr)
    subprocess.run([sys.executable, measure.ROOT / "scripts/make_entities.py", folder / "data", "--rows", "3000"], check=True)
    return folder / "data/train.conll", folder / "data/dev.conll"


def stretto_turn(options, train, folder):
    settings = {"data.train": train, "data.validation": "null", "data.test": "null", "data.cache": folder / "cache",
                "model.path": options.encoder, "training.max_steps": STEPS, "evaluate.every": "never", "checkpoint.monitor": "null",
                "track.log_every": 10, "output": folder / "run", "resume": "false"}
    command = [options.stretto, "train", measure.ROOT / "recipes/ner.yaml", "-N", 1]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    measure.run(command, cores=measure.one_core(), env={"STRETTO_DATA": os.environ.get("STRETTO_DATA", "unset")})
    records = (folder / "run/metrics.jsonl").read_text().splitlines()
    (folder / "run/metrics.jsonl").unlink()
    return json.loads(records[-1])["samples_per_second"]


def peer_turn(options, train, dev):
    env = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    if measure.tcmalloc():
        env["LD_PRELOAD"] = measure.tcmalloc()
    outcome = measure.run([options.python, PEER, "--train", train, "--dev", dev, "--encoder", options.encoder, "--max-steps", STEPS],
                          cores=measure.one_core(), env=env)
    return json.loads(outcome.out.splitlines()[-1])["samples_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stretto", type=pathlib.Path, default=measure.ROOT / "build/release/bin/stretto")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch and transformers")
    parser.add_argument("--encoder", help="default: STRETTO_ENCODER, else the demo's")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.encoder = measure.encoder(options.encoder)
    measure.require_tools("taskset")
    with tempfile.TemporaryDirectory(prefix="ner-bench-") as temporary:
        folder = pathlib.Path(temporary)
        train, dev = data_files(folder)
        turns = [(stretto_turn(options, train, folder), peer_turn(options, train, dev)) for _ in range(options.rounds)]
    peer = "transformers + tcmalloc" if measure.tcmalloc() else "transformers"
    ours, theirs = zip(*turns)
    measure.print_row("named entities, MiniLM, fp32", "samples/s", ours, peer, theirs, True, 2.5)


if __name__ == "__main__":
    main()
