#!/usr/bin/env python3
"""Question answering on one core, fp32, MiniLM: building samples from SQuAD's files as run_qa.py does, and samples/s of fine-tuning,
stretto versus transformers with dynamic padding and batches of similar lengths. Without STRETTO_DATA: generated questions of
scripts/make_entities.py."""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

PEER = pathlib.Path(__file__).with_name("transformers_peer.py")
STEPS = 20
UNITS = {"ms": 1e-3, "s": 1.0, "us": 1e-6}


def data_file(folder):
    real = pathlib.Path(os.environ.get("STRETTO_DATA", "")) / "squad2/train_dev.json"
    if real.exists():
        return real
    print("STRETTO_DATA is not set: using generated questions", file=sys.stderr)
    subprocess.run([sys.executable, measure.ROOT / "scripts/make_entities.py", folder / "data", "--rows", "3000"], check=True)
    return folder / "data/train.json"


def stretto_turn(options, train, folder):
    """Questions/s of building samples, and samples/s of training."""
    settings = {"data.train": train, "data.validation": "null", "data.test": "null", "data.cache": folder / "cache",
                "model.path": options.encoder, "training.max_steps": STEPS + 1, "evaluate.every": "never", "checkpoint.monitor": "null",
                "track.log_every": 1, "output": folder / "run", "resume": "false"}
    command = [options.stretto, "train", measure.ROOT / "recipes/qa.yaml", "-N", 1]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    outcome = measure.run(command, cores=measure.one_core(), env={"STRETTO_DATA": os.environ.get("STRETTO_DATA", "unset")})
    count, took, unit = re.search(r"tokenised .* \((\d+) questions\) in ([0-9.]+) ?(ms|us|s)", outcome.err + outcome.out).groups()
    records = (folder / "run/metrics.jsonl").read_text().splitlines()
    shutil.rmtree(folder / "run")
    shutil.rmtree(folder / "cache")
    return int(count) / (float(took) * UNITS[unit]), json.loads(records[-1])["samples_per_second"]


def peer_turn(options, train):
    env = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    if measure.tcmalloc():
        env["LD_PRELOAD"] = measure.tcmalloc()
    outcome = measure.run([options.python, PEER, "--train", train, "--encoder", options.encoder, "--steps", STEPS],
                          cores=measure.one_core(), env=env)
    result = json.loads(outcome.out.splitlines()[-1])
    return result["questions_per_second"], result["samples_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stretto", type=pathlib.Path, default=measure.ROOT / "build/release/bin/stretto")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch and transformers")
    parser.add_argument("--encoder", help="default: STRETTO_ENCODER, else the demo's")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.encoder = measure.encoder(options.encoder)
    measure.require_tools("taskset")
    with tempfile.TemporaryDirectory(prefix="qa-bench-") as temporary:
        folder = pathlib.Path(temporary)
        train = data_file(folder)
        turns = [(*stretto_turn(options, train, folder), *peer_turn(options, train)) for _ in range(options.rounds)]
    building, training, their_building, their_training = zip(*turns)
    peer = "transformers + tcmalloc" if measure.tcmalloc() else "transformers"
    measure.print_row("samples of questions", "questions/s", building, "run_qa's preprocessing", their_building, True, 5)
    measure.print_row("questions, MiniLM, fp32", "samples/s", training, peer, their_training, True, 2.5)


if __name__ == "__main__":
    main()
