#!/usr/bin/env python3
"""Saving and loading a training state: stretto versus torch.save and torch.load, alternately; and what saving costs a training.

Both write to the same disk, and for both the state is on disk when save returns. Loading reads what was just written, from
the page cache: it measures the programs, not the disk. stretto verifies checksums while it loads.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

PEER = pathlib.Path(__file__).with_name("torch_peer.py")


def minilm_shapes(layers):
    """Shapes of the parameters of MiniLM (hidden size 384); 6 layers have 22.7 million."""
    layer = ["384x384", "384"] * 4 + ["384"] * 4 + ["1536x384", "1536", "384x1536", "384"]
    return ["30522x384", "512x384", "2x384", "384", "384"] + layer * layers + ["384x384", "384"]


def parameters(shapes):
    total = 0
    for shape in shapes:
        size = 1
        for axis in shape.split("x"):
            size *= int(axis)
        total += size
    return total


def turn_of(command, folder, options):
    shutil.rmtree(folder, ignore_errors=True)
    done = subprocess.run([str(word) for word in command] + [str(folder), str(options.repeats), " ".join(options.shapes)],
                          stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]} ended with {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def values(records, name):
    return [record[name] for record in records if name in record]


def while_training(options):
    """Samples per second of MiniLM on two ranks that save every 20 steps, the last time ten steps before the end, and of ones that
    do not save."""
    train = measure.load_script("train")
    case = train.Case("minilm, 2 ranks, fp32", 2, "fp32", 32, [])
    saving, plain = [], []
    with tempfile.TemporaryDirectory(prefix="checkpoint-bench-", dir=options.folder) as temporary:
        options.train = measure.training_file(pathlib.Path(temporary), options.encoder)
        for turn in range(options.rounds):
            for speeds, settings in ((plain, ["checkpoint.every=never"]), (saving, ["checkpoint.every=20"])):
                folder = pathlib.Path(temporary) / f"{len(speeds)}-{settings[0][-2:]}"
                folder.mkdir()
                speeds.append(train.run_stretto(case, options, folder, settings)[1][-1]["samples_per_second"])
                shutil.rmtree(folder)
            print(f"training: turn {turn + 1} of {options.rounds} done", file=sys.stderr)
    measure.print_row(f"{case.name}, saving every 20 steps", "samples/s", saving, "without saving", plain, True, 0.99)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True, help="the program checkpoint_bench")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch (default: this one)")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("."), help="a folder on the disk to measure")
    parser.add_argument("--rounds", type=int, default=4, help="turns of each program")
    parser.add_argument("--repeats", type=int, default=5, help="saves and loads in a turn")
    parser.add_argument("--stretto", type=pathlib.Path, default=measure.ROOT / "build/release/bin/stretto")
    parser.add_argument("--encoder", help="default: STRETTO_ENCODER, else the demo's")
    parser.add_argument("--steps", type=int, default=90, help="of a training")
    parser.add_argument("--layers", type=int, default=6, help="fewer make a smaller state")
    options = parser.parse_args()
    options.shapes = minilm_shapes(options.layers)
    options.encoder = measure.encoder(options.encoder)

    ours, theirs = [], []
    with tempfile.TemporaryDirectory(prefix="checkpoint-bench-", dir=options.folder) as temporary:
        for turn in range(options.rounds):
            ours += turn_of([options.program.resolve()], pathlib.Path(temporary) / "stretto", options)
            theirs += turn_of([options.python, PEER], pathlib.Path(temporary) / "torch", options)
            print(f"turn {turn + 1} of {options.rounds} done", file=sys.stderr)
    count = parameters(options.shapes)
    print(f"{count / 1e6:.1f} M parameters, {3 * 4 * count / 2**20:.0f} MiB; medians in seconds of "
          f"{options.rounds * options.repeats} each")
    for name, ours_of in [("save", "save"), ("load", "load"), ("mapped load", "load")]:
        measure.print_row(f"checkpoint {name}", "s", values(ours, ours_of), "torch", values(theirs, name), False, 1)
    print(f"an asynchronous save blocks training for "
          f"{statistics.median(values(ours, 'asynchronous save')):.3f} s")
    while_training(options)


if __name__ == "__main__":
    main()
