#!/usr/bin/env python3
"""Language models (task: causal-lm) from text files and corpora to perplexities, by recipes and by the flags of run_clm.py.

    language_models_test.py STRETTO FOLDER

transformers_test.py compares two of the models in FOLDER, and their losses in windows, with those of transformers.
"""

import json
import math
import pathlib
import shutil
import sys

from workspace import CAUSAL_LM, DECODERS, SOURCE, Stretto, check_ranks_and_resuming, check_without_validation, emptied, losses_of, require, require_close, write_lines, write_model


def losses_by_block(stretto, run):
    return [json.loads(line) for line in (stretto.folder / run / "losses.jsonl").read_text().splitlines()]


def check_test(stretto, run):
    """Perplexity is exp of the mean loss over tokens. However the text is divided, each token is counted
    once."""
    stretto.run("test", "clm.yaml", "-N", 2, "--no-pin", f"output={run}")
    results, blocks = stretto.json(f"{run}/test_results.json"), losses_by_block(stretto, run)
    mean = sum(b["loss"] * b["tokens"] for b in blocks) / sum(b["tokens"] for b in blocks)
    require_close("test", {key: results[key] for key in ("loss", "perplexity")}, {"loss": mean, "perplexity": math.exp(mean)}, 1e-9)
    require(results["perplexity"] < 20, f"the model has not learned: {results}")
    require(0 < results["accuracy"] < 1, f"{results}")
    corpora = [json.loads(path.read_text()) for path in (stretto.folder / run / "cache").glob("*.corpus/corpus.json")]
    tokens = next(corpus["tokens"] for corpus in corpora if corpus["settings"]["sources"][0]["path"].endswith("dev.txt"))
    size = sum(len(line.encode()) for line in (stretto.folder / "dev.txt").read_text().splitlines())
    require_close("test", {"bits": results["bits_per_byte"]}, {"bits": mean / math.log(2) * tokens / size}, 1e-9)
    # All tokens but the first are predicted; if windows do not overlap, the first token of each is not.
    windows = {}
    for stride in (48, 47, 16):  # compare_language_models.py reads the losses of the last one
        stretto.run("test", "clm.yaml", "-N", 1, f"output={run}", f"causal_lm.stride={stride}")
        windows[stride] = losses_by_block(stretto, run)
    counts = {stride: sum(b["tokens"] for b in blocks) for stride, blocks in windows.items()}
    require(counts[47] == counts[16] == counts[48] + len(windows[48]) - 1, f"windows predict {counts} tokens")


def check_corpus(stretto, run):
    """A corpus of `stretto data tokenize` gives the same results as its text file."""
    stretto.run("data", "tokenize", "train.txt", "--tokenizer", "gpt2", "--output", "corpus", "--document", "line")
    stretto.train("clm.yaml", "of-corpus", 1, "data.train=corpus", "checkpoint.every=7")
    for name in ("model.safetensors", "config.json"):
        require((stretto.folder / "of-corpus/model" / name).read_bytes() == (stretto.folder / run / "model" / name).read_bytes(),
                f"{name} of a corpus is not that of its text")
    stretto.train("clm.yaml", "further", 1, "model.config=null", "model.path=of-corpus/model", "training.max_steps=2")
    require(losses_of(stretto, "further")[0] < losses_of(stretto, run)[0] / 2, "a trained model begins as a new one")
    stretto.train("clm.yaml", "alone", 1, "data.train=null", "data.mixture=[train.txt=3]")
    require(losses_of(stretto, "alone") == losses_of(stretto, run), "a mixture of one text is not that text")


def check_end_token(stretto, run):
    """The config.json of a new model names the token that ends a text: its own one, or else the tokenizer's. A trained folder
    keeps it."""
    end = json.loads((stretto.folder / "gpt2/vocab.json").read_text())["</s>"]
    for output in run, "llama-one", "further":
        require(stretto.json(f"{output}/model/config.json")["eos_token_id"] == end, output)
    for recipe, model_type in (("clm.yaml", "gpt2"), ("llama.yaml", "llama")):
        (stretto.folder / "ends.json").write_text(json.dumps({**stretto.json(f"{model_type}/config.json"), "eos_token_id": 7}))
        output = f"{model_type}-of-config"
        stretto.train(recipe, output, 1, "model.config=ends.json", "training.max_steps=1")
        require(stretto.json(f"{output}/model/config.json")["eos_token_id"] == 7, output)


def check_section(stretto, run):
    """A model.config that is a section is the same model as its file: bits, saved folder, plan, and a resumed run."""
    file = stretto.json("gpt2/config.json")
    section = "".join(f"\n    {key}: {value}" for key, value in file.items() if key != "model_type")
    recipe = CAUSAL_LM.replace("model: {config: gpt2/config.json}", f"model:\n  type: gpt2\n  config:{section}")
    (stretto.folder / "section.yaml").write_text(recipe)
    stretto.train("section.yaml", "section", 1, "training.steps_this_run=5")
    stretto.require_error("model.config", "train", "section.yaml", "-N", 1, "output=section", "model.config.n_head=2")
    stretto.train("section.yaml", "section", 2)
    require(losses_of(stretto, "section")[:5] == losses_of(stretto, run)[:5], "a section is another model than its file")
    require(stretto.json("section/model/config.json") == stretto.json(f"{run}/model/config.json"), "config.json of a section")
    # The run's config.yaml repeats the run.
    stretto.train("section/config.yaml", "section-again", 1, "training.max_steps=2")
    require(losses_of(stretto, "section-again") == losses_of(stretto, run)[:2], "the saved recipe is another model")
    stretto.require_error("--set model.config.vocab_size=99: model.config.vocab_size: the tokenizer has ids up to 449",
                          "train", "section.yaml", "-N", 1, "output=refused", "model.config.vocab_size=99")
    large = ["model.config.n_embd=16384", "model.config.n_layer=100"]
    stretto.require_error("of memory (", "train", "section.yaml", "-N", 1, "output=refused", *large)


def check_mixture(stretto):
    """A mixture of a corpus and a text is the same for any number of ranks and behind a resume."""
    write_lines(stretto.folder / "more.txt", 90, seed=3)
    mixed = ["data.train=null", "data.mixture=[more.txt=0.75, corpus=0.25]", "training.max_steps=20"]
    stretto.train("clm.yaml", "mixed", 1, *mixed)
    losses = losses_of(stretto, "mixed")
    stretto.train("clm.yaml", "mixed-2", 2, *mixed)
    found = losses_of(stretto, "mixed-2")
    require(len(found) == len(losses) and all(math.isclose(a, b, rel_tol=1e-4) for a, b in zip(found, losses)),
            f"a mixture on 2 ranks: {found}, on 1 {losses}")
    stretto.train("clm.yaml", "mixed-parts", 1, *mixed, "training.steps_this_run=7")
    stretto.require_error("data.mixture", "train", "clm.yaml", "-N", 1, "output=mixed-parts", *mixed, "data.mixture=[more.txt=0.5, corpus=0.5]")
    stretto.train("clm.yaml", "mixed-parts", 1, *mixed)
    require(losses_of(stretto, "mixed-parts") == losses, "a resumed mixture is another one")
    log = (stretto.folder / "mixed/logger_logs/training_0.log").read_text()
    require("(75." in log and "(25." in log and "each 1.00 times" in log, log)


def check_divided(stretto):
    """Models whose layers are divided among ranks: the losses, evaluations, written texts, tests and saved folders of whole ones.
    tests/train/divided_test.cpp tests other families and meshes, and resuming."""
    output, whole = "divided-llama", "llama-one"
    stretto.run("train", "llama.yaml", "-N", 2, "--no-pin", "--tp", 2, f"output={output}", "evaluate.samples=[Anna has]")
    wanted, found = losses_of(stretto, whole), losses_of(stretto, output)
    require(len(found) == len(wanted) and all(math.isclose(a, b, rel_tol=1e-3) for a, b in zip(found, wanted)),
            f"--tp 2: losses {found}, of whole layers {wanted}")
    require_close("--tp 2", stretto.json(f"{output}/dev_results.json"), stretto.json(f"{whole}/dev_results.json"), 5e-3)
    log = (stretto.folder / output / "logger_logs/training_0.log").read_text()
    require("mesh       dp 1 x tp 2: each layer is divided among 2 ranks" in log and "Anna has" in log, log)
    require(stretto.json(f"{output}/model/config.json") == stretto.json(f"{whole}/model/config.json"), "config.json")
    stretto.run("test", "llama.yaml", "-N", 2, "--no-pin", "--tp", 2, f"output={output}")
    divided = stretto.json(f"{output}/test_results.json")
    stretto.run("test", "llama.yaml", "-N", 1, f"output={output}")
    require_close("the saved model", divided, stretto.json(f"{output}/test_results.json"), 1e-5)
    for arguments, message in ((["-N", 3, "--tp", 2], "--tp 2: training.mesh.tp: 3 ranks cannot be divided into groups of 2"),
                               (["-N", 2, "--tp", 0], "--tp: ")):
        stretto.require_error(message, "train", "clm.yaml", *arguments, "output=mistaken")
    plan = json.loads(stretto.run("plan", "clm.yaml", "-N", 4, "--no-pin", "--tp", 2, "--steps", 3, "--json", "output=planned"))
    require({(row["tp"], row["dp"]) for row in plan["strategies"]} == {(2, 2)}, f"{plan}")


def check_blocks(stretto):
    """Tests each kind of blocks, a part of the training text as validation data, and limits."""
    for settings in (["causal_lm.blocks=stream"], ["causal_lm.blocks=run-clm", "causal_lm.append_eos=false", "causal_lm.keep_newlines=true"],
                     ["data.validation=null", "data.validation_split=0.2"], ["data.max_train_samples=3", "data.max_validation_samples=2"]):
        output = "blocks-" + settings[0].replace("=", "-")
        stretto.train("clm.yaml", output, 1, "training.max_steps=3", *settings)
        require(stretto.json(f"{output}/dev_results.json")["perplexity"] > 1, settings)


def check_bytes(stretto):
    """A byte-level tokenizer reads text that is not UTF-8 and keeps all of its bytes."""
    text = b"caf\xe9 \xff\xfe has 12 books\n" * 40
    (stretto.folder / "bytes.txt").write_bytes(text)
    stretto.train("clm.yaml", "bytes", 1, "data.train=bytes.txt", "training.max_steps=1")
    manifests = [json.loads(path.read_text()) for path in (stretto.folder / "bytes/cache").glob("*.corpus/corpus.json")]
    sizes = {manifest["text_bytes"] for manifest in manifests}
    require(len(text) - text.count(b"\n") in sizes, f"{sizes} bytes of text")


def check_trainer_files(stretto, output):
    """The keys are those of transformers' Trainer and of run_clm.py, with its accuracy and bits per byte."""
    golden = json.loads((SOURCE / "tests/golden/trainer/keys.json").read_text())
    more = {"train_results": set(), "trainer_state": set()}
    for name in ("train_results", "eval_results", "all_results", "trainer_state"):
        found, keys = stretto.json(f"{output}/{name}.json"), set(golden[name])
        if "eval_loss" in keys:
            keys |= {"eval_accuracy", "eval_bits_per_byte"}
        require(set(found) == keys, f"{name}.json has {sorted(found)}")
    history = stretto.json(f"{output}/trainer_state.json")["log_history"]
    require(set(history[0]) == set(golden["log_history"]["training"]), f"{history[0]}")
    require(set(history[-1]) == set(golden["log_history"]["end"]), f"{history[-1]}")
    config, results = stretto.json(f"{output}/config.json"), stretto.json(f"{output}/train_results.json")
    width = config["n_embd"]
    parameters = config["n_layer"] * (12 * width**2 + 13 * width) + 2 * width
    tokens = results["epoch"] * results["train_samples"] * config["n_positions"]
    require(results["total_flos"] == 6 * parameters * tokens, f"{results}, {parameters} parameters outside tables, {tokens} tokens")


def check_door(stretto):
    given = ["run-clm", "--config_name", "gpt2/config.json", "--tokenizer_name", "gpt2", "--train_file", "train.txt", "--do_train",
             "--do_eval", "--num_train_epochs", "2", "--learning_rate", "3e-3", "--logging_steps", "1", "-N", 2, "--output_dir"]
    out = stretto.run(*given, "door")
    require("***** train metrics *****" in out and "***** eval metrics *****" in out, out)
    results = stretto.json("door/eval_results.json")
    check_trainer_files(stretto, "door")
    require(math.isclose(results["perplexity"], math.exp(results["eval_loss"]), rel_tol=1e-9), f"{results}")
    # The first lines are for validation, as in run_clm.py.
    lines = (stretto.folder / "train.txt").read_text().splitlines(keepends=True)
    part = round(len(lines) * 0.05)
    require((stretto.folder / "door/run/cache/validation.txt").read_text() == "".join(lines[:part]), "the validation part")
    require((stretto.folder / "door/run/cache/train.txt").read_text() == "".join(lines[part:]), "the training part")
    # Lines that end with CR LF are those that end with LF, as in datasets. This run is interrupted, and has the results of a whole one.
    (stretto.folder / "crlf.txt").write_bytes((stretto.folder / "train.txt").read_bytes().replace(b"\n", b"\r\n"))
    stretto.run(*given, "crlf", "--train_file", "crlf.txt", "--set", "training.steps_this_run=3")
    require(len(losses_of(stretto, "crlf/run")) == 3 and not (stretto.folder / "crlf/all_results.json").exists(), "results of a part")
    stretto.run(*given, "crlf", "--train_file", "crlf.txt")
    for name in ("eval_loss", "train_loss", "eval_samples", "train_samples"):
        require(stretto.json("crlf/all_results.json")[name] == stretto.json("door/all_results.json")[name], f"{name} with CR LF")
    shutil.copy(stretto.folder / "train.txt", stretto.folder / "train.csv")
    for flags, message in ((["--train_file", "train.csv"], "--train_file train.csv: a table, of which the text is one column"),
                           (["--block_size", "49"], "--block_size 49: data.max_length: 49 exceeds the 48 positions"),
                           (["--block_size", "1"], "--block_size 1: data.max_length"), (["--streaming", "maybe"], "--streaming"),
                           (["--validation_split_percentage", "100"], "--validation_split_percentage 100: expected a number")):
        stretto.require_error(message, *given, "refused", *flags)
    for flags, line in ((["--tp", 2, "--per_device_train_batch_size", 16], "mesh       dp 1 x tp 2"), (["--strategy", "fsdp"], "sharing    2 ranks of this host hold one copy of the parameters")):
        stretto.run(*given, "door-ranks", *flags, "--overwrite_output_dir")
        found = stretto.json("door-ranks/eval_results.json")["eval_loss"]
        require(math.isclose(found, results["eval_loss"], rel_tol=1e-3), f"{flags}: a loss of {found}, else {results['eval_loss']}")
        log = (stretto.folder / "door-ranks/run/logger_logs/training_0.log").read_text()
        require(line in log, log)
    # A family and its sizes by flags are the same model as the file.
    at = given.index("--config_name")
    (stretto.folder / "two.txt").write_text("Anna\nBoris\n")
    overrides = ",".join(f"{key}={value}" for key, value in stretto.json("gpt2/config.json").items() if key != "model_type")
    by_flags = [*given[:at], "--model_type", "gpt2", "--config_overrides", overrides, *given[at + 2:]]
    stretto.run(*by_flags, "by-flags")
    require(stretto.json("by-flags/all_results.json")["eval_loss"] == results["eval_loss"], "--config_overrides")
    stretto.require_error("model.config.n_embd: found \"x\"; expected an integer", *by_flags, "refused", "--config_overrides", "n_embd=x")
    stretto.require_error('--model_type mamba: it is not one of gpt2, llama, mistral, qwen2, qwen3',
                          *by_flags, "refused", "--model_type", "mamba")
    (stretto.folder / "other.json").write_text("{}")
    stretto.require_error("--config_name other.json: the weights of --model_name_or_path by-flags cannot have the configuration",
                          *given, "refused", "--model_name_or_path", "by-flags", "--config_name", "other.json")
    stretto.require_error("--do_predict: run_clm.py predicts nothing", *given, "refused", "--do_predict")
    # What a refused command wrote of the training file is removed.
    stretto.require_error("2 lines cannot be split", *given, "refused", "--train_file", "two.txt")
    stretto.require_error("model.config.n_embd", *by_flags, "refused", "--config_overrides", "n_embd=0")
    require(not (stretto.folder / "refused").exists(), sorted((stretto.folder / "refused").rglob("*")))


MIXED = ["data.train=null"]

MISTAKES = [
    (["data.max_length=49"], "data.max_length: 49 exceeds the 48 positions of the model"),
    (["causal_lm.stride=49", "data.max_length=48"], "causal_lm.stride: "),
    (["causal_lm.stride=49"], "causal_lm.stride: windows of 48 tokens that begin 49 tokens apart"),
    (["causal_lm.blocks=block"], "causal_lm.blocks: \"block\" is not one of"),
    (["causal_lm.document=file", "causal_lm.keep_newlines=true"], "causal_lm.keep_newlines: "),
    (["data.train=gpt2"], "data.train: gpt2: no token corpus: there is no corpus.json"),
    (["data.validation=gpt2"], "data.validation: gpt2: no token corpus"),
    (["tokenizer.path=no-eos"], "the tokenizer names no eos_token, with which documents end; set tokenizer.path, or causal_lm.append_eos"),
    (["model.config=softcap.json"], "softcap.json: final_logit_softcapping: a model of type llama has no such key"),
    (["data.mixture=[train.txt=1]"], "data.mixture: there are training samples already; remove this or data.train (clm.yaml:5:15)"),
    ([*MIXED, "data.mixture=[train.txt=0]"], 'data.mixture: "train.txt=0" is not PATH=WEIGHT with a weight above 0'),
    ([*MIXED, "data.mixture=[train.txt=-1]"], 'data.mixture: "train.txt=-1" is not PATH=WEIGHT'),
    ([*MIXED, "data.mixture=[train.txt]"], 'data.mixture: "train.txt" is not PATH=WEIGHT'),
    ([*MIXED, "data.mixture=[train.txt=1, train.txt=2]"], "data.mixture: train.txt occurs twice"),
    ([*MIXED, "data.mixture=[train.txt=1, nope.txt=2]"], "data.mixture: nope.txt does not exist"),
    ([*MIXED, "data.mixture=[train.txt=1, gpt2=2]"], "data.mixture: gpt2: no token corpus"),
    ([*MIXED, "data.mixture=[train.txt=1, other=2]"], "other: its tokens are of another tokenizer"),
    ([*MIXED, "data.mixture=[train.txt=1, blank.txt=2]"], "blank.txt: there is no text in it"),
    ([*MIXED, "data.mixture=[train.txt=1e-300, dev.txt=1]"], "data.mixture: a weight of 1 makes the mixture longer"),
    ([*MIXED, "data.mixture=[train.txt=1]", "data.validation=null", "data.validation_split=0.1"],
     "data.validation_split: it takes a part of data.train, but data.mixture"),
    ([*MIXED, "data.mixture=[train.txt=1]", "task=text-classification", "causal_lm=null"], "data.mixture: only the task causal-lm reads a mixture"),
    (["data.train=empty.txt"], "empty.txt"),
    (["data.train=nope.txt"], "data.train: nope.txt does not exist"),
    (["data.train=other"], "its tokens are of another tokenizer"),
    (["data.train=blank.txt"], "blank.txt: there is no text in it"),
    (["data.train=cut"], "cut/tokens-00000.bin: has "),
    (["model.config=encoder.json"], "bert"),
    (["model.config=few-words.json"], "the tokenizer has ids up to 449, but the model's vocab_size is 100"),
    (["model.config=rotary.json"], "rotary.json: rope_scaling: rope_type: \"ntk\" is not a kind of rotary positions"),
    (["text_classification.label_smoothing=0.1"], "text_classification does not apply"),
    (["data.validation=null", "data.validation_split=0.001"], "leave none for validation"),
]


def check_mistakes(stretto):
    folder = stretto.folder
    (folder / "empty.txt").write_text("")
    (folder / "blank.txt").write_text("\n\n\n")
    for name, model_type, changes in (("few-words", "gpt2", {"vocab_size": 100}),
                                      ("softcap", "llama", {"final_logit_softcapping": 30.0}),
                                      ("rotary", "llama", {"rope_scaling": {"rope_type": "ntk", "factor": 2.0}})):
        (folder / f"{name}.json").write_text(json.dumps({**stretto.json(f"{model_type}/config.json"), **changes}))
    (folder / "encoder.json").write_text(json.dumps({"model_type": "bert", "vocab_size": 2000, "hidden_size": 8, "num_attention_heads": 2}))
    stretto.run("data", "tokenize", "dev.txt", "--tokenizer", SOURCE / "tests/golden/tokenizer/gpt2", "--output", "other", "--no-eos")
    stretto.run("data", "tokenize", "dev.txt", "--tokenizer", "gpt2", "--output", "cut")
    tokens = folder / "cut/tokens-00000.bin"
    tokens.write_bytes(tokens.read_bytes()[:-10])
    words = ["?", *sorted({word for name in ("train", "dev") for word in (folder / f"{name}.txt").read_text().split()})]
    (folder / "no-eos").mkdir()
    (folder / "no-eos/tokenizer.json").write_text(json.dumps({"pre_tokenizer": {"type": "WhitespaceSplit"}, "model": {
        "type": "WordLevel", "unk_token": "?", "vocab": {word: id for id, word in enumerate(words)}}}))
    for settings, message in MISTAKES:
        error = stretto.require_error(message, "train", "clm.yaml", "-N", 1, "output=mistaken", *settings)
        # A refused run leaves texts that were tokenized before the mistake was found, which it logs, or nothing.
        left = folder / "mistaken"
        require(not left.exists() or any(left.rglob("tokens-*.bin")), f"{settings}: a refused run leaves {sorted(left.rglob('*'))}")
        require(left.exists() == ("mistaken/cache: the tokenised texts are kept" in error), f"{settings}: {left.exists()} {error}")
        shutil.rmtree(left, ignore_errors=True)
    # Neither an end nor padding is needed for documents without an end.
    stretto.train("clm.yaml", "no-eos-run", 2, "tokenizer.path=no-eos", "causal_lm.append_eos=false", "training.max_steps=2")


def main(program, folder):
    stretto = Stretto(program, emptied(folder))
    write_lines(stretto.folder / "train.txt", 400, seed=1)
    write_lines(stretto.folder / "dev.txt", 60, seed=2)
    for model_type in DECODERS:
        write_model(stretto.folder / model_type, model_type)
    scaled = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 24}
    (stretto.folder / "llama/config.json").write_text(json.dumps({**stretto.json("llama/config.json"), "rope_theta": 500.0, "rope_scaling": scaled}))
    (stretto.folder / "clm.yaml").write_text(CAUSAL_LM)
    (stretto.folder / "llama.yaml").write_text(CAUSAL_LM.replace("gpt2", "llama"))
    run = check_ranks_and_resuming(stretto, "clm.yaml", ["fsdp"])
    stretto.train("llama.yaml", "llama-one", 1)  # tests/train/divided_test.cpp trains it on several ranks
    stretto.run("test", "llama.yaml", "-N", 1, "output=llama-one", "causal_lm.stride=16")
    stretto.run("convert", "llama-one/model", "llama-sharded", "--max-shard-size", "30KB")
    check_test(stretto, run)
    check_corpus(stretto, run)
    check_end_token(stretto, run)
    check_section(stretto, run)
    check_mixture(stretto)
    check_divided(stretto)
    check_blocks(stretto)
    check_bytes(stretto)
    check_without_validation(stretto, "clm.yaml", "without")
    check_door(stretto)
    check_mistakes(stretto)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2])
