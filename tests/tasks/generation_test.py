#!/usr/bin/env python3
"""Texts that a language model writes: `stretto generate` and `stretto predict` with a model that was just trained.

    generation_test.py STRETTO
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from workspace import CAUSAL_LM, Stretto, require, write_lines, write_model

RUN = "writer"
GENERATE = ["generate", "--model", f"{RUN}/model"]


def records_of(text):
    return [json.loads(line) for line in text.splitlines()]


def check_generate(stretto):
    """A trained model continues prompts as in its training text, with the same result for any batch size and
    source of prompts."""
    prompts = ["Anna has", "Boris has 12 books, and", "Clara has 31", "David", "Anna"]
    texts = [part for prompt in prompts for part in ("--text", prompt)]
    alone = stretto.run(*GENERATE, *texts, "--json", "--batch-size", 1)
    records = records_of(alone)
    require([record["text"] for record in records] == prompts, "prompts keep their order")
    require(all(record["generated_text"] and record["token_ids"] for record in records), alone)
    require(any(word in records[0]["generated_text"] for word in ("apples", "books", "cats", "doors")), alone)
    lines = "".join(prompt + "\n" for prompt in prompts)
    (stretto.folder / "prompts.jsonl").write_text("".join(json.dumps(prompt) + "\n" for prompt in prompts))
    for size in (2, 8):
        require(stretto.run(*GENERATE, "--json", "--batch-size", size, stdin=lines) == alone, f"texts at batch size {size}")
    require(stretto.run(*GENERATE, "--json", "--input", "prompts.jsonl") == alone, "texts of a file")
    shown = "".join(record["text"] + record["generated_text"] + "\n" for record in records)
    require(stretto.run(*GENERATE, *texts) == shown, "the terminal shows other texts than --json")
    beams = records_of(stretto.run(*GENERATE, *texts, "--json", "--num-beams", 3, "--num-return-sequences", 2, "--max-new-tokens", 9))
    require(len(beams) == 2 * len(prompts), f"{len(beams)} texts of beams")
    # Sampled texts depend on the seed only.
    sample = [*GENERATE, *texts, "--json", "--do-sample", "--max-new-tokens", 12, "--seed"]
    sampled = stretto.run(*sample, 1)
    require(sampled == stretto.run(*sample, 1, "--batch-size", 2), "a seed gives two texts")
    require(sampled != stretto.run(*sample, 2), "two seeds give one text")
    # The stop string spans several tokens and begins inside a token.
    stopped = records_of(stretto.run(*GENERATE, "--text", "Anna has", "--json", "--stop", "nd 1", "--stop", "nd 2", "--stop", "nd 3"))[0]
    full = records[0]["generated_text"]
    require(stopped["generated_text"] == full[:full.index(", and ") + 3], f"{stopped} of {full}")
    require(len(stopped["token_ids"]) < len(records[0]["token_ids"]), "a stop string does not end the text")
    require(stretto.run(*GENERATE, "--text", "Anna", "--precision", "bf16", "--max-new-tokens", 3).startswith("Anna"), "bf16")


def check_ranks(stretto):
    """Ranks share the prompts: texts and their order are those of one rank, also where rounds are cut short."""
    prompts = "".join(f"{name} has {number}\n" for number in range(10, 35) for name in ("Anna", "Boris"))
    for ranks, flags in ((3, ["--json"]), (2, ["--json", "--do-sample", "--seed", 3, "--num-return-sequences", 2]),
                         (3, ["--json", "--num-beams", 3, "--do-sample"]), (2, [])):
        alone = stretto.run(*GENERATE, *flags, "--max-new-tokens", 8, stdin=prompts)
        shared = stretto.run(*GENERATE, *flags, "--max-new-tokens", 8, "--batch-size", 2, "-N", ranks, stdin=prompts)
        require(shared == alone, f"{flags} on {ranks} ranks: {shared}\nfor\n{alone}")
    # Prompts before a malformed one are continued, and the mistake is reported once.
    done = stretto.start(*GENERATE, "-N", 2, "--input", "long.txt")
    out, error = done.communicate()
    require(done.returncode == 2 and out.startswith("Anna") and out.count("\n") == 1, f"{done.returncode} {out}")
    require(error.count("\n") == 1 and "long.txt:2: the prompt has" in error, error)


def check_predict(stretto):
    """`predict` continues texts by generation_config.json, in the form of transformers' pipeline."""
    texts = ["--text", "Anna has", "--text", "Boris"]
    predict = ["predict", "--model", f"{RUN}/model", *texts]
    generated = [record["generated_text"] for record in records_of(stretto.run(*GENERATE, *texts, "--json"))]
    require([record["generated_text"] for record in records_of(stretto.run(*predict))] == generated, "predict")
    found = records_of(stretto.run(*predict, "--output", "pipeline"))
    require(found == [[{"generated_text": text + more}] for text, more in zip(("Anna has", "Boris"), generated)], f"{found}")
    stretto.require_error("does text-generation; expected one of label, pipeline", *predict, "--output", "scores")
    config = stretto.folder / RUN / "model/generation_config.json"
    config.write_text(json.dumps({"do_sample": True, "num_return_sequences": 2, "max_new_tokens": 5}))
    sampled = stretto.run(*predict)
    require(len(records_of(sampled)[0]["generated_texts"]) == 2, sampled)
    require(stretto.run(*predict, "--batch-size", 1) == sampled, "sampled texts depend on the batch size")
    config.unlink()


def check_samples(stretto):
    """The texts that a run writes at its evaluations are the same on any number of ranks, with whole and gathered weights and
    behind a resume, and are those of `stretto generate`."""
    prompts = ["Anna has", "Boris has 1", "David"]
    settings = ["training.epochs=3", f"evaluate.samples={json.dumps(prompts)}"]
    stretto.train("clm.yaml", "samples", 1, *settings)
    texts = (stretto.folder / "samples/texts.jsonl").read_text()
    records = records_of(texts)
    require([record["name"] for record in records] == 3 * ["sample 1", "sample 2", "sample 3"], texts)
    stretto.train("clm.yaml", "samples-ddp", 2, *settings)
    require((stretto.folder / "samples-ddp/texts.jsonl").read_text() == texts, "texts of 2 ranks")
    # More ranks than texts.
    stretto.train("clm.yaml", "samples-many", 4, *settings, "training.strategy=fsdp", "training.steps_this_run=70")
    few = (stretto.folder / "samples-many/texts.jsonl").read_text()
    require(few == "".join(texts.splitlines(keepends=True)[:6]), f"texts of 4 ranks: {few}")
    stretto.train("clm.yaml", "samples-parts", 1, *settings, "training.steps_this_run=70")
    require(len((stretto.folder / "samples-parts/texts.jsonl").read_text().splitlines()) == 6, "texts of 70 steps")
    stretto.train("clm.yaml", "samples-parts", 1, *settings)
    require((stretto.folder / "samples-parts/texts.jsonl").read_text() == texts, "texts behind a resume")
    flags = [part for prompt in prompts for part in ("--text", prompt)]
    written = stretto.run("generate", "--model", "samples/model", *flags, "--max-new-tokens", 64).splitlines()
    require([record["text"] for record in records[-3:]] == written, f"{records[-3:]} and {written}")
    require(f"sample     {json.dumps(written[0])}" in (stretto.folder / "samples/logger_logs/training_0.log").read_text(), "the log")
    stretto.run("report", "samples", "--output", "report.html")
    require(f'<td class="text">{written[0]}</td>' in (stretto.folder / "report.html").read_text(), "the report")
    refused = ["train", "clm.yaml", "-N", 1, "output=refused"]
    stretto.require_error("evaluate.samples: text 2: the prompt has", *refused, f"evaluate.samples={json.dumps(['a', 'Anna has ' * 60])}")
    stretto.require_error("evaluate.samples: it has no meaning without evaluations", *refused, "data.validation=null", "evaluate.samples=[a]")
    stretto.require_error("evaluate.samples: only the task causal-lm writes texts", *refused, "task=text-classification",
                          "causal_lm=null", "evaluate.samples=[a]")


def write_prompts(stretto, count):
    with open(stretto.folder / "many.txt", "w") as file:
        file.writelines(f"Anna has {number % 90 + 10} books\n" for number in range(count))


def megabytes(stretto, count):
    """The largest memory of a process that continues `count` prompts of standard input."""
    write_prompts(stretto, count)
    with open(stretto.folder / "many.txt") as prompts, open(stretto.folder / "many.jsonl", "w") as output:
        process = subprocess.Popen([stretto.program, *GENERATE, "--json", "--max-new-tokens", "2"], cwd=stretto.folder,
                                   stdin=prompts, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
    require(status == 0 and len((stretto.folder / "many.jsonl").read_text().splitlines()) == count, f"{count} prompts: status {status}")
    return usage.ru_maxrss / 1024


def check_many_prompts(stretto):
    if os.environ.keys() & {"ASAN_OPTIONS", "TSAN_OPTIONS"}:
        return  # a sanitizer keeps freed memory for a while
    few, many = megabytes(stretto, 500), megabytes(stretto, 10_000)
    require(many < few + 6, f"500 prompts take {few:.1f} MiB, 10,000 {many:.1f}")


def check_interruptions(stretto):
    """When generation is stopped by Ctrl-C, or nobody reads its output, one line says so, and what was written stays."""
    write_prompts(stretto, 10_000)
    for ranks in (1, 2):
        flags = [*GENERATE, "--input", "many.txt", "--batch-size", 1, "--max-new-tokens", 20, "-N", ranks]
        process = stretto.start(*flags)
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, error = process.communicate()
        require(first.startswith("Anna has 10 books") and rest.endswith("\n" if rest else ""), f"{first}{rest[-80:]}")
        require(process.returncode in (-signal.SIGINT, 128 + signal.SIGINT), f"Ctrl-C: code {process.returncode}")
        require(error.count("\n") == 1, error)
        process = stretto.start(*flags)
        require(process.stdout.readline() == first, "the first text")
        process.stdout.close()
        error = process.stderr.read()
        require(process.wait() == 1 and "cannot write to standard output: Broken pipe" in error, error)
        require(error.count("\n") == 1, error)


def check_mistakes(stretto):
    for flags, message in MISTAKES:
        stretto.require_error(message, *GENERATE, *flags)
    # RoBERTa's tokenizer adds a token to an empty text, so it can be continued; GPT-2's does not.
    shutil.copytree(stretto.folder / RUN / "model", stretto.folder / "bare")
    # A chat template is named wherever it is kept.
    config = {"tokenizer_class": "GPT2Tokenizer", "eos_token": "</s>"}
    (stretto.folder / "bare/tokenizer_config.json").write_text(json.dumps({**config, "chat_template": "{{ messages }}"}))
    found = stretto.require_error("--text 1: the prompt is empty", "generate", "--model", "bare", "--text", "")
    require("bare: its chat_template is not applied" in found, found)
    (stretto.folder / "bare/tokenizer_config.json").write_text(json.dumps(config))
    (stretto.folder / "bare/chat_template.jinja").write_text("{{ messages }}")
    stretto.require_error("bare: its chat_template is not applied", "predict", "--model", "bare", "--text", "")
    # Prompts before a malformed line are continued.
    require("long.txt:2: the prompt has" in stretto.error(*GENERATE, "--input", "long.txt"), "a long prompt")
    config = stretto.folder / RUN / "model/generation_config.json"
    config.write_text(json.dumps({"max_new_tokens": 2, "creativity": 11}))
    require(len(records_of(stretto.run(*GENERATE, "--text", "Anna", "--json"))[0]["token_ids"]) == 2, "generation_config.json")
    config.write_text(json.dumps({"guidance_scale": 1.5}))
    stretto.require_error("generation_config.json: guidance_scale 1.5 is not supported", *GENERATE, "--text", "Anna")
    config.unlink()
    model = stretto.json(f"{RUN}/model/config.json")
    for architecture in ("LlamaModel", "BertForSequenceClassification"):
        (stretto.folder / "other-model").mkdir(exist_ok=True)
        (stretto.folder / "other-model/config.json").write_text(json.dumps({**model, "architectures": [architecture]}))
        stretto.require_error(f'"{architecture}" does not predict next tokens', "generate", "--model", "other-model", "--text", "a")


MISTAKES = [
    (["--text", "a", "--do-sample", "--temperature", 0], "--temperature: found 0"),
    (["--text", "a", "--do-sample", "--top-p", 0], "--top-p: found 0"),
    (["--text", "a", "--do-sample", "--temperature", "x"], '--temperature: "x" is not a number'),
    (["--text", "a", "--temperature", 2], "--temperature has no effect without --do-sample"),
    (["--text", "a", "--length-penalty", 2], "--length-penalty has no effect without --num-beams"),
    (["--text", "a", "--num-beams", 100000], "--num-beams: found 100000"),
    (["--text", "a", "--num-return-sequences", 2], "--num-return-sequences 2: expected at most --num-beams, which is 1"),
    (["--text", "a", "--max-new-tokens", 0], '--max-new-tokens: "0" is not a whole number from 1 to'),
    (["--text", "a", "--max-new-tokens", "99999999999999999999"], '--max-new-tokens: "99999999999999999999" is not a whole number from 1 to'),
    (["--text", "a", "--seed", "99999999999999999999"], '--seed: "99999999999999999999" is not a whole number from 0 to'),
    (["--text", "a", "--num-beams", "2.5"], '--num-beams: "2.5" is not a whole number'),
    (["--text", "a", "-N", 0], '"0" is not a whole number from 1 to'),
    (["--text", "", "--batch-size", 0], "--batch-size"),
    (["--text", "a", "--stop", ""], "--stop: a string is empty"),
    (["--input", "nope.txt"], "--input nope.txt: there is no such file"),
    (["--text", "a", "--max-new-token", 3], "--max-new-token"),
]


def main(program):
    with tempfile.TemporaryDirectory(prefix="stretto-generate-") as temporary:
        folder = pathlib.Path(temporary)
        stretto = Stretto(program, folder)
        write_lines(folder / "train.txt", 400, seed=1)
        write_lines(folder / "dev.txt", 60, seed=2)
        write_model(folder / "gpt2", "gpt2")
        (folder / "clm.yaml").write_text(CAUSAL_LM)
        (folder / "long.txt").write_text("Anna\n" + "Anna has " * 60 + "\n")
        stretto.train("clm.yaml", RUN, 2, "training.epochs=12")
        check_generate(stretto)
        check_ranks(stretto)
        check_predict(stretto)
        check_samples(stretto)
        check_many_prompts(stretto)
        check_interruptions(stretto)
        check_mistakes(stretto)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
