#!/usr/bin/env python3
"""The flags of Hugging Face's example scripts and what run-glue, run-ner and run-qa do with them.

    scripts_test.py STRETTO
"""

import json
import math
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from workspace import SOURCE, Stretto, require, require_close, write_inputs

NER = ["--config_name", "encoder/config.json", "--tokenizer_name", "encoder", "--train_file", "data/train.jsonl", "--validation_file",
       "data/dev.jsonl", "--test_file", "data/test.jsonl", "--max_seq_length", "48", "--logging_steps", "1", "--seed", "5"]


MISTAKES = [
    ("--per_device_train_batch_size", "0", ": training.batch_size: 0 is out of range"),
    ("--gradient_accumulation_steps", "0", ": training.grad_accumulation_steps"),
    ("--max_seq_length", "1", ": data.max_length: 1 is out of range"),
    ("--max_seq_length", "100000", ": data.max_length: 100000 exceeds the 64 positions of the model"),
    ("--num_train_epochs", "-1", ": training.epochs: -1 is out of range"),
    ("--num_train_epochs", "abc", ": training.epochs: \"abc\" is not a number"),
    ("--learning_rate", "-1", ": optimizer.lr: -1 is out of range"),
    ("--seed", "-3", ": training.seed: -3 is out of range"),
    ("--data_seed", "7", ": there is one seed"),
    ("--max_steps", "many", ": expected a whole number"),
    ("--optim", "lion", ": it is not supported; expected one of adafactor"),
    ("--lr_scheduler_type", "cosin", ": it is not supported; did you mean \"cosine\"?"),
    ("--lr_scheduler_type", "reduce_lr_on_plateau", ": scheduler.type: ReduceLROnPlateau follows a metric"),
    ("--lr_scheduler_kwargs", "{\"num_cycle\": 1}", ": scheduler.num_cycle is not a setting"),
    ("--lr_scheduler_kwargs", "2", ": expected a JSON object"),
    ("--warmup_ratio", "2", ": expected a part of all steps"),
    ("--warmup_steps", "1.5", ": expected a whole number of steps"),
    ("--save_steps", "0", ": expected a whole number of steps"),
    ("--save_strategy", "best", ": nothing is evaluated"),
    ("--eval_strategy", "sometimes", ": expected no, epoch or steps"),
    ("--metric_for_best_model", "nothing", ": checkpoint.monitor: \"nothing\" is not a built-in metric"),
    ("--text_column_name", "nope", ": data.text: data/train.jsonl:1 has no key \"nope\""),
    ("--train_file", "data/nope.jsonl", ": data.train: data/nope.jsonl does not exist"),
    ("--resume_from_checkpoint", "nowhere", ": resume: nowhere does not exist"),
    ("--deepspeed", "ds.json", ": pass --strategy zero1"),
    ("--fsdp", "offload", ": offload is not supported"),
    ("--neftune_noise_alpha", "5", ": noise on embeddings"),
    ("--dataloader_drop_last", "True", ": each sample of an epoch"),
    ("--push_to_hub", "True", ": stretto uploads nothing"),
    ("--auto_find_batch_size", "True", ": pass --per_device_train_batch_size"),
    ("--doc_stride", "8", ": question_answering does not apply"),
]


def read_lines(path):
    return path.read_text().splitlines()


def write_head(source, target, count):
    target.write_text("".join(line + "\n" for line in read_lines(source)[:count]))


def model_bytes(stretto, run):
    return (stretto.folder / run / "model.safetensors").read_bytes()


def check_limits(stretto):
    """--max_*_samples read the first samples, with the same result as shorter files, on any number of
    ranks."""
    for name, count in (("train", 40), ("dev", 9), ("test", 7)):
        write_head(stretto.folder / f"data/{name}.jsonl", stretto.folder / f"data/short-{name}.jsonl", count)
    stages = ["--do_train", "--do_eval", "--do_predict", "--num_train_epochs", "1", "--learning_rate", "5e-3"]
    limits = ["--max_train_samples", "40", "--max_eval_samples", "9", "--max_predict_samples=7"]
    stretto.run("run-ner", *NER, *stages, *limits, "--output_dir", "limited", "-N", 1)
    short = [word.replace("data/", "data/short-") for word in NER]
    stretto.run("run-ner", *short, *stages, "--output_dir", "short", "-N", 1)
    require(model_bytes(stretto, "limited") == model_bytes(stretto, "short"), "--max_train_samples 40 is not the first 40 samples")
    for results in "eval_results.json", "predict_results.json":
        found, wanted = stretto.json(f"limited/{results}"), stretto.json(f"short/{results}")
        require(found.keys() == wanted.keys() and all(
            found[key] == wanted[key] for key in wanted if key.endswith(("f1", "accuracy", "loss"))), f"{results}: {found}, {wanted}")
    require(len(read_lines(stretto.folder / "limited/predictions.txt")) == 7, "--max_predict_samples 7: predictions.txt")
    # Two ranks have half of the batch each.
    stretto.run("run-ner", *NER, *stages, *limits, "--per_device_train_batch_size", 4, "--output_dir", "limited2", "-N", 2)
    two, one = stretto.json("limited2/eval_results.json"), stretto.json("limited/eval_results.json")
    require_close("2 ranks", {"loss": two["eval_loss"]}, {"loss": one["eval_loss"]}, 1e-3)
    stretto.run("run-ner", *NER, *stages, "--max_train_samples", "100000", "--max_steps", "2", "--output_dir", "all")
    for wrong in "0", "-1", "1.5", "many":
        stretto.require_error("max_train_samples", "run-ner", *NER, "--do_train", "--max_train_samples", wrong, "--output_dir", "wrong")
        require(not (stretto.folder / "wrong/run/model").exists(), f"--max_train_samples {wrong} trained")


def check_question_limits(stretto):
    flags = ["run-qa", "--config_name", "encoder/config.json", "--tokenizer_name", "encoder", "--validation_file", "data/dev.json",
             "--max_seq_length", "48", "--doc_stride", "8", "--version_2_with_negative"]
    stretto.run(*flags, "--train_file", "data/train.json", "--do_train", "--do_eval", "--max_steps", 2, "--max_train_samples", 12,
                "--max_eval_samples", 5, "--output_dir", "questions")
    require(len(stretto.json("questions/eval_predictions.json")) == 5, "--max_eval_samples 5: eval_predictions.json")
    require(stretto.json("questions/eval_results.json")["eval_total"] == 5, "eval_results.json")


def check_recipe_settings(stretto):
    """Tests the same limits in a recipe."""
    (stretto.folder / "ner.yaml").write_text(
        "task: token-classification\nmodel: {config: encoder/config.json}\ntokenizer: {path: encoder}\n"
        "data: {train: data/train.jsonl, validation: data/dev.jsonl, test: data/test.jsonl, max_length: 48, max_train_samples: 40,\n"
        "       max_validation_samples: 9, max_test_samples: 7}\n"
        "training: {epochs: 1.5, batch_size: 8}\n")
    stretto.train("ner.yaml", "recipe", 1)
    summary = stretto.json("recipe/summary.json")
    require((summary["training_samples"], summary["steps"]) == (40, 8), f"1.5 epochs of 40 samples in batches of 8: {summary}")
    stretto.run("test", "ner.yaml", "output=recipe")
    require(len(read_lines(stretto.folder / "recipe/predictions.jsonl")) == 7, "data.max_test_samples: 7")
    stretto.require_error("it limits data.validation, which is not set", "train", "ner.yaml", "data.validation=null", "evaluate.every=never")


def check_numbered_tags(stretto):
    """Numeric ner_tags are named by a trained model's classes; without one, each number is a class."""
    names = sorted({tag for line in read_lines(stretto.folder / "data/train.jsonl") for tag in json.loads(line)["ner_tags"]})
    for part in "train", "dev", "test":
        rows = [json.loads(line) for line in read_lines(stretto.folder / f"data/{part}.jsonl")]
        (stretto.folder / f"data/numbered-{part}.jsonl").write_text("".join(
            json.dumps({**row, "ner_tags": [names.index(tag) for tag in row["ner_tags"]]}) + "\n" for row in rows))
    numbered = [word.replace("data/", "data/numbered-") for word in NER[4:]]
    stretto.run("run-ner", "--model_name_or_path", "limited", *numbered, "--do_eval", "--max_eval_samples", 9, "--output_dir", "named")
    require(stretto.json("named/eval_results.json")["eval_f1"] == stretto.json("limited/eval_results.json")["eval_f1"],
            "numbers are not the classes of the model")
    stretto.run("run-ner", *NER[:4], *numbered, "--do_train", "--do_predict", "--max_steps", 2, "--output_dir", "numbers")
    labels = stretto.json("numbers/config.json")["id2label"]
    require(labels == {str(i): str(i) for i in range(len(names))}, f"{labels}")
    words = " ".join(read_lines(stretto.folder / "numbers/predictions.txt")).split()
    require(set(words) <= set(labels), f"predictions.txt: {set(words)}")


def check_interruption(stretto):
    """After Ctrl-C the command ends once the ranks have saved; the same command continues the run."""
    flags = ["run-ner", *NER, "--do_train", "--do_eval", "--max_steps", "1000", "--output_dir", "stopped", "-N", "2"]
    for stop in signal.SIGINT, signal.SIGTERM:
        process = subprocess.Popen([stretto.program, *flags], cwd=stretto.folder, stderr=subprocess.PIPE, encoding="utf-8")
        lines = []
        for line in process.stderr:
            lines.append(line)
            if line.startswith("step ") and len([line for line in lines if line.startswith("step ")]) == 20:
                process.send_signal(stop)
        require(process.wait() == 0, "".join(lines))
        require("the same command continues it" in lines[-1], "".join(lines))
        require(list((stretto.folder / "stopped/run/checkpoints").iterdir()) != [], "no checkpoint was saved")
        require(not (stretto.folder / "stopped/config.json").exists(), "results of a run that has not finished")
    changed = [*flags, "--learning_rate", "1e-4"]
    stretto.require_error("accept the change with --set 'checkpoint.accept_changes=[optimizer.lr]'", *changed)
    stretto.run(*changed, "--set", "checkpoint.accept_changes=[optimizer.lr]")
    summary, train = stretto.json("stopped/run/summary.json"), stretto.json("stopped/train_results.json")
    before = summary["resumed_after_step"]
    require(before > 20, "the second run has not resumed")
    steps = 1000 - before
    log = (stretto.folder / "stopped/run/logger_logs/training_0.log").read_text()
    require(f"| {steps} steps after step {before}, " in log, log)
    require(math.isclose(train["train_steps_per_second"], steps / summary["seconds"], rel_tol=1e-9), f"{train}")


def check_errors(stretto):
    """Each of thirty mistakes names its flag and leaves the run in --output_dir unchanged."""
    out = stretto.folder / "limited"
    kept = lambda: {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and path.suffix != ".log"}
    before = kept()
    for flag, value, message in MISTAKES:
        words = [flag, value] if value else [flag]
        if flag == "--metric_for_best_model":
            words += ["--eval_strategy", "epoch"]
        if flag == "--train_file":
            flags = [value if word == "data/train.jsonl" else word for word in NER]
        else:
            flags = [*NER, *words]
        stretto.require_error(f"{flag}{' ' + value if value else ''}{message}", "run-ner", *flags, "--do_train", "--overwrite_output_dir",
                              "--output_dir", "limited")
        require(kept() == before, f"{words} changed the folder")


def check_files(stretto):
    """Tests the fields that the scripts write and the values that they print."""
    out = stretto.run("run-ner", *NER, "--do_train", "--do_eval", "--do_predict", "--num_train_epochs", "2.5", "--per_device_train_batch_size", 4,
                      "--logging_steps", 10, "--eval_strategy", "epoch", "--learning_rate", "5e-3", "--output_dir", "files", "-N", 2)
    require([line.split()[0] for line in out.splitlines() if " f1" in line or "_f1" in line] == ["eval_f1", "predict_f1"], out)
    train, state = stretto.json("files/train_results.json"), stretto.json("files/trainer_state.json")
    samples = len(read_lines(stretto.folder / "data/train.jsonl"))
    steps = math.ceil(samples / 8)
    require(train["total_flos"] > 0 and state["total_flos"] == train["total_flos"], f"{train}, {state}")
    require(train["train_samples"] == samples and train["epoch"] == 2.5 and train["train_steps_per_second"] > 0, f"{train}")
    require((state["max_steps"], state["global_step"], state["num_train_epochs"]) == (steps * 5 // 2, steps * 5 // 2, 3), f"{state}")
    entries = state["log_history"]
    require([entry["step"] for entry in entries if "loss" in entry] == list(range(10, steps * 5 // 2 + 1, 10)), f"{entries}")
    require(all(set(entry) == {"epoch", "step", "loss", "grad_norm", "learning_rate"} for entry in entries if "loss" in entry), f"{entries}")
    best = max(entry["eval_f1"] for entry in entries if "eval_f1" in entry)
    require(state["best_metric"] == best and (stretto.folder / state["best_model_checkpoint"] / "config.json").exists(), f"{state}")
    require(entries[-1]["train_loss"] == train["train_loss"] and entries[-1]["step"] == state["global_step"], f"{entries[-1]}")
    evaluation = stretto.json("files/eval_results.json")
    require(set(evaluation) == {"epoch"} | {f"eval_{name}" for name in
            ("accuracy", "f1", "loss", "precision", "recall", "runtime", "samples", "samples_per_second", "steps_per_second")}, f"{evaluation}")
    require(evaluation["eval_samples"] == 26 and math.isclose(evaluation["eval_samples_per_second"] * evaluation["eval_runtime"], 26), f"{evaluation}")
    golden = json.loads((SOURCE / "tests/golden/trainer/keys.json").read_text())["log_history"]["evaluation"]
    for entry in (entry for entry in entries if "eval_f1" in entry):
        require(set(golden) <= set(entry) and entry["eval_runtime"] > 0, f"{entry} lacks keys of transformers' {golden}")
        for name in ("eval_samples_per_second", "eval_steps_per_second"):  # the numbers of samples and of steps
            require(math.isclose(entry[name] * entry["eval_runtime"], evaluation[name] * evaluation["eval_runtime"]), f"{name}: {entry}, {evaluation}")
    merged = stretto.json("files/all_results.json")
    require(merged == {**train, **evaluation, **stretto.json("files/predict_results.json")}, f"{merged}")
    # An evaluation alone reports the metrics of each type; earlier values stay in all_results.json.
    stretto.run("run-ner", *NER, "--model_name_or_path", "files", "--do_eval", "--return_entity_level_metrics", "--output_dir", "files")
    types = stretto.json("files/eval_results.json")
    require(types["eval_overall_f1"] == evaluation["eval_f1"] and "eval_f1" not in types and "epoch" not in types, f"{types}")
    require(types["eval_PER_number"] + types["eval_LOC_number"] + types["eval_ORG_number"] > 0, f"{types}")
    require(stretto.json("files/all_results.json") == {**merged, **types}, "all_results.json")


def check_flair_files(stretto):
    """Tests loss.tsv and training.log of run-flair-ner, in Flair's format."""
    (stretto.folder / "columns").mkdir()
    for part in "train", "dev", "test":
        shutil.copy(stretto.folder / f"data/{part}.conll", stretto.folder / f"columns/{part}.txt")
    shutil.copytree(stretto.folder / "files/run/model", stretto.folder / "base")
    config = stretto.json("base/config.json")  # an encoder with the head of another task
    (stretto.folder / "base/config.json").write_text(json.dumps({**config, "architectures": ["BertForSequenceClassification"]}))
    stretto.run("run-flair-ner", "--model_name_or_path", "base", "--dataset_name", "columns", "--num_epochs", 2, "--batch_size", 16,
                "--learning_rate", "5e-3", "--devices", 2, "--accelerator", "cpu", "--output_dir", "flair")
    header, *rows = [line.split("\t") for line in read_lines(stretto.folder / "flair/loss.tsv")]
    require(header == ["EPOCH", "TIMESTAMP", "BAD_EPOCHS", "LEARNING_RATE", "TRAIN_LOSS", "DEV_LOSS", "DEV_PRECISION", "DEV_RECALL", "DEV_F1",
                       "DEV_ACCURACY"], f"{header}")
    require(len(rows) == 2 and all(re.fullmatch(r"\d\d:\d\d:\d\d", row[1]) for row in rows), f"{rows}")
    log = (stretto.folder / "flair/training.log").read_text()
    time = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} "
    steps = re.findall(time + r"epoch (\d) - iter (\d+)/10 - loss \d+\.\d{8} - time \(sec\): \d+\.\d\d - samples/sec: .* - lr: \d\.\d{6} - momentum: 0.000000$",
                       log, re.MULTILINE)
    require(steps == [(str(epoch), str(step)) for epoch in (1, 2) for step in range(1, 11)], log)
    require(re.findall(time + r"EPOCH (\d) done: loss \d+\.\d{4} - lr: ", log, re.MULTILINE) == ["1", "2"], log)
    require(len(re.findall(time + r"DEV : loss .* - f1-score \(micro avg\)  ", log, re.MULTILINE)) == 2, log)
    results = stretto.json("flair/predict_results.json")
    require(f"- F-score (micro) {results['predict_f1']:.4f}\n" in log and "     micro avg" in log, log)


def main(program):
    with tempfile.TemporaryDirectory(prefix="stretto-scripts-") as temporary:
        folder = pathlib.Path(temporary)
        write_inputs(folder)
        stretto = Stretto(program, folder)
        check_limits(stretto)
        check_question_limits(stretto)
        check_recipe_settings(stretto)
        check_numbered_tags(stretto)
        check_files(stretto)
        check_flair_files(stretto)
        check_errors(stretto)
        check_interruption(stretto)


if __name__ == "__main__":
    main(sys.argv[1])
