#!/usr/bin/env python3
"""The model folder of `stretto train` is a Hugging Face model folder.

    hf_load_test.py STRETTO PYTHON...

Trains small classifiers and loads each model folder in the first PYTHON that has torch and transformers: no weight may be
missing or unexpected, and the logits must equal those of `stretto predict --output logits`. The same for the folder, with
sharded weights, that `stretto convert` writes from the last checkpoint. Ends with 77 (skipped) if no
PYTHON has them.
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

SKIPPED = 77
# Without importing them, which takes seconds.
HAS_PACKAGES = "from importlib.util import find_spec; assert find_spec('torch') and find_spec('transformers')"
COMPARE = pathlib.Path(__file__).with_name("compare.py")
WORDS = "the film was good bad dull witty bright never plot and a cast".split()
MODEL = {"model_type": "bert", "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 80, "max_position_embeddings": 40}
TEXTS = ["the film was good", "", "Never a DULL plot, and a witty cast?", "na\u00efve caf\u00e9 \u4e2d\u6587 \U0001f600",
         "the film was bad and dull " * 20]
# Labels as words and numbers; vocab.txt alone and with a tokenizer_config.json; three activations.
CASES = {
    "words": {"labels": ["delivery", "payment", "product"], "model": {}, "tokenizer": None},
    "numbers": {"labels": ["0", "1"], "model": {"hidden_act": "relu"}, "tokenizer": None},
    "cased": {"labels": ["no", "yes"], "model": {"hidden_act": "gelu_new"},
              "tokenizer": {"tokenizer_class": "BertTokenizer", "do_lower_case": False}},
}


def find_python(candidates):
    for python in candidates:
        try:
            if subprocess.run([python, "-c", HAS_PACKAGES], stderr=subprocess.DEVNULL).returncode == 0:
                return python
        except OSError:
            pass
    return None


def write_inputs(folder, case):
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ",", "?"] + WORDS
    vocabulary += [piece for letter in letters for piece in (letter, "##" + letter) if piece not in vocabulary]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    (folder / "config.json").write_text(json.dumps(dict(MODEL, vocab_size=len(vocabulary), **case["model"])))
    if case["tokenizer"]:
        (folder / "tokenizer_config.json").write_text(json.dumps(case["tokenizer"]))
    draw = random.Random(1)
    rows = [(" ".join(draw.choices(WORDS, k=draw.randint(1, 12))), case["labels"][row % len(case["labels"])])
            for row in range(48)]
    (folder / "train.csv").write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    (folder / "recipe.yaml").write_text("\n".join([
        f"model: {{config: {folder}/config.json}}", f"tokenizer: {{path: {folder}}}",
        f"data: {{train: {folder}/train.csv, max_length: 24}}", "evaluate: {every: never}",
        "training: {epochs: 2, global_batch_size: 8, device: cpu}", "checkpoint: {every: 1ep}", "optimizer: {lr: 1e-2}", f"output: {folder}/run"]))


def run(command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n"
                         f"{done.stdout.decode()}{done.stderr.decode()}")
    return done.stdout.decode()


def main(stretto, candidates):
    python = find_python(candidates)
    if python is None:
        print("Skipped: no Python with torch and transformers (looked for " + ", ".join(candidates) + ")")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="stretto-hf-") as temporary:
        folders = [pathlib.Path(temporary) / name for name in CASES]
        for folder, case in zip(folders, CASES.values()):
            folder.mkdir()
            write_inputs(folder, case)
            run([stretto, "train", folder / "recipe.yaml", "-N", 2, "--no-pin"])
            run([stretto, "convert", folder / "run", folder / "converted", "--max-shard-size", "30KB"])
            texts = [word for text in TEXTS for word in ("--text", text)]
            predictions = run([stretto, "predict", "--model", folder / "run/model", "--output", "logits"] + texts)
            (folder / "predictions.jsonl").write_text(predictions)
            (folder / "labels.json").write_text(json.dumps(case["labels"]))
        print(run([python, COMPARE] + folders), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
