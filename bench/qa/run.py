#!/usr/bin/env python3
"""Question answering with MiniLM on one core, stretto versus transformers: questions/s of building samples from SQuAD's files as run_qa.py
does; samples/s of training in batches padded to the longest sample, of any or of similar lengths, with fused AdamW; questions/s of
evaluation and of prediction, with stretto's start but not the peer's; time from the command to the end of the first step. Without
STRETTO_DATA, and in the rows of short contexts: generated questions of scripts/make_entities.py."""

import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

PEER = pathlib.Path(__file__).with_name("transformers_peer.py")
RECIPE = measure.ROOT / "recipes/qa.yaml"
STEPS, EVALUATED = 10, 200
UNITS = {"ms": 1e-3, "s": 1.0, "us": 1e-6}


def data_files(folder):
    """Work -> file in SQuAD's layout."""
    files = {"short questions": measure.made_entities(folder) / "train.json"}
    real = pathlib.Path(os.environ.get("STRETTO_DATA", "")) / "squad2/train_dev.json"
    return {"questions": real, **files} if real.exists() else files


def write_dev(path, folder):
    """The first questions of a file, as a file of its own, and as a line each."""
    data, lines, left = [], [], EVALUATED
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            asked = paragraph["qas"][:left]
            left -= len(asked)
            if asked:
                data.append({"title": article["title"], "paragraphs": [{"context": paragraph["context"], "qas": asked}]})
                lines += ["\t".join(" ".join(text.split()) for text in (qa["question"], paragraph["context"])) for qa in asked]
    dev, texts = folder / "dev.json", folder / "questions.tsv"
    dev.write_text(json.dumps({"version": "v2.0", "data": data}), encoding="utf-8")
    texts.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return dev, texts, len(lines)


def settings(options, train, folder):
    return {"data.train": train, "data.cache": folder / "cache", "model.path": options.encoder, "output": folder / "run"}


def stretto_turn(options, train, folder, precision):
    """Questions/s of building samples, and samples/s of training."""
    shutil.rmtree(folder / "cache", ignore_errors=True)
    steps = {"training.max_steps": STEPS + 1, "training.precision": precision, "track.log_every": 1}
    outcome, records = measure.stretto_train(options.stretto, RECIPE, {**settings(options, train, folder), **steps})
    count, took, unit = re.search(r"tokenised .* \((\d+) questions\) in ([0-9.]+) ?(ms|us|s)", outcome.err + outcome.out).groups()
    return int(count) / (float(took) * UNITS[unit]), records[-1]["samples_per_second"]


def training(options, work, train, folder, precision):
    def theirs(*how):
        return measure.python_peer(options.python, PEER, "--train", train, "--encoder", options.encoder, "--steps", STEPS,
                                   "--precision", precision, *how)

    turns = [(*stretto_turn(options, train, folder, precision), theirs("--any-lengths"), theirs()) for _ in range(options.rounds)]
    building, own, any_lengths, alike = zip(*turns)
    if precision == "fp32":
        measure.print_row(f"samples of {work}", "questions/s", building, "run_qa's preprocessing",
                          [result["questions_per_second"] for result in alike], True, 5)
    for how, results in ([], any_lengths), (["similar lengths"], alike):
        measure.print_row(f"{work}, {precision}", "samples/s", own, measure.peer_name(*how),
                          [result["samples_per_second"] for result in results], True, 2.5)


def evaluation(options, work, train, folder, precisions):
    """With the model of the last training."""
    dev, texts, count = write_dev(train, folder)
    model = folder / "run/model"

    def ours(precision):
        cache = tempfile.mkdtemp(dir=folder)
        return count / measure.run([options.stretto, "test", RECIPE, "-N", 1, f"data.train={train}", "data.validation=null",
                                    f"data.test={dev}", f"data.cache={cache}", f"output={folder}/run",
                                    f"training.precision={precision}"], cores=measure.one_core()).seconds

    def theirs(*arguments):
        return measure.python_peer(options.python, PEER, "--dev", dev, "--encoder", model, *arguments)

    def compare(kind, precision, own_turn, *arguments):
        arguments = ["--precision", precision, *arguments]
        own, any_lengths, alike = zip(*[(own_turn(), theirs(*arguments, "--any-lengths"), theirs(*arguments)) for _ in range(options.rounds)])
        for how, peer in ("as run_qa", any_lengths), ("sorted by length", alike):
            measure.print_row(f"{work}, {kind}, {precision}", "questions/s", own, measure.peer_name(how),
                              [result["questions_per_second"] for result in peer], True, 3)
        return alike[0]

    for precision in precisions:
        peer = compare("evaluation", precision, lambda: ours(precision))
        f1 = json.loads((folder / "run/test_results.json").read_text())["f1"]
        print(f"F1 of the same model: stretto {f1:.2f}, transformers {peer['f1']:.2f}")
        compare("prediction", precision, lambda: measure.stretto_predict(options.stretto, model, texts, "--precision", precision),
                "--output", folder / "answers.jsonl")


def main():
    options = measure.arguments(__doc__).parse_args()
    options.encoder = measure.encoder(options.encoder)
    measure.require_tools("taskset")
    with tempfile.TemporaryDirectory(prefix="qa-bench-") as temporary:
        folder = pathlib.Path(temporary)
        for work, train in data_files(folder).items():
            precisions = measure.precisions(work)
            for precision in precisions:
                training(options, work, train, folder, precision)
            evaluation(options, work, train, folder, precisions)
            measure.first_step(options, work, RECIPE, settings(options, train, folder))


if __name__ == "__main__":
    main()
