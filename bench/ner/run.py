#!/usr/bin/env python3
"""Named entities with MiniLM on one core (WNUT-17), stretto versus transformers: samples/s of training in batches padded to the longest
sample, of any or of similar lengths, with fused AdamW; sentences/s of evaluation and of prediction, with stretto's start but not the
peer's; time from the command to the end of the first step. Without STRETTO_DATA: generated sentences of scripts/make_entities.py."""

import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

PEER = pathlib.Path(__file__).with_name("transformers_peer.py")
RECIPE = measure.ROOT / "recipes/ner.yaml"
STEPS = 40


def data_files(folder):
    """(train, dev)."""
    real = pathlib.Path(os.environ.get("STRETTO_DATA", "")) / "wnut17"
    if (real / "wnut17train.conll").exists():
        return real / "wnut17train.conll", real / "emerging.dev.conll"
    print("STRETTO_DATA is not set: using generated sentences", file=sys.stderr)
    made = measure.made_entities(folder)
    return made / "train.conll", made / "dev.conll"


def settings(options, train, folder):
    return {"data.train": train, "data.cache": folder / "cache", "model.path": options.encoder, "output": folder / "run"}


def training(options, train, dev, folder, precision):
    def ours():
        steps = {"training.max_steps": STEPS, "training.precision": precision, "track.log_every": 10}
        return measure.stretto_train(options.stretto, RECIPE, {**settings(options, train, folder), **steps})[1][-1]["samples_per_second"]

    def theirs(*how):
        return measure.python_peer(options.python, PEER, "--train", train, "--dev", dev, "--encoder", options.encoder, "--max-steps",
                                   STEPS, "--precision", precision, *how)["samples_per_second"]

    turns = [(ours(), theirs("--any-lengths"), theirs()) for _ in range(options.rounds)]
    own, any_lengths, alike = zip(*turns)
    measure.print_row(f"named entities, {precision}", "samples/s", own, measure.peer_name(), any_lengths, True, 2.5)
    measure.print_row(f"named entities, {precision}", "samples/s", own, measure.peer_name("similar lengths"), alike, True, 2.5)


def train_model(options, train, folder):
    steps = {"training.epochs": 1, "training.precision": "bf16" if measure.has_bf16() else "fp32"}
    measure.stretto_train(options.stretto, RECIPE, {**settings(options, train, folder), **steps})


def evaluation(options, train, dev, folder, precision):
    count = sum(1 for block in dev.read_text(encoding="utf-8").split("\n\n") if block.strip())
    def ours():
        cache = tempfile.mkdtemp(dir=folder)
        command = [options.stretto, "test", RECIPE, "-N", 1, f"data.train={train}", f"data.validation=null", f"data.test={dev}",
                   f"data.cache={cache}", f"output={folder}/run", f"training.precision={precision}"]
        return count / measure.run(command, cores=measure.one_core()).seconds

    def theirs(*how):
        return measure.python_peer(options.python, PEER, "--dev", dev, "--encoder", folder / "run/model", "--precision", precision, *how)

    own, any_lengths, alike = zip(*[(ours(), theirs("--any-lengths"), theirs()) for _ in range(options.rounds)])
    f1 = json.loads((folder / "run/test_results.json").read_text())["overall_f1"]
    print(f"F1 of the same model: stretto {f1:.4f}, transformers {alike[0]['f1']:.4f}")
    for how, peer in ("as run_ner", any_lengths), ("sorted by length", alike):
        measure.print_row(f"named entities, evaluation, {precision}", "samples/s", own, measure.peer_name(how),
                          [result["samples_per_second"] for result in peer], True, 3)


def prediction(options, sentences, folder, precision):
    texts, model = folder / "sentences.txt", folder / "run/model"
    texts.write_text("\n".join(sentences) + "\n", encoding="utf-8")

    def theirs(*how):
        return measure.python_peer(options.python, measure.ROOT / "bench/pipeline_peer.py", "token-classification", "--model", model, "--input",
                                   texts, "--output", folder / "predicted.jsonl", "--precision", precision, *how)["texts_per_second"]

    own, single, batched = zip(*[(measure.stretto_predict(options.stretto, model, texts, "--precision", precision), theirs("--batch-size", 1),
                                  theirs()) for _ in range(options.rounds)])
    for how, peer in ("pipeline", single), ("pipeline in batches", batched):
        measure.print_row(f"named entities, prediction, {precision}", "texts/s", own, measure.peer_name(how), peer, True, 3)


def main():
    options = measure.arguments(__doc__).parse_args()
    options.encoder = measure.encoder(options.encoder)
    measure.require_tools("taskset")
    with tempfile.TemporaryDirectory(prefix="ner-bench-") as temporary:
        folder = pathlib.Path(temporary)
        train, dev = data_files(folder)
        precisions = measure.precisions("named entities")
        for precision in precisions:
            training(options, train, dev, folder, precision)
        train_model(options, train, folder)
        for precision in precisions:
            evaluation(options, train, dev, folder, precision)
        sentences = [" ".join(line.split()[0] for line in block.splitlines() if line.split())
                 for block in dev.read_text(encoding="utf-8").split("\n\n") if block.strip()]
        for precision in precisions:
            prediction(options, sentences, folder, precision)
        measure.first_step(options, "named entities", RECIPE, settings(options, train, folder))


if __name__ == "__main__":
    main()
