#!/usr/bin/env python3
"""The task token-classification, from CoNLL files and JSON Lines to predictions.

    tokens_test.py STRETTO FOLDER

transformers_test.py compares the predictions in FOLDER with those of transformers.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import sys

from workspace import Stretto, check_ranks_and_resuming, check_without_validation, emptied, require, spans_of, write_inputs

RECIPE = """
task: token-classification
model: {config: encoder/config.json}
tokenizer: {path: encoder}
data: {train: data/train.conll, validation: data/dev.conll, test: data/test.conll, max_length: 48}
training: {epochs: 4, global_batch_size: 8, device: cpu}
optimizer: {lr: 5.0e-3}
checkpoint: {keep_last: 0}
track: {progress: "off", log_every: 1}
"""
TEXTS = ["anna berger works for blue river bank in new york .", "", "PAUL , of Acme , lives in Cape Town!", "it rained .",
         "unknownword in san marino", "the mayor of vienna met maria novak . " * 6]


def check_results(stretto, run):
    results = stretto.json(f"{run}/test_results.json")
    require(results["overall_f1"] > 0.6, f"the model has not learned: {results}")
    scored = json.loads(stretto.run("score", "seqeval", f"{run}/predictions.txt"))
    loss = results.pop("loss")
    require(scored == results and loss > 0, f"stretto score gives {scored}, stretto test {results}")
    gold = [block for block in (stretto.folder / "data/test.conll").read_text().split("\n\n")]
    records = [json.loads(line) for line in (stretto.folder / run / "predictions.jsonl").read_text().splitlines()]
    require(len(records) == len(gold), f"{len(records)} records of {len(gold)} sentences")
    for record, block in zip(records, gold):
        words = [line.split()[0] for line in block.splitlines()]
        require(record["tokens"] == words and len(record["tags"]) == len(words), f"{record} of {words}")


def check_inputs(stretto):
    """JSON Lines give the same model as CoNLL; windows cover all words; errors are named."""
    steps = ["training.max_steps=6", "evaluate.every=never"]
    stretto.train("ner.yaml", "conll", 1, *steps)
    stretto.train("ner.yaml", "jsonl", 1, *steps, "data.train=data/train.jsonl")
    require((stretto.folder / "conll/model/model.safetensors").read_bytes() ==
            (stretto.folder / "jsonl/model/model.safetensors").read_bytes(), "CoNLL and JSON Lines give different models")
    check_without_validation(stretto, "ner.yaml", "unevaluated")
    (stretto.folder / "data/mixed.conll").write_text((stretto.folder / "data/train.conll").read_text() + "\n\nanna B-Per\n")
    stretto.train("ner.yaml", "mixed", 1, *steps, "data.train=data/mixed.conll")
    log = (stretto.folder / "mixed/logger_logs/training_0.log").read_text()
    require(log.count('the label "B-Per" (1 time) differs from "B-PER" (') == 1, log)
    stretto.train("ner.yaml", "schemes", 1, *steps, "token_classification.tag_scheme=BIOES",
                  "token_classification.label_all_tokens=true")
    labels = stretto.json("schemes/model/config.json")["id2label"].values()
    require({"B-PER", "E-PER", "S-LOC", "O"} <= set(labels), f"the labels are {labels}")
    stretto.run("test", "ner.yaml", "output=conll", "data.max_length=8", "token_classification.stride=3")
    windows = stretto.json("conll/test_results.json")
    require(windows["ORG"]["number"] > 0, f"{windows}")
    stretto.run("test", "ner.yaml", "output=conll", "data.max_length=8", "token_classification.long_sentences=cut")
    log = (stretto.folder / "conll/logger_logs/training_0.log").read_text()
    require("behind data.max_length: 8 are left out" in log, log)
    stretto.require_error("the sentence has", "train", "ner.yaml", "output=x", "data.max_length=8",
                          "token_classification.long_sentences=refuse")
    stretto.require_error("token_classification.stride is 6, but windows of data.max_length: 8 have room for 6 tokens", "train",
                          "ner.yaml", "output=x", "data.max_length=8", "token_classification.stride=6")
    stretto.require_error("question_answering does not apply with task: token-classification", "train", "ner.yaml", "output=x",
                          "question_answering.doc_stride=8")
    (stretto.folder / "data/strange.conll").write_text("vienna B-CITY\n")
    stretto.require_error('strange.conll:1: the tag "B-CITY" is not one of', "train", "ner.yaml", "output=x",
                          "data.validation=data/strange.conll")
    (stretto.folder / "data/broken.conll").write_text("a O\nb\n")
    stretto.require_error("broken.conll:2: 1 column", "train", "ner.yaml", "output=x", "data.train=data/broken.conll")
    (stretto.folder / "data/outside.conll").write_text("a O\nb O\n")
    stretto.require_error('all words have the tag "O"', "train", "ner.yaml", "output=x", "data.train=data/outside.conll")
    stretto.require_error("data.label: data/train.conll has 2 columns", "train", "ner.yaml", "output=x", "data.label=4")
    (stretto.folder / "data/words.conll").write_text("anna\nlives\nin\nvienna\n\nnobody\n")
    stretto.run("test", "ner.yaml", "output=conll", "data.test=data/words.conll")
    require(not (stretto.folder / "conll/test_results.json").exists(), "results without gold tags")
    require((stretto.folder / "conll/predictions.txt").read_text().startswith("anna\t"), "predictions.txt")


def check_door(stretto):
    """run-ner writes what run_ner.py writes."""
    flags = ["--model_name_or_path", "one/model", "--train_file", "data/train.jsonl", "--validation_file", "data/dev.jsonl",
             "--test_file", "data/test.jsonl", "--do_train", "--do_eval", "--do_predict", "True", "--max_steps", "3",
             "--max_seq_length", "48", "--output_dir", "door", "--logging_steps=1", "--pad_to_max_length"]
    recipe = stretto.run("run-ner", *flags, "--print-recipe")
    require("task: \"token-classification\"" in recipe or "task: token-classification" in recipe, recipe)
    require(not (stretto.folder / "door").exists(), "--print-recipe ran it")
    out = stretto.run("run-ner", *flags, "-N", 2)
    require("***** train metrics *****" in out and "***** eval metrics *****" in out and "eval_f1" in out, out)
    results = stretto.json("door/all_results.json")
    require({"epoch", "train_loss", "train_runtime", "train_samples_per_second", "eval_f1", "eval_precision", "eval_accuracy",
             "eval_loss", "predict_f1"} <= set(results), f"{results}")
    state = stretto.json("door/trainer_state.json")
    require(state["global_step"] == 3 and state["log_history"][0]["learning_rate"] > 0, f"trainer_state.json: {state}")
    require({"config.json", "model.safetensors", "vocab.txt", "eval_results.json", "predict_results.json"} <=
            {path.name for path in (stretto.folder / "door").iterdir()}, "files of run_ner")
    lines = (stretto.folder / "door/predictions.txt").read_text().splitlines()
    tokens = [json.loads(line)["tokens"] for line in (stretto.folder / "data/test.jsonl").read_text().splitlines()]
    require([len(line.split()) for line in lines] == [len(words) for words in tokens], "predictions.txt")
    stretto.require_error("pass --overwrite_output_dir to train again", "run-ner", *flags)
    stretto.run("run-ner", "--model_name_or_path", "door", "--validation_file", "data/dev.jsonl", "--do_eval", "--output_dir", "evaluated",
                "--max_seq_length", "48")
    again = stretto.json("evaluated/eval_results.json")
    require(again["eval_f1"] == results["eval_f1"], f"{again} of {results}")
    check_refused_reruns(stretto, flags)


def check_refused_reruns(stretto, flags):
    """Evaluating in the folder of a trained model, and mistakes with --overwrite_output_dir, leave the run
    and its recipe unchanged."""
    door = stretto.folder / "door"
    kept = lambda: {path: path.read_bytes() for path in [door / "recipe.yaml", *(door / "run").rglob("*")] if path.is_file()}
    before = kept()
    for model in "door", "door/run/model":
        stretto.run("run-ner", "--model_name_or_path", model, "--validation_file", "data/dev.jsonl", "--do_eval", "--output_dir", "door",
                    "--max_seq_length", "48")
        require(kept() == before, f"evaluating {model} changed the run")
    for mistake, message in ([("--learning_rate", "abc"), "not a number"], [("--train_file", "data/nope.jsonl"), "nope.jsonl"],
                             [("--model_name_or_path", "nope"), "nope"], [("--model_name_or_path", "door/run/model"), "it is in door/run"],
                             [("--max_steps", "abc"), "expected a whole number"]):
        stretto.require_error(message, "run-ner", *with_flag(flags, *mistake), "--overwrite_output_dir")
        require(kept() == before, f"{mistake} changed the run")
    model, checkpoints = (door / "run/model/model.safetensors").read_bytes(), sorted(path.name for path in (door / "run/checkpoints").iterdir())
    require(checkpoints != [], "the run has no checkpoint to stand aside")
    stretto.run("run-ner", *with_flag(flags, "--learning_rate", "1e-3"), "--overwrite_output_dir", "-N", 2)
    require((door / "previous-1/model/model.safetensors").read_bytes() == model, "previous-1/ does not hold the earlier model")
    require(sorted(path.name for path in (door / "previous-1/checkpoints").iterdir()) == checkpoints, "previous-1/ lacks checkpoints")
    require((door / "model.safetensors").read_bytes() == (door / "run/model/model.safetensors").read_bytes() != model, "the new model")
    require(not (door / "previous.new").exists(), "the earlier run still stands aside")
    # A folder in which another run writes is not changed.
    before = kept()
    with locked(door / "run"):
        stretto.require_error("another run is writing into door/run", "run-ner", *flags, "--overwrite_output_dir")
    require(kept() == before, "a run in progress was moved")
    # If a command is killed while the earlier run is moved aside, the next command restores it, even if it is
    # refused itself.
    before = kept()
    (door / "run").rename(door / "previous.new")
    stretto.require_error("nope.jsonl", "run-ner", *with_flag(flags, "--train_file", "data/nope.jsonl"), "--overwrite_output_dir")
    require(kept() == before, "the run that stood aside was not brought back")


@contextlib.contextmanager
def locked(run):
    """Locks the folder like a run in progress."""
    folder = os.open(run, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def with_flag(flags, name, value):
    flags = list(flags)
    if name not in flags:
        return [*flags, name, value]
    flags[flags.index(name) + 1] = value
    return flags


def check_flair_door(stretto):
    """run-flair-ner reads Flair's folders of column files and writes Flair's files."""
    folder = stretto.folder / "columns"
    folder.mkdir()
    for name in ["train", "dev", "test"]:
        (folder / f"{name}.txt").write_text((stretto.folder / f"data/{name}.conll").read_text())
    shutil.copytree(stretto.folder / "one/model", stretto.folder / "base")  # an encoder with the head of another task
    config = stretto.json("base/config.json")
    (stretto.folder / "base/config.json").write_text(json.dumps({**config, "architectures": ["BertForSequenceClassification"]}))
    flags = ["--model_name_or_path", "base", "--dataset_name", "columns", "--num_epochs", "1", "--batch_size", "16", "--learning_rate",
             "1e-3", "--devices", "2", "--accelerator", "cpu", "--strategy", "ddp", "--output_dir", "tagger"]
    recipe = stretto.run("run-flair-ner", *flags, "--print-recipe")
    require("tag_scheme: IOBES" in recipe and not (stretto.folder / "tagger").exists(), recipe)
    out = stretto.run("run-flair-ner", *flags)
    require("***** eval metrics *****" in out and "predict_f1" in out, out)
    header, row = (stretto.folder / "tagger/loss.tsv").read_text().splitlines()
    losses = dict(zip(header.split("\t"), row.split("\t")))
    require(losses["EPOCH"] == "1" and 0 < float(losses["DEV_F1"]) <= 1 and float(losses["TRAIN_LOSS"]) > 0, f"{losses}")
    for name, source in [("dev", "dev"), ("test", "test")]:
        blocks = (stretto.folder / f"tagger/{name}.tsv").read_text().strip("\n").split("\n\n")
        gold = (stretto.folder / f"data/{source}.conll").read_text().strip("\n").split("\n\n")
        require(len(blocks) == len(gold), f"{name}.tsv has {len(blocks)} sentences of {len(gold)}")
        for block, wanted in zip(blocks, gold):
            rows = [line.split(" ") for line in block.splitlines()]
            require([row[:2] for row in rows] == [line.split(" ") for line in wanted.splitlines()], f"{name}.tsv: {block}")
            require(all(row[2] == "O" or row[2][:2] in ("B-", "I-") for row in rows), f"{name}.tsv: {block}")
    (stretto.folder / "flair.json").write_text(json.dumps(
        {"model_name_or_path": "base", "dataset_name": "columns", "num_epochs": 1, "output_dir": "tagger"}))
    require("epochs: 1" in stretto.run("run-flair-ner", "flair.json", "--print-recipe"), "a .json file of flags")
    stretto.require_error("--context_size -1", "run-flair-ner", *flags, "--context_size", "-1")
    stretto.require_error("stretto downloads nothing", "run-flair-ner", "--model_name_or_path", "m", "--dataset_name", "WNUT_17")


def check_export(stretto):
    """export-corpus keeps tokens, tags and spans as lists; run_ner's reader gives the same corpus back."""
    counts = json.loads(stretto.run("export-corpus", "--train", "data/train.conll", "--validation", "data/dev.conll", "--test",
                                    "data/test.jsonl", "--output", "exported"))
    for name, source in [("train", "train"), ("validation", "dev"), ("test", "test")]:
        lines = [json.loads(line) for line in (stretto.folder / f"exported/{name}.json").read_text().splitlines()]
        wanted = [json.loads(line) for line in (stretto.folder / f"data/{source}.jsonl").read_text().splitlines()]
        require([(line["tokens"], line["ner_tags"]) for line in lines] == [(line["tokens"], line["ner_tags"]) for line in wanted], name)
        found = [[(span["type"], span["begin"], span["end"]) for span in line["spans"]] for line in lines]
        require(found == [spans_of(line["ner_tags"]) for line in wanted], f"spans of {name}")
        require(counts[name]["spans"] == sum(map(len, found)) > 0 and counts[name]["sentences"] == len(lines), f"{counts}")
    require([line["id"] for line in lines[:2]] == ["0", "1"], "ids")
    stretto.require_error("--label: data/train.conll has", "export-corpus", "--train", "data/train.conll", "--label", "9", "--output", "exported")
    stretto.require_error("it already exists; pass --overwrite", "export-corpus", "--train", "data/train.conll", "--output", "exported")
    stretto.run("export-corpus", "--train", "exported/train.json", "--output", "exported", "--overwrite", "--tag-scheme", "IOBES")
    require('"S-LOC"' in (stretto.folder / "exported/train.json").read_text(), "--tag-scheme")
    stretto.require_error("there is nothing to export", "export-corpus", "--output", "nothing")
    stretto.require_error("broken.conll:2", "export-corpus", "--train", "data/broken.conll", "--output", "nothing")
    require(not (stretto.folder / "nothing").exists(), "a failed export left a folder")


def predict_words(stretto, run):
    """All forms of sentences that are split into words give the same entities; compare_tokens.py compares
    them with transformers."""
    sentences = [text.split() for text in TEXTS] + [["Blue River", "in", "caf\u00e9", "new", "york"]]
    folder = stretto.folder
    (folder / "words.jsonl").write_text("".join(json.dumps({"id": 1, "tokens": words}) + "\n" for words in sentences))
    for strategy in ["none", "simple", "first", "average", "max"]:
        predict = ["predict", "--model", f"{run}/model", "--aggregation-strategy", strategy, "--output", "pipeline"]
        (folder / f"words.{strategy}.jsonl").write_text(stretto.run(*predict, "--input", "words.jsonl"), encoding="utf-8")
    (folder / "lists.json").write_text(json.dumps({"inputs": sentences}))
    require(stretto.run(*predict, "--input", "lists.json", "--split-into-words") == stretto.run(*predict, "--input", "words.jsonl"),
            "a list of words and an object with tokens give different entities")
    lines = "".join(" ".join(words) + "\n" for words in sentences[:-1])
    require(stretto.run(*predict, "--split-into-words", stdin=lines) == "".join(
        (folder / "words.max.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)[:-1]), "words of lines")


def main(program, folder):
    folder = emptied(folder)
    write_inputs(folder)
    (folder / "ner.yaml").write_text(RECIPE)
    stretto = Stretto(program, folder)
    run = check_ranks_and_resuming(stretto, "ner.yaml", ["fsdp"])
    stretto.run("test", "ner.yaml", "-N", 2, "--no-pin", f"output={run}")
    check_results(stretto, run)
    check_inputs(stretto)
    check_door(stretto)
    check_flair_door(stretto)
    check_export(stretto)
    texts = [word for text in TEXTS for word in ("--text", text)]
    for strategy in ["none", "simple", "first", "average", "max"]:
        (folder / f"{strategy}.jsonl").write_text(
            stretto.run("predict", "--model", f"{run}/model", "--aggregation-strategy", strategy, *texts), encoding="utf-8")
    predict_words(stretto, run)
    (folder / "logits.jsonl").write_text(
        stretto.run("predict", "--model", f"{run}/model", "--output", "logits", *texts), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
