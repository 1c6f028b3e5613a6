"""Shared by the tests of this folder: data, a small model with random weights, and runs of stretto."""

import json
import math
import pathlib
import random
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def write_inputs(folder, rows=160):
    """Writes data in folder/data, and folder/encoder with the words of the data as vocabulary."""
    subprocess.run([sys.executable, "-B", SOURCE / "scripts/make_entities.py", folder / "data", "--rows", str(rows)], check=True)
    words = set()
    for path in (folder / "data").glob("*.conll"):
        words |= {line.split()[0] for line in path.read_text().splitlines() if line}
    for path in (folder / "data").glob("*.json"):
        for article in json.loads(path.read_text())["data"]:
            for paragraph in article["paragraphs"]:
                words |= {word for qa in paragraph["qas"] for word in qa["question"].split()}
    words = sorted(words)
    # Half of the names are split into pieces.
    pieces = sorted({piece for word in words[::2] if len(word) > 4 for piece in (word[:3], "##" + word[3:])})
    whole = [word for word in words if not (word in words[::2] and len(word) > 4)]
    vocabulary = list(dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + whole + pieces))
    (folder / "encoder").mkdir()
    (folder / "encoder/vocab.txt").write_text("\n".join(vocabulary) + "\n")
    (folder / "encoder/config.json").write_text(json.dumps({
        "model_type": "bert", "vocab_size": len(vocabulary), "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": 64, "max_position_embeddings": 64, "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1, "initializer_range": 0.1}))


class Stretto:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def run(self, *arguments, stdin=None):
        done = subprocess.run([self.program, *map(str, arguments)], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, input=stdin, encoding="utf-8")
        if done.returncode != 0:
            raise SystemExit(f"stretto {' '.join(map(str, arguments))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def start(self, *arguments):
        """A running process, whose output is read by the caller."""
        return subprocess.Popen([self.program, *map(str, arguments)], cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, encoding="utf-8")

    def error(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, encoding="utf-8")
        if done.returncode == 0:
            raise SystemExit(f"stretto {' '.join(map(str, arguments))} did not fail")
        return done.stderr

    def require_error(self, part, *arguments):
        found = self.error(*arguments)
        if part not in found:
            raise SystemExit(f"stretto {' '.join(map(str, arguments))}: expected an error with\n  {part}\nfound\n{found}")
        return found

    def train(self, recipe, output, ranks, *settings):
        self.run("train", recipe, "-N", ranks, "--no-pin", f"output={output}", *settings)

    def json(self, path):
        return json.loads((self.folder / path).read_text(encoding="utf-8"))


# Settings that start a recipe from the folder new-bart/ of write_bart.
NEW_BART = ["model.path=null", "model.config=new-bart/config.json", "tokenizer.path=new-bart"]


def write_bart(folder):
    """Writes config.json and a byte-level tokenizer: BART starts from random weights."""
    shutil.copytree(SOURCE / "tests/golden/tokenizer/roberta", folder)
    vocabulary = json.loads((folder / "vocab.json").read_text())
    sides = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in
             (("layers", 2), ("attention_heads", 4), ("ffn_dim", 48))}
    (folder / "config.json").write_text(json.dumps(
        {"model_type": "bart", "vocab_size": len(vocabulary), "d_model": 32, "max_position_embeddings": 128, "bos_token_id": 0,
         "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2, **sides}))


# Settings that start a recipe from the folder new-roberta/ of write_roberta.
NEW_ROBERTA = ["model.path=null", "model.config=new-roberta/config.json", "tokenizer.path=new-roberta"]


def write_roberta(folder):
    shutil.copytree(SOURCE / "tests/golden/tokenizer/roberta", folder)
    vocabulary = json.loads((folder / "vocab.json").read_text())
    (folder / "config.json").write_text(json.dumps(
        {"model_type": "roberta", "vocab_size": len(vocabulary), "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 48, "max_position_embeddings": 132, "type_vocab_size": 1, "pad_token_id": 1}))


# Trains the decoder of write_model on texts of write_lines.
CAUSAL_LM = """
task: causal-lm
model: {config: gpt2/config.json}
tokenizer: {path: gpt2}
data: {train: train.txt, validation: dev.txt, test: dev.txt}
causal_lm: {document: line}
training: {epochs: 2, global_batch_size: 8, device: cpu}
optimizer: {type: AdamW, lr: 3.0e-3}
checkpoint: {keep_last: 0}
track: {progress: "off", log_every: 1}
"""

# Sizes of small decoders by model type.
DECODERS = {"gpt2": {"n_layer": 2, "n_head": 4, "n_embd": 32, "n_positions": 48},
         "llama": {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32,
                   "intermediate_size": 48, "max_position_embeddings": 48}}


def write_lines(path, lines, seed):
    """Returns sentences that a model can learn: a number of things, and their owner."""
    draw = random.Random(seed)
    names, things = ["Anna", "Boris", "Clara", "David"], ["apples", "books", "cats", "doors"]
    path.write_text("".join(
        f"{draw.choice(names)} has {number} {draw.choice(things)}, and {number} is {'even' if number % 2 == 0 else 'odd'}.\n"
        for number in (draw.randrange(10, 40) for _ in range(lines))))


def write_model(folder, model_type):
    """Writes config.json and a byte-level tokenizer with an end-of-text token."""
    shutil.copytree(SOURCE / "tests/golden/tokenizer/roberta", folder)
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "RobertaTokenizer", "eos_token": "</s>"}))
    vocabulary = json.loads((folder / "vocab.json").read_text())
    (folder / "config.json").write_text(json.dumps({"model_type": model_type, "vocab_size": len(vocabulary), **DECODERS[model_type]}))


def require(condition, message):
    if not condition:
        raise SystemExit(message)


def require_close(what, found, wanted, tolerance):
    require(found.keys() == wanted.keys(), f"{what}: {sorted(found)} and {sorted(wanted)}")
    for key in wanted:
        require(math.isclose(found[key], wanted[key], rel_tol=tolerance, abs_tol=tolerance),
                f"{what}: {key} is {found[key]}, expected {wanted[key]}")


def spans_of(tags):
    """Returns (type, begin, end) of the spans of IOB2 tags."""
    spans, begin = [], None
    for i, tag in enumerate([*tags, "O"]):
        if begin is not None and not tag.startswith("I-"):
            spans.append((tags[begin][2:], begin, i))
            begin = None
        if tag.startswith("B-"):
            begin = i
    return spans


def check_ranks_and_resuming(stretto, recipe, strategies, prefix=""):
    """Tests that results are the same on 1 and 2 ranks, under the strategies and after resuming. Returns the
    name of the run folder; the names of all folders begin with `prefix`."""
    one, two, resumed = (prefix + name for name in ("one", "two", "resumed"))
    stretto.train(recipe, one, 1, "checkpoint.every=7")
    stretto.train(recipe, two, 2, "training.strategy=ddp")
    require_close("2 ranks", stretto.json(f"{two}/dev_results.json"), stretto.json(f"{one}/dev_results.json"), 2e-3)
    wanted = losses_of(stretto, two)[:8]
    for strategy in strategies:
        stretto.train(recipe, prefix + strategy, 2, f"training.strategy={strategy}", "training.steps_this_run=8", "evaluate.every=never")
        found = losses_of(stretto, prefix + strategy)
        require(len(found) == len(wanted) and all(math.isclose(a, b, rel_tol=1e-4) for a, b in zip(found, wanted)),
                f"{strategy}: losses {found} are not those of ddp, {wanted}")
    first = min((stretto.folder / one / "checkpoints").iterdir(), key=lambda path: int(path.name.split("-")[1]))
    stretto.train(recipe, resumed, 1, f"resume={first}")
    for name in ["model.safetensors", "config.json"]:
        require((stretto.folder / resumed / "model" / name).read_bytes() == (stretto.folder / one / "model" / name).read_bytes(),
                f"{name} of a resumed run is not that of a run that was never stopped")
    return one


def losses_of(stretto, run):
    """Returns the loss of each step."""
    records = [json.loads(line) for line in (stretto.folder / run / "metrics.jsonl").read_text().splitlines()]
    return [record["loss"] for record in records if "loss" in record]


def check_without_validation(stretto, recipe, output, *settings):
    """With data.train only, a recipe trains, reports that nothing is evaluated, and keeps the last model,
    also in a folder with an earlier run."""
    train = ["data.validation=null", "training.max_steps=2", *settings]
    stretto.train(recipe, output, 1, *train)
    log = (stretto.folder / output / "logger_logs/training_0.log").read_text()
    require(log.count("evaluation none: data.validation is not set; the model of the last step is kept") == 1, log)
    require((stretto.folder / output / "model/model.safetensors").exists(), "the model")
    require(not (stretto.folder / output / "dev_results.json").exists() and "best" not in stretto.json(f"{output}/summary.json"),
            "results of an evaluation")
    kept = (stretto.folder / output / "model/model.safetensors").read_bytes()
    for setting, key in (("early_stopping.patience=1", "early_stopping.patience"), ("checkpoint.monitor=loss", "checkpoint.monitor"),
                         ("evaluate.every=epoch", "evaluate.every")):
        stretto.require_error(f"{key}: ", "train", recipe, f"output={output}", *train, setting)
    require((stretto.folder / output / "model/model.safetensors").read_bytes() == kept, "a refused run changed the folder")
    stretto.train(f"{output}/config.yaml", f"{output}-again", 1)
    require((stretto.folder / f"{output}-again/model/model.safetensors").read_bytes() == kept, "config.yaml gives another model")


def emptied(path):
    """The folder in which a test works. transformers_test.py compares its files afterwards."""
    folder = pathlib.Path(path).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
