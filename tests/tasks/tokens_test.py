#!/usr/bin/env python3
"""The task token-classification, from CoNLL files and JSON Lines to predictions.

    tokens_test.py STRETTO PYTHON...
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from workspace import SKIPPED, Stretto, check_ranks_strategies_and_resuming, find_python, require, write_inputs

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
    """JSON Lines give the same model as CoNLL; windows cover all words; what is wrong is named."""
    steps = ["training.max_steps=6", "evaluate.every=never"]
    stretto.train("ner.yaml", "conll", 1, *steps)
    stretto.train("ner.yaml", "jsonl", 1, *steps, "data.train=data/train.jsonl")
    require((stretto.folder / "conll/model/model.safetensors").read_bytes() ==
            (stretto.folder / "jsonl/model/model.safetensors").read_bytes(), "CoNLL and JSON Lines give different models")
    stretto.train("ner.yaml", "schemes", 1, *steps, "token_classification.tag_scheme=IOBES",
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
    require(stretto.json("door/trainer_state.json")["global_step"] == 3, "trainer_state.json")
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


def main(program, candidates):
    with tempfile.TemporaryDirectory(prefix="stretto-tokens-") as temporary:
        folder = pathlib.Path(temporary)
        write_inputs(folder)
        (folder / "ner.yaml").write_text(RECIPE)
        stretto = Stretto(program, folder)
        run = check_ranks_strategies_and_resuming(stretto, "ner.yaml")
        stretto.run("test", "ner.yaml", "-N", 2, "--no-pin", f"output={run}")
        check_results(stretto, run)
        check_inputs(stretto)
        check_door(stretto)
        python = find_python(candidates)
        if python is None:
            return SKIPPED
        texts = [word for text in TEXTS for word in ("--text", text)]
        for strategy in ["none", "simple", "first", "average", "max"]:
            (folder / f"{strategy}.jsonl").write_text(
                stretto.run("predict", "--model", f"{run}/model", "--aggregation-strategy", strategy, *texts), encoding="utf-8")
        (folder / "logits.jsonl").write_text(
            stretto.run("predict", "--model", f"{run}/model", "--output", "logits", *texts), encoding="utf-8")
        return subprocess.run([python, pathlib.Path(__file__).with_name("compare_tokens.py"), folder, run]).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
