#!/usr/bin/env python3
"""The task text-classification with numbers, several labels per text and class weights, from files to predictions.

    classification_test.py STRETTO FOLDER

transformers_test.py compares the predictions in FOLDER with those of transformers.
"""

import json
import random
import shutil
import subprocess
import sys

from workspace import Stretto, check_without_validation, emptied, require, require_close

WORDS = {"good": ("praise", 1.5), "fine": ("praise", 1.0), "dull": ("blame", -1.5), "bad": ("blame", -1.0), "long": ("length", 0.2),
         "film": (None, 0.0), "story": (None, 0.0)}
RECIPE = """
model: {config: encoder/config.json}
tokenizer: {path: encoder}
data: {train: train.EXTENSION, validation: dev.EXTENSION, test: dev.EXTENSION, max_length: 16}
training: {epochs: 6, global_batch_size: 8, device: cpu}
optimizer: {lr: 5.0e-3}
checkpoint: {keep_last: 0}
track: {progress: "off", log_every: 1}
text_classification: {SETTINGS}
"""
TEXTS = ["a good film", "", "dull and bad story", "long long film", "unknownword"]


def write_inputs(folder):
    random.seed(3)
    for name, rows in (("train", 96), ("dev", 24)):
        samples = [random.choices(list(WORDS), k=4) for _ in range(rows)]
        with open(folder / f"{name}.tsv", "w") as file:
            file.write("sentence\tscore\n")
            file.writelines(f"{' '.join(words)}\t{sum(WORDS[word][1] for word in words):.2f}\n" for words in samples)
        labels = [sorted({WORDS[word][0] for word in words} - {None}) for words in samples]
        with open(folder / f"{name}.jsonl", "w") as file:
            file.writelines(json.dumps({"text": " ".join(words), "label": those}) + "\n" for words, those in zip(samples, labels))
        with open(folder / f"{name}.csv", "w") as file:
            file.write("text,label\n")
            file.writelines(f"{' '.join(words)},{';'.join(those)}\n" for words, those in zip(samples, labels))
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "encoder").mkdir()
    (folder / "encoder/vocab.txt").write_text("\n".join(vocabulary) + "\n")
    (folder / "encoder/config.json").write_text(json.dumps({
        "model_type": "bert", "vocab_size": len(vocabulary), "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": 64, "max_position_embeddings": 32, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0, "initializer_range": 0.1}))
    for name, extension, settings in (("regression", "tsv", "problem_type: regression"),
                                      ("multi", "jsonl", "problem_type: multi_label_classification")):
        (folder / f"{name}.yaml").write_text(RECIPE.replace("EXTENSION", extension).replace("SETTINGS", settings))


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def check_regression(stretto):
    stretto.train("regression.yaml", "regression", 1, "data.label=score")
    stretto.train("regression.yaml", "regression2", 2, "data.label=score")
    require_close("2 ranks", stretto.json("regression2/dev_results.json"), stretto.json("regression/dev_results.json"), 2e-2)
    stretto.run("test", "regression.yaml", "output=regression", "data.label=score")
    results = stretto.json("regression/test_results.json")
    require(results.keys() == {"loss", "pearson", "spearmanr"} and results["pearson"] > 0.8, f"{results}")
    config = stretto.json("regression/model/config.json")
    require(config["problem_type"] == "regression" and config["id2label"] == {"0": "LABEL_0"}, f"{config}")
    predictions = records(stretto.folder / "regression/predictions.jsonl")
    error = sum((record["prediction"] - record["gold"]) ** 2 for record in predictions) / len(predictions)
    require(abs(error - results["loss"]) < 1e-4 and predictions[0]["line"] == 2 and "text" in predictions[0], f"{error}, {results}")
    wrong = records(stretto.folder / "regression/most_wrong.jsonl")
    errors = [abs(record["prediction"] - record["gold"]) for record in wrong]
    require(errors == sorted(errors, reverse=True) and len(errors) == len(predictions), f"{errors}")
    (stretto.folder / "gold.txt").write_text("".join(f"{record['gold']}\n" for record in predictions))
    scored = json.loads(stretto.run("score", "glue", "stsb", "gold.txt", "regression/predictions.jsonl"))
    require(abs(scored["pearson"] - results["pearson"]) < 1e-6, f"{scored}")
    stretto.run("test", "regression.yaml", "output=regression", "data.label=score", "text_classification.glue_task=stsb")
    require("combined_score" in stretto.json("regression/test_results.json"), "combined_score of stsb")


def check_multi_label(stretto):
    """A list of labels and a separated column give the same model."""
    stretto.train("multi.yaml", "multi", 1)
    stretto.train("multi.yaml", "column", 1, "data.train=train.csv", "data.validation=dev.csv", "text_classification.label_separator=;")
    require((stretto.folder / "multi/model/model.safetensors").read_bytes() ==
            (stretto.folder / "column/model/model.safetensors").read_bytes(), "a list and a column give different models")
    out = subprocess.run([stretto.program, "test", "multi.yaml", "output=multi"], cwd=stretto.folder, stderr=subprocess.PIPE,
                         encoding="utf-8").stderr
    require("class                     precision    recall        f1   support" in out, out)
    require(all(len(line) <= 80 for line in out.splitlines() if "  0." in line or "  1." in line), out)
    results = stretto.json("multi/test_results.json")
    require(results["f1_micro"] > 0.8 and list(results["classes"]) == ["blame", "length", "praise"], f"{results}")
    predictions = records(stretto.folder / "multi/predictions.jsonl")
    right = sum(record["labels"] == record["gold"] for record in predictions) / len(predictions)
    require(abs(right - results["accuracy"]) < 1e-9, f"{right}, {results}")
    wrong = records(stretto.folder / "multi/most_wrong.jsonl")
    require(len(wrong) == round((1 - right) * len(predictions)) and all(a["labels"] != a["gold"] for a in wrong), f"{wrong}")
    require(stretto.json("multi/model/config.json")["problem_type"] == "multi_label_classification", "config.json")


def check_classes(stretto):
    """With one class per text and class weights, the confusion matrix is that of the predictions."""
    with open(stretto.folder / "one.tsv", "w") as file:
        file.write("sentence\tlabel\n" + "".join(f"{word} film\t{kind}\n" for word, (kind, _) in WORDS.items() if kind for _ in range(4)))
    recipe = RECIPE.replace("train.EXTENSION", "one.tsv").replace("dev.EXTENSION", "one.tsv")
    (stretto.folder / "one.yaml").write_text(recipe.replace("SETTINGS", 'class_weights: ["praise=3"], label_smoothing: 0.1'))
    stretto.train("one.yaml", "one", 1, "evaluate.by_class=true")
    log = (stretto.folder / "one/logger_logs/training_0.log").read_text()
    require(log.count("precision    recall        f1   support") == 6 and "gold \\ predicted" in log, "tables of each evaluation")
    stretto.run("test", "one.yaml", "output=one")
    results = stretto.json("one/test_results.json")
    matrix, predictions = results["confusion_matrix"], records(stretto.folder / "one/predictions.jsonl")
    for gold, row in zip(matrix["labels"], matrix["counts"]):
        for label, count in zip(matrix["labels"], row):
            require(count == sum(a["gold"] == gold and a["label"] == label for a in predictions), f"{matrix}")
    weights = ["train", "one.yaml", "output=x", "text_classification.class_weights=[{}]"]
    for value, message in (("praises=2", '"praises" is not a label; did you mean "praise"?; labels are blame, length, praise'),
                           ("praise", '"praise" is not LABEL=WEIGHT with a positive weight'), ("praise=-1", "positive weight"),
                           ('"praise=1", "praise=2"', 'the label "praise" occurs twice')):
        stretto.require_error(message, *weights[:3], weights[3].format(value))


def check_pairs(stretto):
    """Both texts of a pair are shown; labels that differ only in case are named."""
    words = list(WORDS)
    rows = [f"{a} film,{b} story,{'Same' if a == b else 'other'}\n" for a in words for b in words]
    (stretto.folder / "pairs.csv").write_text("sentence1,sentence2,label\n" + "".join(rows) + "good film,bad story,same\n")
    data = ["data.train=pairs.csv", "data.test=pairs.csv", "text_classification.class_weights=[]", "text_classification.label_smoothing=0"]
    check_without_validation(stretto, "one.yaml", "pairs", *data)
    log = (stretto.folder / "pairs/logger_logs/training_0.log").read_text()
    warning = f'pairs.csv:{len(rows) + 2}: the label "same" (1 time) differs from "Same" ({len(words)} times, line 2) in case or blanks only;'
    require(log.count(warning) == 1, log)
    shown = subprocess.run([stretto.program, "test", "one.yaml", "output=pairs", *data], cwd=stretto.folder, stderr=subprocess.PIPE,
                           encoding="utf-8").stderr
    wrong = records(stretto.folder / "pairs/most_wrong.jsonl")[0]
    require(f"\n    {wrong['text']}\n    {wrong['text_pair']}\n" in shown, shown)


def check_door(stretto):
    """run-glue writes what run_glue.py writes; `stretto score` reads its predictions."""
    for name in ("train", "dev"):
        rows = [json.loads(line) for line in (stretto.folder / f"{name}.jsonl").read_text().splitlines()]
        with open(stretto.folder / f"cola-{name}.tsv", "w") as file:
            file.write("sentence\tlabel\n" + "".join(f"{row['text']}\t{int('praise' in row['label'])}\n" for row in rows))
    flags = ["--config_name", "encoder/config.json", "--tokenizer_name", "encoder", "--task_name", "CoLA", "--train_file", "cola-train.tsv",
             "--validation_file", "cola-dev.tsv", "--test_file", "cola-dev.tsv", "--do_train", "--do_eval", "--do_predict",
             "--num_train_epochs", 8, "--learning_rate", "5e-3", "--max_seq_length", 16, "--output_dir", "glue"]
    recipe = stretto.run("run-glue", *flags, "--print-recipe")
    require('glue_task: "cola"' in recipe and not (stretto.folder / "glue").exists(), recipe)
    out = stretto.run("run-glue", *flags, "-N", 2)
    results = stretto.json("glue/all_results.json")
    require("***** eval metrics *****" in out and results["eval_matthews_correlation"] > 0.8, f"{out}{results}")
    scored = json.loads(stretto.run("score", "glue", "cola", "cola-dev.tsv", "glue/predict_results_cola.txt", "--gold-column", "label"))
    require(scored["matthews_correlation"] == results["eval_matthews_correlation"], f"{scored}, {results}")
    lines = (stretto.folder / "glue/predict_results_cola.txt").read_text().splitlines()
    require({line.split("\t")[1] for line in lines[1:]} == {"0", "1"}, f"{lines}")
    stretto.require_error("pass --overwrite_output_dir to train again", "run-glue", *flags)


def check_errors(stretto):
    """A refused command leaves the good run in its folder unchanged."""
    kept = (stretto.folder / "multi/model/model.safetensors").read_bytes()
    train, here = ["train", "multi.yaml", "output=multi", "resume=false"], "text_classification."
    for settings, message in (
            ([here + "problem_type=regresion"], 'did you mean "regression"?'),
            ([here + "problem_type=regression", "data.train=train.jsonl"], "is a list"),
            ([here + "label_smoothing=0.1"], "it has no meaning with text_classification.problem_type"),
            ([here + "label_smoothing=1"], "label_smoothing"),
            ([here + "label_separator="], "label_separator"),
            ([here + "glue_task=mrcp"], "glue_task"),
            ([here + "glue_task=mrpc"], "it has no meaning with text_classification.problem_type"),
            (["task=question-answering"], "text_classification does not apply with task: question-answering"),
            (["model.config=null", "model.path=regression/model", "tokenizer.path=null"],
             "the model was trained for regression, but text_classification.problem_type")):
        stretto.require_error(message, *train, *settings)
    stretto.require_error("the model was trained for multi_label_classification, but text_classification.problem_type", "test",
                          "regression.yaml", "output=multi", "data.label=score")
    require((stretto.folder / "multi/model/model.safetensors").read_bytes() == kept, "the good run has changed")


# Inputs of transformers' pipelines, read from a file or from standard input.
REQUESTS = [{"inputs": TEXTS}, TEXTS, *TEXTS, {"text": TEXTS[0]}, [{"text": text} for text in TEXTS]]


def predict_requests(stretto):
    """Writes the requests as JSON and as JSON Lines, and the output of `stretto predict` for them."""
    folder = stretto.folder
    (folder / "requests.jsonl").write_text("".join(json.dumps(request) + "\n\n" for request in REQUESTS))
    (folder / "texts.json").write_text(json.dumps(TEXTS, indent=1))
    (folder / "texts.txt").write_text("".join(text + "\r\n" for text in TEXTS))
    for run in ("regression", "multi", "one"):
        predict = ["predict", "--model", f"{run}/model", "--output", "pipeline"]
        (folder / f"{run}.requests.jsonl").write_text(stretto.run(*predict, "--input", "requests.jsonl", "--batch-size", 4))
        for k in (1, 2, "all"):
            (folder / f"{run}.top-{k}.jsonl").write_text(stretto.run(*predict, "--input", "texts.json", "--top-k", k))
    stdin = stretto.run(*predict, "--input", "-", "--input-format", "json", stdin=(folder / "texts.json").read_text())
    require(stdin == stretto.run(*predict, "--input", "texts.txt"), f"{stdin} is not what a text file gives")
    # Models of other programs do not state whether they read pairs.
    shutil.copytree(folder / "one/model", folder / "foreign")
    config = stretto.json("foreign/config.json")
    del config["task_specific_params"]
    (folder / "foreign/config.json").write_text(json.dumps(config))
    pairs = [{"text": a, "text_pair": b} for a in TEXTS for b in TEXTS[:2]]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    (folder / "pairs.out.jsonl").write_text(
        stretto.run("predict", "--model", "foreign", "--output", "pipeline", "--input", "pairs.jsonl", "--top-k", "all"))


def main(program, folder):
    folder = emptied(folder)
    write_inputs(folder)
    stretto = Stretto(program, folder)
    check_regression(stretto)
    check_multi_label(stretto)
    check_classes(stretto)
    check_pairs(stretto)
    check_door(stretto)
    check_errors(stretto)
    texts = [word for text in TEXTS for word in ("--text", text)]
    for run in ("regression", "multi", "one"):
        for output in ("label", "scores", "logits"):
            (folder / f"{run}.{output}.jsonl").write_text(stretto.run("predict", "--model", f"{run}/model", "--output", output, *texts))
    predict_requests(stretto)


if __name__ == "__main__":
    main(*sys.argv[1:])
