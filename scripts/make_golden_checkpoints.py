#!/usr/bin/env python3
"""Writes tests/golden/checkpoints/: checkpoints of small runs, and the losses of the steps that followed.

    python3 scripts/make_golden_checkpoints.py BUILD_FOLDER

Later versions must resume these checkpoints and reproduce these losses, so use this only to add cases; it does not overwrite
existing ones.

model/, train.tsv, dev.tsv   a BERT of one layer x 16 with dropout 0.1, and 37 and 11 rows of text: 5 steps per epoch
<case>.yaml                  the recipe; its paths are relative to this folder
<case>/step-00000003/        the checkpoint of 2 ranks in the middle of the first of 3 epochs
<case>/metrics.jsonl         what the uninterrupted run logged in all 15 steps, without timings
lite_<case>/step-00000001/   from `lite_laws saved_<case> 2`, which computes the expected results itself
"""

import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "checkpoints"
WORDS = {"1": "good fine bright lively warm witty".split(), "0": "bad dull bleak stale cold clumsy".split()}
OTHER_WORDS = "the film a story is was and with its plot of scene end cast . ,".split()
MODEL = {"model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
         "intermediate_size": 24, "max_position_embeddings": 20, "hidden_dropout_prob": 0.1,
         "attention_probs_dropout_prob": 0.1, "initializer_range": 0.2}
RECIPE = """\
model: {config: model/config.json}
tokenizer: {path: model}
data: {train: train.tsv, validation: dev.tsv, max_length: 18, cache: cache}
training:
  epochs: 3
  global_batch_size: 8
  grad_accumulation_steps: 2
  max_grad_norm: 1.0
  precision: %(precision)s
  device: cpu
  seed: 11
optimizer: %(optimizer)s
scheduler: {type: LinearWithWarmup, num_warmup_steps: 4}
checkpoint: {every: 3, keep_last: 0}
evaluate: {batch_size: 4}
track: {log_every: 1, progress: line}
output: run
"""
CASES = {
    "adamw_fp32": {"precision": "fp32", "optimizer": "{type: AdamW, lr: 2.0e-2, weight_decay: 0.01}"},
    "sgd_bf16": {"precision": "bf16", "optimizer": "{type: SGD, lr: 1.0e-1, momentum: 0.9, weight_decay: 0.01}"},
}
LITE_CASES = ["own", "torch"]
TIMINGS = {"time", "samples_per_second", "tokens_per_second", "communication"}


def write_inputs():
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + WORDS["1"] + WORDS["0"] + OTHER_WORDS
    (GOLDEN / "model").mkdir(parents=True, exist_ok=True)
    (GOLDEN / "model" / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    (GOLDEN / "model" / "config.json").write_text(json.dumps(dict(MODEL, vocab_size=len(vocabulary)), indent=2) + "\n")
    draw = random.Random(5)
    for name, count in [("train", 37), ("dev", 11)]:
        rows = ["sentence\tlabel"]
        for row in range(count):
            words = draw.choices(OTHER_WORDS, k=draw.randint(2, 12)) + draw.choices(WORDS[str(row % 2)], k=draw.randint(1, 3))
            draw.shuffle(words)
            rows.append(f"{' '.join(words)}\t{row % 2}")
        (GOLDEN / f"{name}.tsv").write_text("\n".join(rows) + "\n")


def write_case(build, name, settings):
    (GOLDEN / f"{name}.yaml").write_text(RECIPE % settings)
    with tempfile.TemporaryDirectory() as temporary:
        # All paths in the recipe are relative, so that the checkpoint contains none of this machine.
        subprocess.run(f"cp -r {GOLDEN}/model {GOLDEN}/*.tsv {GOLDEN}/{name}.yaml .", shell=True, check=True, cwd=temporary)
        subprocess.run([build / "bin" / "stretto", "train", f"{name}.yaml", "-N", "2", "--no-pin"], check=True, cwd=temporary)
        run = pathlib.Path(temporary) / "run"
        shutil.copytree(run / "checkpoints" / "step-00000003", GOLDEN / name / "step-00000003")
        records = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
        (GOLDEN / name / "metrics.jsonl").write_text("".join(
            json.dumps({key: value for key, value in record.items() if key not in TIMINGS}) + "\n" for record in records))


def write_lite_case(build, name):
    subprocess.run([build / "tests" / "lite_laws", f"saved_{name}", "2", GOLDEN / f"lite_{name}"], check=True)


def main(build):
    if not (GOLDEN / "train.tsv").exists():
        write_inputs()
    for name, settings in CASES.items():
        if not (GOLDEN / name).exists():
            write_case(build, name, settings)
    for name in LITE_CASES:
        if not (GOLDEN / f"lite_{name}").exists():
            write_lite_case(build, name)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
