#!/usr/bin/env python3
"""The model folder of `stretto train` is a Hugging Face model folder.

    folders_test.py STRETTO FOLDER

Trains small classifiers, which transformers_test.py loads with transformers: no weight may be missing or unexpected, and the
logits must equal those of `stretto predict --output logits`. The folder with sharded weights that `stretto convert` writes
from the last checkpoint is tested in the same way.
"""

import json
import random
import sys

from workspace import Stretto, emptied

WORDS = "the film was good bad dull witty bright never plot and a cast".split()
MODEL = {"model_type": "bert", "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 80, "max_position_embeddings": 40}
TEXTS = ["the film was good", "", "Never a DULL plot, and a witty cast?", "na\u00efve caf\u00e9 \u4e2d\u6587 \U0001f600",
         "the film was bad and dull " * 20]
# Labels that are words and numbers; vocab.txt alone and with a tokenizer_config.json; three activations.
CASES = {
    "words": {"labels": ["delivery", "payment", "product"], "model": {}, "tokenizer": None},
    "numbers": {"labels": ["0", "1"], "model": {"hidden_act": "relu"}, "tokenizer": None},
    "cased": {"labels": ["no", "yes"], "model": {"hidden_act": "gelu_new"},
              "tokenizer": {"tokenizer_class": "BertTokenizer", "do_lower_case": False}},
}


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
        "training: {epochs: 2, global_batch_size: 8, device: cpu}", "checkpoint: {every: 1ep}", "optimizer: {lr: 1e-2}"]))


def main(program, folder):
    stretto = Stretto(program, emptied(folder))
    texts = [word for text in TEXTS for word in ("--text", text)]
    for name, case in CASES.items():
        (stretto.folder / name).mkdir()
        write_inputs(stretto.folder / name, case)
        stretto.train(f"{name}/recipe.yaml", f"{name}/run", 2)
        stretto.run("convert", f"{name}/run", f"{name}/converted", "--max-shard-size", "30KB")
        (stretto.folder / name / "predictions.jsonl").write_text(
            stretto.run("predict", "--model", f"{name}/run/model", "--output", "logits", *texts), encoding="utf-8")
        (stretto.folder / name / "labels.json").write_text(json.dumps(case["labels"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
