#!/usr/bin/env python3
"""Words/s of training the BiLSTM-CRF of recipes/tagger.yaml on one core (WNUT-17's training file): stretto versus Flair.

    run.py --flair-python PYTHON     a Python with flair 0.15 and a transformers before 5, such as a venv of its own; default: FLAIR_PYTHON

Without such a Python the row is skipped. Without STRETTO_DATA: generated sentences of scripts/make_entities.py.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

PEER = pathlib.Path(__file__).with_name("flair_peer.py")
STEPS = 20


def stretto_turn(options, train, folder):
    settings = {"data.train": train, "data.validation": "null", "data.test": "null", "data.cache": folder / "cache",
                "training.max_steps": STEPS + 1, "evaluate.every": "never",
                "scheduler": "{type: Constant}", "checkpoint.monitor": "null", "track.log_every": 1,
                "output": folder / "run", "resume": "false"}
    command = [options.stretto, "train", measure.ROOT / "recipes/tagger.yaml", "-N", 1]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    measure.run(command, cores=measure.one_core(), env={"STRETTO_DATA": os.environ.get("STRETTO_DATA", "unset")})
    records = (folder / "run/metrics.jsonl").read_text().splitlines()
    (folder / "run/metrics.jsonl").unlink()
    return json.loads(records[-1])["tokens_per_second"]


def peer_turn(options, train):
    env = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    if measure.tcmalloc():
        env["LD_PRELOAD"] = measure.tcmalloc()
    outcome = measure.run([options.flair_python, PEER, "--train", train, "--batches", STEPS], cores=measure.one_core(), env=env)
    return json.loads(outcome.out.splitlines()[-1])["words_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stretto", type=pathlib.Path, default=measure.ROOT / "build/release/bin/stretto")
    parser.add_argument("--flair-python", default=os.environ.get("FLAIR_PYTHON"))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if not options.flair_python:
        measure.print_skipped("BiLSTM-CRF", "no Python with Flair (bench/tagger/run.py --help)")
        return
    measure.require_tools("taskset")
    with tempfile.TemporaryDirectory(prefix="tagger-bench-") as temporary:
        folder = pathlib.Path(temporary)
        train, _ = measure.load_script("ner").data_files(folder)
        ours, theirs = zip(*[(stretto_turn(options, train, folder), peer_turn(options, train)) for _ in range(options.rounds)])
    measure.print_row("BiLSTM-CRF, fp32", "words/s", ours, "Flair + tcmalloc" if measure.tcmalloc() else "Flair", theirs, True, 2.5)


if __name__ == "__main__":
    main()
