#!/usr/bin/env python3
"""Every recipe of recipes/, run-glue and run-qa, end to end: training on two ranks, resuming, testing, predicting.

    recipes_test.py STRETTO

On small data in the layout of the data sets that the recipes name, with a small encoder with random weights.
"""

import csv
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

from workspace import NEW_BART, NEW_ROBERTA, SOURCE, Stretto, require, write_bart, write_inputs, write_lines, write_model, write_roberta

STEPS = ["training.max_steps=6", "checkpoint.every=2", "checkpoint.keep_last=0", "track.progress=off"]
TWO_RANKS = ["-N", "2", "--no-pin"]
# Families and losses whose resuming, or test on two ranks, no other test covers; see also tokens_test.py,
# questions_test.py and tagger_test.py.
RESUMED = ["bart", "multi_label", "stsb", "clm", "llama"]
METRICS = {"demo": "accuracy", "pairs": "f1", "multi_label": "f1_micro", "sst2": "accuracy", "bart": "accuracy", "ner": "f1", "tagger": "f1", "qa": "f1", "clm": "perplexity",
           "llama": "perplexity"}


def write_weights(folder):
    """Writes model.safetensors next to a config.json of BERT: random weights of the encoder, like a
    checkpoint without a head."""
    config = json.loads((folder / "config.json").read_text())
    config["max_position_embeddings"] = 384  # recipes/qa.yaml's
    (folder / "config.json").write_text(json.dumps(config))
    wide, inner = config["hidden_size"], config["intermediate_size"]
    shapes = {f"embeddings.{name}_embeddings.weight": [rows, wide] for name, rows in
              (("word", config["vocab_size"]), ("position", config["max_position_embeddings"]), ("token_type", 2))}
    norms = ["embeddings.LayerNorm"]
    for layer in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{layer}."
        norms += [at + "attention.output.LayerNorm", at + "output.LayerNorm"]
        for name, rows, columns in (("attention.self.query", wide, wide), ("attention.self.key", wide, wide),
                                    ("attention.self.value", wide, wide), ("attention.output.dense", wide, wide),
                                    ("intermediate.dense", inner, wide), ("output.dense", wide, inner)):
            shapes |= {f"{at}{name}.weight": [rows, columns], f"{at}{name}.bias": [rows]}
    for norm in norms:
        shapes |= {norm + ".weight": [wide], norm + ".bias": [wide]}
    header, data = {}, b""
    for seed, (name, shape) in enumerate(shapes.items()):
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        if name.endswith("LayerNorm.weight"):
            values = [1.0] * count
        elif name.endswith("bias"):
            values = [0.0] * count
        else:
            values = [((i * 2654435761 + seed * 40503) % 65536 / 65536 - 0.5) / 4 for i in range(count)]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
        data += struct.pack(f"<{count}f", *values)
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_pairs(real):
    """Writes the reviews as MRPC's pairs (paraphrases if their labels are equal), as STS-B's, and as texts
    with several labels."""
    for name in ("mrpc", "stsb", "topics"):
        (real / name).mkdir()
    for part in ("train", "dev", "test"):
        rows = [line.split("\t") for line in (real / f"sst2/{part}.tsv").read_text().splitlines()[1:]]
        pairs = list(zip(rows[::2], rows[1::2]))
        (real / f"mrpc/{part}.tsv").write_text("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n" + "".join(
            f"{int(a[1] == b[1])}\t{i}\t{i + 1}\t{a[0]}\t{b[0]}\n" for i, (a, b) in enumerate(pairs)))
        (real / f"stsb/{part}.tsv").write_text("index\tsentence1\tsentence2\tscore\n" + "".join(
            f"{i}\t{a[0]}\t{b[0]}\t{len(set(a[0].split()) & set(b[0].split())):.2f}\n" for i, (a, b) in enumerate(pairs)))
        (real / f"topics/{part}.jsonl").write_text("".join(json.dumps({"text": text, "label": [
            word for word in ("film", "but", "not") if word in text.split()] + ["good"] * (label == "1")}) + "\n" for text, label in rows))


def make_small_data(folder):
    """Writes generated data under the names that the recipes expect."""
    write_inputs(folder, rows=96)
    write_weights(folder / "encoder")
    generated, real = folder / "data", folder / "real"
    subprocess.run([sys.executable, "-B", SOURCE / "scripts/make_reviews.py", folder / "demo/data", "--rows", "240"], check=True)
    shutil.copytree(folder / "demo/data", real / "sst2")
    for name, source in (("wnut17/wnut17train.conll", "train.conll"), ("wnut17/emerging.dev.conll", "dev.conll"),
                         ("wikigold/wikigold.conll.txt", "train.conll"), ("squad2/train_dev.json", "train.json")):
        (real / name).parent.mkdir(exist_ok=True)
        shutil.copy(generated / source, real / name)
    write_bart(folder / "new-bart")
    write_roberta(folder / "new-roberta")
    write_pairs(real)
    (real / "tinyshakespeare").mkdir()
    write_lines(real / "tinyshakespeare/input.txt", 400, seed=1)
    for model_type in ("gpt2", "llama"):
        write_model(folder / f"new-{model_type}", model_type)
    return folder / "encoder"


def checkpoints(run):
    return sorted((run / "checkpoints").iterdir(), key=lambda path: int(path.name.split("-")[1]))


def check_resumed(stretto, run, resumed):
    for name in ("model.safetensors", "config.json"):
        require((stretto.folder / run / name).read_bytes() == (stretto.folder / resumed / name).read_bytes(),
                f"{resumed}/{name} of a resumed run is not that of {run}, which was never stopped")


def predict(stretto, model, text):
    """Predicts the first text: JSON with the text's class, entities or answer."""
    return json.loads(stretto.run("predict", "--model", model, stdin=text).splitlines()[0])


TEXTS = {"demo": ("a lovely film\n", "label"), "sst2": ("a lovely film\n", "label"),
         "bart": ("a lovely film\n", "label"), "pairs": ("a lovely film\ta dull film\n", "label"), "multi_label": ("a lovely film\n", "labels"),
         "ner": ("Paul flew from Vienna to New York\n", "entities"), "tagger": ("Paul flew from Vienna to New York\n", "entities"),
         "qa": ("where was he born ?\tMozart was born in Salzburg .\n", "answer")}


def check_recipe(stretto, recipe, name, *settings, metric=None):
    """Trains on two ranks, or on two groups of them that share layers, tests and predicts."""
    run = f"runs/{name}"
    ranks = ["-N", "4", "--no-pin"] if name == "llama" else TWO_RANKS
    stretto.run("train", recipe, *ranks, f"output={run}", *STEPS, *settings)
    results = stretto.json(f"{run}/dev_results.json")
    metric = metric or METRICS[pathlib.Path(recipe).stem]
    require(-1 <= results[metric] and results["loss"] > 0, f"{name}: {results}")
    if name in RESUMED:
        first = checkpoints(stretto.folder / run)[0]
        stretto.run("train", recipe, *ranks, f"output={run}-resumed", f"resume={first}", *STEPS, *settings)
        check_resumed(stretto, f"{run}/model", f"{run}-resumed/model")
    stretto.run("test", recipe, *(TWO_RANKS if name in RESUMED else ["-N", "1"]), f"output={run}", *settings)
    predictions = {"qa": "predictions.json", "clm": "losses.jsonl", "llama": "losses.jsonl"}.get(name, "predictions.jsonl")
    require((stretto.folder / run / predictions).read_text() != "", f"{name}: {predictions}")
    tested = stretto.json(f"{run}/test_results.json")
    require({metric, f"overall_{metric}"} & set(tested), f"{name}: {tested}")
    if name in ("clm", "llama"):
        return
    text, key = TEXTS[pathlib.Path(recipe).stem]
    prediction = predict(stretto, f"{run}/model", text)
    require(key in prediction, f"{name}: {prediction}")


def check_recipes(stretto):
    def small_model(model_type):
        config = stretto.json(f"new-{model_type}/config.json")
        return [f"model.config.{key}={value}" for key, value in config.items() if key != "model_type"]

    recipes = sorted(path.stem for path in (SOURCE / "recipes").glob("*.yaml"))
    require(recipes == sorted(METRICS), f"recipes/ holds {recipes}; this test knows {sorted(METRICS)}")
    shutil.copytree(SOURCE / "recipes", stretto.folder / "recipes")
    for name in recipes:
        settings = {"bart": NEW_BART, "pairs": NEW_ROBERTA, "clm": small_model("gpt2"), "llama": small_model("llama")}.get(name, [])
        check_recipe(stretto, f"recipes/{name}.yaml", name, *settings)
    # Tests what the comments of pairs.yaml state about numbers and single texts.
    stsb = [f"data.{part}=real/stsb/{file}.tsv" for part, file in (("train", "train"), ("validation", "dev"), ("test", "test"))]
    check_recipe(stretto, "recipes/pairs.yaml", "stsb", *NEW_ROBERTA, *stsb, "data.label=score", "text_classification.glue_task=stsb",
                 "checkpoint.monitor=pearson", metric="pearson")
    single = [setting.replace("stsb", "sst2") for setting in stsb]
    check_recipe(stretto, "recipes/pairs.yaml", "roberta-sst2", *NEW_ROBERTA, *single, "text_classification.glue_task=sst2",
                 "checkpoint.monitor=accuracy", metric="accuracy")
    # Another corpus: all tags begin with I- (IOB1), in one file.
    one_file = [f"data.{part}=real/wikigold/wikigold.conll.txt" for part in ("train", "validation", "test")]
    check_recipe(stretto, "recipes/ner.yaml", "wikigold-ner", *one_file)


def convert_reviews(stretto):
    """Writes CSV files, which run_glue.py reads."""
    for name in ("train", "dev", "test"):
        with open(stretto.folder / f"real/sst2/{name}.tsv", encoding="utf-8") as file:
            rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        with open(stretto.folder / f"{name}.csv", "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)


def check_door(stretto, verb, encoder, files, keys, text, *flags):
    """Trains on two ranks, resumes as if the run had been killed after step 2, evaluates and predicts."""
    key = {"run-glue": "label", "run-qa": "answer"}[verb]
    given = [verb, "--model_name_or_path", encoder, *files, "--do_train", "--do_eval", "--do_predict", "--max_steps", "4", "--save_steps", "2",
             "--logging_steps", "1", "--per_device_train_batch_size", "4", *flags, "-N", "2", "--output_dir"]
    out = stretto.run(*given, verb)
    require("***** train metrics *****" in out and "***** eval metrics *****" in out and "***** predict metrics *****" in out, out)
    results = stretto.json(f"{verb}/all_results.json")
    require(keys | {"train_loss", "train_runtime", "epoch"} <= set(results), f"{verb}: {sorted(results)}")
    shutil.copytree(stretto.folder / verb, stretto.folder / f"{verb}-whole")
    # The state of a run that was killed after its second step.
    (stretto.folder / verb / "config.json").unlink()
    shutil.rmtree(stretto.folder / verb / "run/model")
    first, *later = checkpoints(stretto.folder / verb / "run")
    for folder in later:
        shutil.rmtree(folder)
    stretto.run(*given, verb)
    check_resumed(stretto, f"{verb}-whole", verb)
    log = (stretto.folder / verb / "run/logger_logs/training_0.log").read_text()
    require(first.name in log, f"{verb}: the second run has not resumed:\n{log}")
    require(key in predict(stretto, verb, text), f"{verb}: a prediction without {key}")


def check_doors(stretto, encoder):
    convert_reviews(stretto)
    check_door(stretto, "run-glue", encoder, ["--train_file", "train.csv", "--validation_file", "dev.csv", "--test_file", "test.csv"],
               {"eval_accuracy", "predict_accuracy"}, TEXTS["sst2"][0], "--max_seq_length", "48")
    squad = "real/squad2/train_dev.json"
    check_door(stretto, "run-qa", encoder, ["--train_file", squad, "--validation_file", squad, "--test_file", squad], {"eval_f1", "predict_f1"},
               TEXTS["qa"][0], "--version_2_with_negative", "--max_seq_length", "64", "--doc_stride", "16")


def main(program):
    with tempfile.TemporaryDirectory(prefix="stretto-recipes-") as temporary:
        folder = pathlib.Path(temporary)
        encoder = make_small_data(folder)
        os.environ.update(STRETTO_DATA="real", STRETTO_ENCODER=str(encoder), STRETTO_TOKENIZER="new-gpt2")
        stretto = Stretto(program, folder)
        check_recipes(stretto)
        check_doors(stretto, encoder)


if __name__ == "__main__":
    main(sys.argv[1])
