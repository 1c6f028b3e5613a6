#!/usr/bin/env python3
"""A new tagger of words (model_type: sequence-tagger), from CoNLL files and word vectors to predictions.

    tagger_test.py STRETTO
"""

import json
import pathlib
import struct
import sys
import tempfile

from workspace import Stretto, check_ranks_strategies_and_resuming, require, write_inputs

RECIPE = """
task: token-classification
model: {config: tagger.json}
token_classification: {tag_scheme: IOBES}
data: {train: data/train.conll, validation: data/dev.conll, test: data/test.conll, max_length: 48}
training: {epochs: 4, global_batch_size: 8, max_grad_norm: 5, device: cpu}
optimizer: {type: AdamW, lr: 1.0e-2}
checkpoint: {keep_last: 0}
track: {progress: "off", log_every: 1}
"""
TAGGER = {"word_dimensions": 24, "character_dimensions": 8, "character_hidden_size": 6, "hidden_size": 16}
STEPS = ["training.max_steps=6", "evaluate.every=never"]
DIMENSIONS = 5


def write_tagger(stretto, name, **settings):
    """The setting that selects a tagger with these settings."""
    (stretto.folder / f"{name}.json").write_text(json.dumps({"model_type": "sequence-tagger", **settings}, indent=1))
    return f"model.config={name}.json"


def vectors_of(folder):
    words = sorted({line.split()[0] for line in (folder / "data/train.conll").read_text().splitlines() if line})
    return {word: [((i * 7 + k * 3) % 11 - 5) / 8 for k in range(DIMENSIONS)] for i, word in enumerate(words)}


def check_vectors(stretto):
    """The three forms of vector files give the same model; vectors stay as they are unless they are trained."""
    folder, vectors = stretto.folder, vectors_of(stretto.folder)
    lines = "".join(f"{word} {' '.join(map(str, values))}\n" for word, values in vectors.items())
    (folder / "glove.txt").write_text(lines)
    (folder / "word2vec.txt").write_text(f"{len(vectors)} {DIMENSIONS}\n{lines}")
    (folder / "word2vec.bin").write_bytes(f"{len(vectors)} {DIMENSIONS}\n".encode() + b"".join(
        word.encode() + b" " + struct.pack(f"<{DIMENSIONS}f", *values) for word, values in vectors.items()))
    models = []
    for name in ["glove.txt", "word2vec.txt", "word2vec.bin"]:
        tagger = write_tagger(stretto, f"by-{name}", word_vectors=name, hidden_size=8, character_dimensions=0)
        stretto.train("tagger.yaml", f"from-{name}", 1, *STEPS, tagger)
        models.append((folder / f"from-{name}/model/model.safetensors").read_bytes())
    require(models[0] == models[1] == models[2], "the forms of word vectors give different models")
    config = stretto.json("from-glove.txt/model/config.json")
    require(config["vocab_size"] == len(vectors) + 1 and not config["train_words"] and config["characters"] == "", f"{config}")
    header = json.loads(models[0][8:8 + struct.unpack("<Q", models[0][:8])[0]])
    begin, end = header["words.weight"]["data_offsets"]
    begin += 8 + struct.unpack("<Q", models[0][:8])[0]
    wanted = [0.0] * DIMENSIONS + [value for values in vectors.values() for value in values]
    found = struct.unpack(f"<{len(wanted)}f", models[0][begin:begin + 4 * len(wanted)])
    require(list(found) == wanted, "frozen word vectors have changed")
    tokenizer = stretto.json("from-glove.txt/model/tokenizer.json")
    require(tokenizer["normalizer"] == {"type": "Lowercase"}, "vectors without capitals are looked up in lower case")


def check_predictions(stretto, run):
    results = stretto.json(f"{run}/test_results.json")
    require(results["overall_f1"] > 0.6, f"the model has not learned: {results}")
    text = "anna berger works for acme in san marino ."
    record, raw = [json.loads(stretto.run("predict", "--model", f"{run}/model", "--text", text, *more))
                   for more in ([], ["--output", "scores"])]
    found = [(entity["entity_group"], text[entity["start"]:entity["end"]]) for entity in record["entities"]]
    require(("LOC", "san marino") in found and ("PER", "anna berger") in found, f"{record}")
    for token in raw["tokens"]:
        require(abs(sum(token["scores"].values()) - 1) < 1e-6, f"probabilities of {token}")
    require(json.loads(stretto.run("predict", "--model", f"{run}/model", "--text", ""))["entities"] == [], "an empty text")
    # Test reads the folder that train wrote: the same predictions as predict's.
    first = json.loads((stretto.folder / run / "predictions.jsonl").read_text().splitlines()[0])
    again = json.loads(stretto.run("predict", "--model", f"{run}/model", "--text", " ".join(first["tokens"])))
    spans = [" ".join(first["tokens"][span["begin"]:span["end"]]) for span in first["spans"]]
    whole = " ".join(first["tokens"])
    require([whole[e["start"]:e["end"]] for e in again["entities"]] == spans, f"{again} of {first}")


def check_variants(stretto, run):
    """Each part can be left out; a trained folder is trained further."""
    for name, settings in {
            "gru": {"rnn_type": "GRU", "rnn_layers": 2, "dropout": 0.2},
            "none": {"rnn_type": "none", "use_crf": False, "reproject_embeddings": False},
            "characters": {"word_dimensions": 0},
            "lower": {"lowercase": True, "min_word_count": 2, "bidirectional": False}}.items():
        tagger = write_tagger(stretto, name, hidden_size=8, **settings)
        stretto.train("tagger.yaml", name, 2, *STEPS, tagger)
        stretto.run("test", "tagger.yaml", f"output={name}", tagger)
    stretto.train("tagger.yaml", "bf16", 1, *STEPS, "training.precision=bf16")
    stretto.train("tagger.yaml", "plateau", 1, "training.epochs=30", "optimizer={type: SGD, lr: 0.1}",
                  "scheduler={type: AnnealOnPlateau, monitor: f1, patience: 0, min_learning_rate: 0.04}", "evaluate.every=1ep")
    log = (stretto.folder / "plateau/logger_logs/training_0.log").read_text()
    require("is below scheduler.min_learning_rate" in log, log)
    (stretto.folder / "further.yaml").write_text(f"""
task: token-classification
model: {{path: {run}/model}}
token_classification: {{tag_scheme: IOBES}}
data: {{train: data/train.conll, validation: data/dev.conll, max_length: 48}}
training: {{max_steps: 2, global_batch_size: 8}}
output: further
""")
    stretto.run("train", "further.yaml")
    require(stretto.json("further/dev_results.json")["f1"] > 0.6, "a trained folder is not where training starts")


def check_refusals(stretto):
    def refused(part, *settings):
        stretto.require_error(part, "train", "tagger.yaml", "output=x", *settings)

    def refused_tagger(part, **settings):
        refused(part, write_tagger(stretto, "wrong", **settings))

    refused("a model is either loaded from a folder or created from a config.json", "model.path=one/model")
    refused("tokenizer.path: a new sequence-tagger makes its own tokenizer", "tokenizer.path=encoder")
    refused("a sequence-tagger is for the task token-classification", "task=text-classification", "token_classification=null")
    refused("label_all_tokens: a sequence-tagger reads whole words", "token_classification.label_all_tokens=true")
    refused_tagger("words have neither vectors nor characters", word_dimensions=0, character_dimensions=0)
    refused_tagger("wrong.json:4:21: word_dimensions: the vocabulary and its vectors are those of", word_vectors="glove.txt", word_dimensions=3)
    refused_tagger("none.txt is not a file", word_vectors="none.txt")
    refused_tagger('did you mean "hidden_size"?', hiden_size=3)
    refused_tagger("hidden_size: 0 is out of range", hidden_size=0)
    refused_tagger("rnn_type", rnn_type="RNN")
    (stretto.folder / "cut.bin").write_bytes((stretto.folder / "word2vec.bin").read_bytes()[:-3])
    refused_tagger("the file ends", word_vectors="cut.bin")
    refused("is not one of", "data.validation=data/other.conll")


def main(program):
    with tempfile.TemporaryDirectory(prefix="stretto-tagger-") as temporary:
        folder = pathlib.Path(temporary)
        write_inputs(folder)
        (folder / "tagger.yaml").write_text(RECIPE)
        (folder / "data/other.conll").write_text("vienna B-CITY\n")
        stretto = Stretto(program, folder)
        write_tagger(stretto, "tagger", **TAGGER)
        run = check_ranks_strategies_and_resuming(stretto, "tagger.yaml")
        stretto.run("test", "tagger.yaml", "-N", 2, "--no-pin", f"output={run}")
        check_predictions(stretto, run)
        check_vectors(stretto)
        check_variants(stretto, run)
        check_refusals(stretto)


if __name__ == "__main__":
    main(sys.argv[1])
