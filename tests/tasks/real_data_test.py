#!/usr/bin/env python3
"""The recipes and the scripts' flags on the real data sets: a few steps on two ranks, resumed, tested and predicted. Words, tags,
offsets and answers are those of the files, and scores of prediction files are those of `stretto test`.

    real_data_test.py STRETTO

Reads STRETTO_DATA and the encoder of `scripts/setup.sh demo`; skipped without either. Evaluates on the beginning of a file.
"""

import collections
import json
import math
import os
import pathlib
import sys
import tempfile

from workspace import NEW_BART, SOURCE, Stretto, require, spans_of, write_bart

SKIPPED = 77
STEPS = 6


def check_language_model(stretto):
    """recipes/clm.yaml on tinyshakespeare with a small model: two parts of a run give the losses of a whole one, and it is tested with
    windows; run-clm, with the lines that it takes for validation."""
    os.environ["STRETTO_TOKENIZER"] = str(stretto.data / "tokenizers/gpt2")
    small = [f"model.config.{key}={value}" for key, value in (("n_layer", 2), ("n_head", 2), ("n_embd", 32), ("n_positions", 128))]
    settings = [*small, f"training.max_steps={STEPS}", "track.log_every=1", "data.max_test_samples=20"]
    stretto.train("recipes/clm.yaml", "clm", 2, *settings)
    stretto.train("recipes/clm.yaml", "clm-parts", 2, *settings, "training.steps_this_run=2")
    stretto.train("recipes/clm.yaml", "clm-parts", 2, *settings)
    whole, parts = ([record["loss"] for record in records(stretto.folder / run / "metrics.jsonl") if "loss" in record]
                    for run in ("clm", "clm-parts"))
    require(len(whole) == STEPS and whole == parts, f"clm.yaml in one part: {whole}, in two: {parts}")
    require(whole[-1] < whole[0] and abs(whole[0] - math.log(50257)) < 0.1, f"clm.yaml: losses {whole}")
    stretto.run("test", "recipes/clm.yaml", "-N", 2, "--no-pin", "output=clm", *settings, "causal_lm.stride=64")
    results = stretto.json("clm/test_results.json")
    require(math.isclose(results["perplexity"], math.exp(results["loss"]), rel_tol=1e-6), f"{results}")
    text = stretto.data / "tinyshakespeare/input.txt"
    stretto.run("run-clm", "--model_name_or_path", "clm/model", "--train_file", text, "--do_train", "--do_eval", "--max_steps", STEPS,
                "--max_train_samples", 40, "--max_eval_samples", 20, "--block_size", 128, "-N", 2, "--output_dir", "door")
    results = stretto.json("door/all_results.json")
    require(results["perplexity"] > 1 and results["eval_samples"] == 20 and results["total_flos"] > 0, f"run-clm: {results}")


def find_encoder():
    for folder in [os.environ.get("STRETTO_ENCODER"), pathlib.Path(os.environ.get("STRETTO_DEPS", SOURCE / ".deps")) / "all-MiniLM-L6-v2"]:
        if folder and (pathlib.Path(folder) / "model.safetensors").exists():
            return str(pathlib.Path(folder).resolve())
    return None


def lines_of(path):
    return path.read_text(encoding="utf-8").splitlines()


def records(path):
    return [json.loads(line) for line in lines_of(path)]


def sentences_of(path):
    return ["\n".join(lines) for lines in blocks(lines_of(path))]


def blocks(lines):
    found = [[]]
    for line in lines:
        if line.strip():
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [lines for lines in found if lines]


def write_cuts(data, folder):
    """Writes the beginnings of the files, and splits Wikigold, which is one file, into three."""
    (folder / "sst2.tsv").write_text("\n".join(lines_of(data / "sst2/dev.tsv")[:201]) + "\n", encoding="utf-8")
    (folder / "sst2-train.tsv").write_text("\n".join(lines_of(data / "sst2/train.tsv")[:401]) + "\n", encoding="utf-8")
    wnut = sentences_of(data / "wnut17/emerging.dev.conll")
    (folder / "wnut.conll").write_text("\n\n".join(wnut[:200]) + "\n", encoding="utf-8")
    squad = json.loads((data / "squad2/train_dev.json").read_text(encoding="utf-8"))
    article = squad["data"][-1]
    small = {"version": squad["version"], "data": [{**article, "paragraphs": article["paragraphs"][:6]}]}
    (folder / "squad.json").write_text(json.dumps(small), encoding="utf-8")
    covid = json.loads((data / "covidqa/200421_covidQA.json").read_text(encoding="utf-8"))["data"]
    shortest = min(covid, key=lambda article: len(article["paragraphs"][0]["context"]))
    (folder / "covid.json").write_text(json.dumps({"data": [shortest]}), encoding="utf-8")
    wikigold = sentences_of(data / "wikigold/wikigold.conll.txt")
    (folder / "wikigold").mkdir()
    for name, part in [("train", wikigold[:160]), ("dev", wikigold[160:220]), ("test", wikigold[220:280])]:
        (folder / f"wikigold/{name}.txt").write_text("\n\n".join(part) + "\n", encoding="utf-8")


def test_results(stretto, name, evaluated, *settings):
    """Trains recipes/NAME.yaml for a few steps: the loss decreases, and a run that is resumed in the middle
    gives the same bits."""
    recipe, cuts = f"recipes/{name}.yaml", [f"data.validation={evaluated}", f"data.test={evaluated}", *settings]
    steps = [f"training.max_steps={STEPS}", "track.log_every=1", "checkpoint.keep_last=0"]
    stretto.train(recipe, name, 2, *cuts, *steps, f"checkpoint.every={STEPS // 2}")
    stretto.train(recipe, f"{name}-resumed", 2, *cuts, *steps, f"resume={name}/checkpoints/step-{STEPS // 2:08}")
    require((stretto.folder / f"{name}-resumed/model/model.safetensors").read_bytes() ==
            (stretto.folder / name / "model/model.safetensors").read_bytes(), f"{name}: a resumed run gives another model")
    losses = [record["loss"] for record in records(stretto.folder / name / "metrics.jsonl") if "loss" in record]
    require(len(losses) == STEPS and all(map(math.isfinite, losses)), f"{name}: {losses}")
    require(losses[-1] < losses[0] or name in ("sst2", "bart"), f"{name}: the loss does not decrease: {losses}")  # SST-2 needs more steps
    stretto.run("test", recipe, "-N", 2, "--no-pin", f"output={name}", *cuts)
    return stretto.json(f"{name}/test_results.json")


def check_sst2(stretto, name, *settings):
    """Tests recipes/sst2.yaml, and recipes/bart.yaml from random weights."""
    results = test_results(stretto, name, "sst2.tsv", *settings)
    predictions = records(stretto.folder / name / "predictions.jsonl")
    require(len(predictions) == 200 and 0.3 < results["accuracy"] <= 1, f"{results}")
    scored = json.loads(stretto.run("score", "glue", "sst2", "sst2.tsv", f"{name}/predictions.jsonl"))
    require(scored["accuracy"] == results["accuracy"], f"stretto score gives {scored}, stretto test {results}")
    texts = [line.split("\t")[1] for line in lines_of(stretto.data / "sst2/test.tsv")[1:40]]  # a file without labels
    found = stretto.run("predict", "--model", f"{name}/model", stdin="\n".join(texts)).splitlines()
    require([json.loads(line)["text"].strip() for line in found] == [text.strip() for text in texts], f"{found}")


def check_tagging(stretto, name):
    """Tests recipes/ner.yaml and recipes/tagger.yaml on WNUT-17."""
    results = test_results(stretto, name, "wnut.conll")
    loss = results.pop("loss")
    scored = json.loads(stretto.run("score", "seqeval", f"{name}/predictions.txt"))
    require(scored == results and loss > 0, f"{name}: stretto score gives {scored}, stretto test {results}")
    gold = sentences_of(stretto.folder / "wnut.conll")
    predicted = blocks(lines_of(stretto.folder / name / "predictions.txt"))
    require([[line.split("\t")[0] for line in lines] for lines in predicted] ==
            [[line.split("\t")[0] for line in block.split("\n")] for block in gold], f"{name}: words of predictions.txt")
    texts = [" ".join(line.split("\t")[0] for line in block.split("\n")) for block in gold[:40]]
    found = [json.loads(line) for line in stretto.run("predict", "--model", f"{name}/model", stdin="\n".join(texts)).splitlines()]
    require([record["text"] for record in found] == texts, f"{name}: texts of predict")
    for record in found:
        for entity in record["entities"]:
            require(0 <= entity["start"] < entity["end"] <= len(record["text"]) and 0 < entity["score"] <= 1, f"{name}: {record}")


def check_qa(stretto):
    results = test_results(stretto, "qa", "squad.json")
    loss = results.pop("loss")
    files = ["qa/predictions.json", "--na-prob", "qa/null_odds.json", "--na-prob-thresh", "1e300"]
    scored = json.loads(stretto.run("score", "squad", "squad.json", *files))
    require(scored == results and loss > 0, f"stretto score gives {scored}, stretto test {results}")
    paragraphs = stretto.json("squad.json")["data"][0]["paragraphs"]
    require(results["total"] == sum(len(paragraph["qas"]) for paragraph in paragraphs), f"{results}")
    context, question = paragraphs[0]["context"], paragraphs[0]["qas"][0]["question"]
    answers = json.loads(stretto.run("predict", "--model", "qa/model", "--top-k", 5, "--text", f"{question}\t{context}"))["answers"]
    require(len(answers) == 5 and all(context[a["start"]:a["end"]] == a["answer"] for a in answers), f"{answers}")
    # An article of thousands of words: many windows per question.
    stretto.run("test", "recipes/qa.yaml", "-N", 2, "--no-pin", "output=qa", "data.test=covid.json",
                "question_answering.version_2_with_negative=true")
    article = stretto.json("covid.json")["data"][0]["paragraphs"][0]
    predictions = stretto.json("qa/predictions.json")
    require(set(predictions) == {str(qa["id"]) for qa in article["qas"]}, f"{sorted(predictions)}")
    require(all(answer in article["context"] for answer in predictions.values()), f"{predictions}")


def check_export(stretto):
    """Tests WNUT-17 as JSON Lines: the same words, tags and spans."""
    source = stretto.data / "wnut17/wnut17train.conll"
    counts = json.loads(stretto.run("export-corpus", "--train", source, "--validation", "wnut.conll", "--output", "wnut"))
    exported = records(stretto.folder / "wnut/train.json")
    wanted = [[tuple(line.split("\t")) for line in block.split("\n")] for block in sentences_of(source)]
    require([list(zip(line["tokens"], line["ner_tags"])) for line in exported] == wanted, "export-corpus changes the words or tags")
    spans = [[(span["type"], span["begin"], span["end"]) for span in line["spans"]] for line in exported]
    require(spans == [spans_of(line["ner_tags"]) for line in exported], "spans of export-corpus")
    require(counts["train"]["sentences"] == len(wanted) and counts["train"]["spans"] == sum(map(len, spans)), f"{counts}")


def check_run_ner(stretto):
    """Uses the files of check_export."""
    stretto.run("run-ner", "--model_name_or_path", stretto.encoder, "--train_file", "wnut/train.json", "--validation_file",
                "wnut/validation.json", "--test_file", "wnut/validation.json", "--do_train", "--do_eval", "--do_predict", "--max_steps",
                STEPS, "--output_dir", "run-ner", "-N", 2)
    results = stretto.json("run-ner/all_results.json")
    require({"train_loss", "eval_f1", "eval_loss", "predict_f1"} <= set(results), f"{results}")
    require([len(line.split()) for line in lines_of(stretto.folder / "run-ner/predictions.txt")] ==
            [len(line["tokens"]) for line in records(stretto.folder / "wnut/validation.json")], "predictions of run-ner")


def check_run_qa(stretto):
    stretto.run("run-qa", "--model_name_or_path", stretto.encoder, "--train_file", stretto.data / "squad2/train_dev.json",
                "--validation_file", "squad.json", "--version_2_with_negative", "--do_train", "--do_eval", "--max_steps", STEPS,
                "--output_dir", "run-qa", "-N", 2)
    results = stretto.json("run-qa/all_results.json")
    require({"train_loss", "eval_exact", "eval_f1", "eval_HasAns_f1"} <= set(results), f"{results}")
    scored = json.loads(stretto.run("score", "squad", "squad.json", "run-qa/eval_predictions.json"))
    require(math.isclose(scored["f1"], results["eval_f1"]), f"{scored}, {results}")


def check_run_glue(stretto):
    stretto.run("run-glue", "--model_name_or_path", stretto.encoder, "--task_name", "sst2", "--train_file", "sst2-train.tsv",
                "--validation_file", "sst2.tsv", "--test_file", stretto.data / "sst2/test.tsv", "--do_train", "--do_eval", "--do_predict",
                "--max_steps", STEPS, "--max_seq_length", 64, "--output_dir", "run-glue", "-N", 2)
    results = stretto.json("run-glue/all_results.json")
    require({"train_loss", "eval_accuracy", "eval_loss"} <= set(results) and 0.3 < results["eval_accuracy"] <= 1, f"{results}")
    table = [line.split("\t") for line in lines_of(stretto.folder / "run-glue/predict_results_sst2.txt")]
    require(table[0] == ["index", "prediction"] and len(table) == len(lines_of(stretto.data / "sst2/test.tsv")), f"{table[:3]}")
    require({row[1] for row in table[1:]} <= {"0", "1"}, f"{table[:3]}")


def check_run_flair_ner(stretto):
    stretto.run("run-flair-ner", "--model_name_or_path", stretto.encoder, "--dataset_name", "wikigold", "--num_epochs", 1,
                "--batch_size", 16, "--learning_rate", "1e-3", "--devices", 2, "--accelerator", "cpu", "--output_dir", "run-flair-ner")
    header, row = [line.split("\t") for line in lines_of(stretto.folder / "run-flair-ner/loss.tsv")]
    losses = dict(zip(header, row))
    require(losses["EPOCH"] == "1" and float(losses["TRAIN_LOSS"]) > 0, f"{losses}")
    for name in ["dev", "test"]:  # without the markers of documents, which are no words
        found = blocks(lines_of(stretto.folder / f"run-flair-ner/{name}.tsv"))
        gold = [block.split("\n") for block in sentences_of(stretto.folder / f"wikigold/{name}.txt") if block != "-DOCSTART- O"]
        require([[line.split(" ")[0] for line in lines] for lines in found] == [[line.split(" ")[0] for line in lines] for lines in gold],
                f"words of {name}.tsv")
        kinds = collections.Counter(line.split(" ")[1][:1] for lines in found for line in lines)
        require(set(kinds) == {"O", "B", "I"}, f"{name}.tsv: {kinds}")


def main(program):
    data, encoder = os.environ.get("STRETTO_DATA"), find_encoder()
    if not data:
        print("Skipped: STRETTO_DATA is not set")
        return SKIPPED
    if encoder is None:
        print("Skipped: the encoder of `scripts/setup.sh demo` is not installed, and STRETTO_ENCODER names no other")
        return SKIPPED
    os.environ["STRETTO_ENCODER"] = encoder
    with tempfile.TemporaryDirectory(prefix="stretto-real-") as temporary:
        stretto = Stretto(program, pathlib.Path(temporary))
        stretto.data, stretto.encoder = pathlib.Path(data).resolve(), encoder
        os.environ["STRETTO_DATA"] = str(stretto.data)
        (stretto.folder / "recipes").symlink_to(SOURCE / "recipes")
        write_cuts(stretto.data, stretto.folder)
        write_bart(stretto.folder / "new-bart")
        check_sst2(stretto, "sst2")
        check_sst2(stretto, "bart", *NEW_BART)
        check_tagging(stretto, "ner")
        check_tagging(stretto, "tagger")
        check_qa(stretto)
        check_export(stretto)
        check_run_ner(stretto)
        check_run_qa(stretto)
        check_run_glue(stretto)
        check_run_flair_ner(stretto)
        check_language_model(stretto)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
