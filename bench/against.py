#!/usr/bin/env python3
"""Compares this build with another build of stretto, such as that of an earlier commit, alternately in one run.

Build the other commit in a clone of its own (make bench builds the programs), then:

    bench/against.py /other/clone/build/release --rounds 5
"""

import argparse
import json
import pathlib
import tempfile
import types

import measure

STEPS = {"AdamW 22.7 M": ("adamw_bench", [], "step_ms"), "AdamW, words by rows": ("adamw_bench", [], "sparse_step_ms"),
         "Lite step, 1 rank": ("lite_bench", [1], "lite_us"), "Lite step, 2 ranks": ("lite_bench", [2], "lite_us")}


SHARDED = ["zero1", "zero2", "fsdp"]


def compare_programs(builds, rounds):
    for work, (program, arguments, name) in STEPS.items():
        values = {build: [] for build in builds}
        for _ in range(rounds):
            for build in builds:
                command = [build / "bench" / program, *arguments]
                cores = None if arguments == [2] else measure.one_core()
                values[build].append(json.loads(measure.run(command, cores=cores).out)[name])
        measure.print_row(work, name.split("_")[-1], values[builds[0]], "the other build", values[builds[1]], False)


def compare_start(builds, rounds):
    start = measure.load_script("start")
    with tempfile.TemporaryDirectory(prefix="against-bench-") as temporary:
        recipe, _ = start.write_job(pathlib.Path(temporary))
        values = {build: [] for build in builds}
        for turn in range(rounds):
            for build in builds:
                output = pathlib.Path(temporary) / f"run-{turn}-{builds.index(build)}"
                command = [build / "bin/stretto", "train", recipe, "-N", 2, "--set", f"output={output}"]
                values[build].append(measure.seconds_until(command, "step 1/1"))
        measure.print_row("first step, 2 ranks", "s", values[builds[0]], "the other build", values[builds[1]], False)


def compare_training(builds, rounds, steps, only):
    train = measure.load_script("train")
    options = types.SimpleNamespace(encoder=measure.encoder(None), steps=steps, only=only)
    works = [(case.name, case, []) for case in train.CASES]
    works += [(f"{case.name} {strategy}", case, [f"training.strategy={strategy}"])
              for case in train.CASES if case.ranks == 2 for strategy in SHARDED]
    with tempfile.TemporaryDirectory(prefix="against-bench-") as temporary:
        options.train = measure.training_file(pathlib.Path(temporary), options.encoder)
        for name, case, settings in works:
            newer = case.shape == "bart-base" and not only  # the other build may not have the model
            if newer or (only and name not in only) or (not only and train.skipped(case, options)):
                continue
            values = {build: [] for build in builds}
            for turn in range(rounds):
                for build in builds:
                    folder = pathlib.Path(temporary) / f"{name}-{turn}-{builds.index(build)}".replace(" ", "-")
                    folder.mkdir()
                    if case.shape:
                        (folder / "config.json").write_text(json.dumps(train.SHAPES[case.shape]))
                    options.stretto = build / "bin/stretto"
                    outcome, records = train.run_stretto(case, options, folder, settings)
                    values[build].append((records[-1]["samples_per_second"], outcome.sum_pss_mb))
            for place, (unit, higher) in enumerate([("samples/s", True), ("MB per host", False)]):
                ours, others = ([value[place] for value in values[build]] for build in builds)
                measure.print_row(name, unit, ours, "the other build", others, higher)


def compare_tasks(builds, rounds, only):
    """Training of named entities and of question answering on one core; the recipes are this tree's, without what is not in the other."""
    for name, steps in (("ner", 40), ("qa", 20)):
        if only and name not in only:
            continue
        script = measure.load_script(name)
        with tempfile.TemporaryDirectory(prefix="against-bench-") as temporary:
            folder = pathlib.Path(temporary)
            found = script.data_files(folder)
            train = found[0] if name == "ner" else found["short questions"]
            for precision in measure.precisions(name):
                values = {build: [] for build in builds}
                for turn in range(rounds):
                    for build in builds:
                        output = folder / f"{precision}-{turn}-{builds.index(build)}"
                        settings = {"data.train": train, "data.cache": output / "cache", "model.path": measure.encoder(None),
                                    "output": output, "training.max_steps": steps, "training.precision": precision,
                                    "track.log_every": 10}
                        _, records = measure.stretto_train(build / "bin/stretto", script.RECIPE, settings)
                        values[build].append(records[-1]["samples_per_second"])
                measure.print_row(f"{name}, {precision}", "samples/s", values[builds[0]], "the other build", values[builds[1]], True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=pathlib.Path, help="the other build folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60, help="training steps per turn")
    parser.add_argument("--only", nargs="*", default=[], help="some of the training cases of bench/train/run.py, \"start\", \"ner\", \"qa\", or a case of "
                        "two ranks with a strategy: \"minilm-2-fp32 fsdp\"")
    options = parser.parse_args()
    measure.require_tools("taskset")
    builds = [measure.ROOT / "build/release", options.other.resolve()]
    if not options.only:
        compare_programs(builds, options.rounds)
    if not options.only or "start" in options.only:
        compare_start(builds, options.rounds)
    compare_training(builds, options.rounds, options.steps, options.only)
    compare_tasks(builds, options.rounds, options.only)


if __name__ == "__main__":
    main()
