#!/usr/bin/env python3
"""The task question-answering, from SQuAD's files to predictions.

    questions_test.py STRETTO FOLDER

transformers_test.py compares the predictions in FOLDER with those of transformers.
"""

import json
import re
import sys

from workspace import Stretto, check_ranks_and_resuming, check_without_validation, emptied, require, require_close, write_inputs

RECIPE = """
task: question-answering
model: {config: encoder/config.json}
tokenizer: {path: encoder}
data: {train: data/train.json, validation: data/dev.json, test: data/test.json, max_length: 32}
question_answering: {doc_stride: 8}
training: {epochs: 3, global_batch_size: 8, device: cpu}
optimizer: {lr: 3.0e-3}
checkpoint: {keep_last: 0}
track: {progress: "off", log_every: 1}
"""


def check_results(stretto, run):
    results = stretto.json(f"{run}/test_results.json")
    require(results.pop("loss") > 0 and results["total"] == 26, f"{results}")
    scored = json.loads(stretto.run("score", "squad", "data/test.json", f"{run}/predictions.json", "--na-prob",
                                    f"{run}/null_odds.json", "--na-prob-thresh", "1e300"))
    require(scored == results, f"stretto score gives {scored}, stretto test {results}")
    best = stretto.json(f"{run}/nbest_predictions.json")
    for name, answer in stretto.json(f"{run}/predictions.json").items():
        candidates = best[name]
        require(abs(sum(one["probability"] for one in candidates) - 1) < 1e-9 and len(candidates) <= 21, f"{name}: {candidates}")
        require(answer == "" or answer in [one["text"] for one in candidates], f"{name}: {answer} of {candidates}")


def check_inputs(stretto):
    check_without_validation(stretto, "qa.yaml", "unevaluated")
    steps = ["training.max_steps=4", "evaluate.every=never"]
    data = stretto.json("data/train.json")
    answerable = [{"id": qa["id"], "title": "t", "context": paragraph["context"], "question": qa["question"],
                   "answers": {"text": [answer["text"] for answer in qa["answers"]],
                               "answer_start": [answer["answer_start"] for answer in qa["answers"]]}}
                  for paragraph in data["data"][0]["paragraphs"] for qa in paragraph["qas"] if qa["answers"]]
    lines = "".join(json.dumps(row) + "\n" for row in answerable)
    (stretto.folder / "data/flat.jsonl").write_text(lines)
    # Without unanswerable questions the metrics are those of SQuAD 1.1.
    flat = ["data.train=data/flat.jsonl", "data.validation=data/flat.jsonl", "data.test=data/flat.jsonl"]
    stretto.train("qa.yaml", "flat", 1, *flat, "training.max_steps=4")
    require(set(stretto.json("flat/dev_results.json")) >= {"exact_match", "f1"}, "metrics of SQuAD 1.1")
    stretto.run("test", "qa.yaml", "output=flat", *flat)
    require("" not in stretto.json("flat/predictions.json").values(), "an empty answer where all questions have one")
    require(not (stretto.folder / "flat/null_odds.json").exists(), "null_odds.json")
    stretto.require_error("question_answering.version_2_with_negative: it is false, but data/train.json: question", "train",
                          "qa.yaml", "output=x", "question_answering.version_2_with_negative=false")
    moved = json.loads(json.dumps(answerable[:9]))
    moved[3]["answers"]["answer_start"][0] += 1
    (stretto.folder / "data/moved.jsonl").write_text("".join(json.dumps(row) + "\n" for row in moved))
    stretto.require_error("data/moved.jsonl:4: question", "train", "qa.yaml", "output=x", "data.train=data/moved.jsonl")
    stretto.train("qa.yaml", "moved", 1, *steps, "data.train=data/moved.jsonl", "question_answering.misplaced_answers=skip")
    log = (stretto.folder / "moved/logger_logs/training_0.log").read_text()
    require("skipping data/moved.jsonl:4: question" in log and "8 questions" in log, log)
    stretto.require_error("which leaves too little of data.max_length: 16", "train", "qa.yaml", "output=x", "data.max_length=16",
                          "question_answering.doc_stride=6")
    stretto.require_error("token_classification does not apply with task: question-answering", "train", "qa.yaml", "output=x",
                          "token_classification.stride=8")
    (stretto.folder / "data/empty.json").write_text('{"data": []}')
    stretto.require_error("data/empty.json: the file has no questions", "train", "qa.yaml", "output=x", "data.train=data/empty.json")
    (stretto.folder / "data/blank.jsonl").write_text(json.dumps({"id": "1", "context": "", "question": "who ?"}) + "\n")
    stretto.run("test", "qa.yaml", "output=flat", "data.test=data/blank.jsonl")
    require(stretto.json("flat/predictions.json") == {"1": ""}, "an empty context")


def check_one_kind(stretto, run):
    """If all questions are answerable, or none is, the metrics are those of SQuAD 2.0's script for that kind
    alone. One kind is evaluated as SQuAD's document, the other as rows."""
    document = stretto.json("data/test.json")
    kinds = {"HasAns": lambda qa: qa["answers"], "NoAns": lambda qa: not qa["answers"]}
    for kind, keep in kinds.items():
        paragraphs = [{**part, "qas": [{**qa, "is_impossible": not qa["answers"]} for qa in part["qas"] if keep(qa)]}
                      for part in document["data"][0]["paragraphs"]]
        data = {"version": "v2.0", "data": [{"title": "t", "paragraphs": [part for part in paragraphs if part["qas"]]}]}
        rows = [{"id": qa["id"], "context": part["context"], "question": qa["question"], "is_impossible": qa["is_impossible"],
                 "answers": {key: [answer[key] for answer in qa["answers"]] for key in ("text", "answer_start")}}
                for part in paragraphs for qa in part["qas"]]
        (stretto.folder / f"data/{kind}.json").write_text(json.dumps(data))
        (stretto.folder / f"data/{kind}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        version_2 = "question_answering.version_2_with_negative=true"  # of HasAns files the questions themselves say 1.1
        wanted = {"exact", "f1", "total", "best_exact", "best_exact_thresh", "best_f1", "best_f1_thresh"}
        wanted |= {f"{kind}_{name}" for name in ("exact", "f1", "total")}
        file = f"data/{kind}.json" if kind == "HasAns" else f"data/{kind}.jsonl"
        stretto.run("test", "qa.yaml", f"output={run}", f"data.test={file}", version_2)
        results = stretto.json(f"{run}/test_results.json")
        require(results.pop("loss") > 0 and set(results) == wanted, f"{file}: {results}")
        require(results["total"] == results[f"{kind}_total"] == len(rows), f"{file}: {results}")
        require(results["exact"] == results[f"{kind}_exact"], f"{file}: {results}")
        scored = json.loads(stretto.run("score", "squad", file, f"{run}/predictions.json", "--version", "2.0", "--na-prob",
                                        f"{run}/null_odds.json", "--na-prob-thresh", "1e300"))
        require(scored == results, f"stretto score gives {scored}, stretto test {results}")
        plain = json.loads(stretto.run("score", "squad", file, f"{run}/predictions.json", "--version", "2.0"))
        require(set(plain) == {name for name in wanted if not name.startswith("best_")}, f"{plain}")
        # The file is used as validation data in training and in run-qa.
        stretto.train("qa.yaml", f"one-{kind}", 1, f"data.validation=data/{kind}.json", "training.max_steps=3", version_2)
        require(set(stretto.json(f"one-{kind}/dev_results.json")) >= wanted, f"{stretto.json(f'one-{kind}/dev_results.json')}")
        stretto.run("run-qa", "--model_name_or_path", f"{run}/model", "--validation_file", f"data/{kind}.json", "--do_eval",
                    "--version_2_with_negative", "--max_seq_length", 32, "--doc_stride", 8, "--output_dir", f"eval-{kind}")
        found = {name for name in stretto.json(f"eval-{kind}/eval_results.json") if "Ans" in name or "best" in name}
        require(found == {f"eval_{name}" for name in wanted if "Ans" in name or "best" in name}, f"{found}")
    # A test set without correct answers gives predictions only, also if no question is unanswerable.
    (stretto.folder / "data/unlabelled.jsonl").write_text("".join(
        json.dumps({key: row[key] for key in ("id", "context", "question")}) + "\n" for row in rows))
    stretto.run("test", "qa.yaml", f"output={run}", "data.test=data/unlabelled.jsonl")
    require(not (stretto.folder / run / "test_results.json").exists(), "results without right answers")
    require(set(stretto.json(f"{run}/predictions.json")) == {row["id"] for row in rows}, "predictions without right answers")
    stretto.run("test", "qa.yaml", f"output={run}", "data.test=data/unlabelled.jsonl", "question_answering.version_2_with_negative=false")
    require("" not in stretto.json(f"{run}/predictions.json").values(), "an empty answer where all questions have one")
    stretto.run("test", "qa.yaml", f"output={run}")


def check_version(stretto):
    """The questions of the evaluated file determine how it is scored, in training and in `stretto test`."""
    rows = [json.loads(line) for line in (stretto.folder / "data/flat.jsonl").read_text().splitlines()]
    marked = {"version": "v2.0", "data": [{**row, "is_impossible": False} for row in rows]}
    (stretto.folder / "data/marked.json").write_text(json.dumps(marked))
    data = ["data.train=data/marked.json", "data.validation=data/flat.jsonl", "data.test=data/flat.jsonl"]
    # This holds also if no answer of the model ever beats the null answer, and if it was trained on
    # unanswerable questions.
    for output, settings in {"marked": data, "mixed": data[1:]}.items():
        stretto.train("qa.yaml", output, 1, *settings, "training.max_steps=2",
                      "question_answering.null_score_diff_threshold=-1000")
        during = stretto.json(f"{output}/dev_results.json")
        stretto.run("test", "qa.yaml", f"output={output}", *settings, "question_answering.null_score_diff_threshold=-1000")
        after = stretto.json(f"{output}/test_results.json")
        require(set(during) == set(after) == {"exact_match", "f1", "loss"}, f"{during}, {after}")
        require_close("evaluation in training", during, after, 1e-5)
        log = (stretto.folder / output / "logger_logs/training_0.log").read_text()
        require("scoring    as SQuAD 1.1: every question of data/flat.jsonl has an answer" in log, log)
    log = (stretto.folder / "one/logger_logs/training_0.log").read_text()
    require(re.search(r"scoring    as SQuAD 2.0: \d+ of \d+ questions of data/dev.json have no answer", log), log)
    # Counts are integers in all written and printed results.
    total = stretto.json("one/dev_results.json")["HasAns_total"]
    require(isinstance(total, int) and f"HasAns_total {total} |" in log and f"HasAns_total {total}, " in log, f"{total}: {log}")
    require(f'"eval_HasAns_total":{total},' in (stretto.folder / "one/metrics.jsonl").read_text(), "metrics.jsonl")
    require(f'"HasAns_total": {total},' in (stretto.folder / "one/summary.json").read_text(), "summary.json")
    (stretto.folder / "data/twice.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows[:3], rows[1]]))
    twice = f'data/twice.jsonl:4: the id "{rows[1]["id"]}" occurs a second time, after line 2'
    stretto.require_error(twice, "train", "qa.yaml", "output=x", "data.validation=data/twice.jsonl")
    stretto.require_error(twice, "test", "qa.yaml", "output=one", "data.test=data/twice.jsonl")


def check_door(stretto):
    """run-qa writes the files of run_qa.py, and prints the values that job metrics search for."""
    out = stretto.run("run-qa", "--model_name_or_path", "one/model", "--train_file", "data/flat.jsonl", "--validation_file",
                      "data/flat.jsonl", "--do_train", "True", "--do_eval", "True", "--per_device_train_batch_size", 4,
                      "--max_steps", 3, "--max_seq_length", 32, "--doc_stride", 8, "--logging_steps", 1, "--output_dir", "door")
    for name in ["train_runtime", "train_samples_per_second", "epoch", "f1", "exact_match"]:  # names of metric definitions
        require(re.search(name + r".*=\D*(.*?)$", out, re.MULTILINE), f"{name} is not in:\n{out}")
    require({"eval_f1", "eval_exact_match", "train_loss"} <= set(stretto.json("door/all_results.json")), "all_results.json")
    require(set(stretto.json("door/eval_predictions.json")) == set(stretto.json("door/eval_nbest_predictions.json")), "predictions")
    stretto.run("run-qa", "--model_name_or_path", "door", "--version_2_with_negative", "--test_file", "data/test.json", "--do_predict",
                "--max_seq_length", 32, "--doc_stride", 8, "--output_dir", "predicted", "-N", 2)
    ids = {qa["id"] for article in stretto.json("data/test.json")["data"] for part in article["paragraphs"] for qa in part["qas"]}
    for name in ["predictions", "nbest_predictions", "null_odds"]:
        require(set(stretto.json(f"predicted/predict_{name}.json")) == ids, f"predict_{name}.json")
    recipe = stretto.run("run-qa", "--model_name_or_path", "one/model", "--train_file", "data/train.json", "--do_train",
                         "--version_2_with_negative", "--output_dir", "x", "--print-recipe")
    require("version_2_with_negative: true" in recipe, recipe)


def main(program, folder):
    folder = emptied(folder)
    write_inputs(folder)
    (folder / "qa.yaml").write_text(RECIPE)
    stretto = Stretto(program, folder)
    run = check_ranks_and_resuming(stretto, "qa.yaml", ["fsdp"])
    stretto.run("test", "qa.yaml", "-N", 2, "--no-pin", f"output={run}")
    check_results(stretto, run)
    check_inputs(stretto)
    check_one_kind(stretto, run)
    check_version(stretto)
    check_door(stretto)
    test = stretto.json("data/test.json")["data"][0]["paragraphs"]
    pairs = [f"{qa['question']}\t{paragraph['context']}" for paragraph in test for qa in paragraph["qas"]]
    (folder / "answers.jsonl").write_text(
        stretto.run("predict", "--model", f"{run}/model", "--top-k", 3, stdin="\n".join(pairs)), encoding="utf-8")
    (folder / "null_answers.jsonl").write_text(
        stretto.run("predict", "--model", f"{run}/model", "--top-k", 3, "--handle-impossible-answer", "--output", "pipeline",
                    stdin="\n".join(pairs)), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
