#!/usr/bin/env python3
"""stretto on one NVIDIA GPU, compared with the CPU: `make test-gpu`.

    gpu_test.py STRETTO [--examples FOLDER] [--jobs N] [--timeout SECONDS] [--output FOLDER] [NAME ...]

Runs the cases whose names contain a NAME (default: all), N at a time, and prints a line for each. Skipped with
a message if stretto sees no GPU. Values are those of the CPU where they do not depend on the order of sums:
initial values, batches and dropout masks are functions of the seed.
"""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tasks"))
from workspace import CAUSAL_LM, SOURCE, Stretto, losses_of, require, write_bart, write_inputs, write_lines, write_model, write_roberta  # noqa: E402

GPU, CPU = "training.device=cuda", "training.device=cpu"
QUIET = """checkpoint: {keep_last: 0}
track: {progress: "off", log_every: 1}
"""
CLASSES = """
task: text-classification
model: {config: reader/config.json}
tokenizer: {path: reader}
data: {train: reviews/train.tsv, validation: reviews/dev.tsv, test: reviews/dev.tsv, max_length: 40}
training: {max_steps: 8, global_batch_size: 8, max_grad_norm: 1}
optimizer: {lr: 3.0e-3}
""" + QUIET
TOKENS = """
task: token-classification
model: {config: encoder/config.json}
tokenizer: {path: encoder}
data: {train: data/train.conll, validation: data/dev.conll, test: data/test.conll, max_length: 48}
training: {max_steps: 8, global_batch_size: 8}
optimizer: {lr: 5.0e-3}
""" + QUIET
QUESTIONS = """
task: question-answering
model: {config: encoder/config.json}
tokenizer: {path: encoder}
data: {train: data/train.json, validation: data/dev.json, test: data/test.json, max_length: 32}
question_answering: {doc_stride: 8}
training: {max_steps: 8, global_batch_size: 8}
optimizer: {lr: 3.0e-3}
""" + QUIET
LINES = CAUSAL_LM.replace("epochs: 2", "max_steps: 8").replace(", device: cpu", "")

# Decoders and encoders with random weights, by model type; the vocabulary's size is added.
DECODERS = {
    "mistral": {"sliding_window": 7}, "qwen2": {}, "qwen3": {"head_dim": 8},
}
ENCODERS = {
    "bert": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "max_position_embeddings": 64},
    "electra": {"embedding_size": 16, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
                "max_position_embeddings": 64},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "max_position_embeddings": 64},
}
TAGGER = {"model_type": "sequence-tagger", "word_dimensions": 24, "character_dimensions": 8, "character_hidden_size": 6, "hidden_size": 16}
# Optimizers with the settings that they need.
OPTIMIZERS = {"AdamW": [], "Adam": [], "SGD": ["optimizer.momentum=0.9"], "Adagrad": [], "RMSprop": ["optimizer.momentum=0.5"], "Adadelta": [],
              "Adamax": [], "NAdam": [], "RAdam": [], "ASGD": [], "Rprop": [], "LBFGS": ["optimizer.lr=0.1"], "Lamb": [], "Adafactor": [],
              "Muon": ["optimizer.lr=0.01"]}


class Workspace(Stretto):
    def __init__(self, program, folder, timeout):
        super().__init__(program, folder)
        self.timeout, self.seconds = timeout, 0.0

    def call(self, arguments, stdin=None):
        command = [self.program, *map(str, arguments)]
        try:
            return subprocess.run(command, cwd=self.folder, capture_output=True, input=stdin, encoding="utf-8", errors="replace", timeout=self.timeout)
        except subprocess.TimeoutExpired as error:
            shown = (error.stderr or b"")[-2000:]
            raise SystemExit(f"no end within {self.timeout} s: {' '.join(command)}\n{shown.decode(errors='replace') if isinstance(shown, bytes) else shown}")

    def run(self, *arguments, stdin=None):
        done = self.call(arguments, stdin)
        if done.returncode != 0:
            raise SystemExit(f"stretto {' '.join(map(str, arguments))} ended with {done.returncode}:\n{done.stderr}{done.stdout[-500:]}")
        return done.stdout

    def error(self, *arguments):
        done = self.call(arguments)
        if done.returncode == 0:
            raise SystemExit(f"stretto {' '.join(map(str, arguments))} did not fail")
        return done.stderr

    def losses(self, recipe, output, *settings):
        """The losses of a run on one rank."""
        self.train(recipe, output, 1, *settings)
        losses = losses_of(self, output)
        require(losses and all(map(math.isfinite, losses)), f"{output}: losses {losses}")
        return losses

    def log(self, output):
        return (self.folder / output / "logger_logs/training_0.log").read_text()

    def weights(self, output):
        return (self.folder / output / "model/model.safetensors").read_bytes()


def require_losses(what, found, wanted, tolerance):
    require(len(found) == len(wanted), f"{what}: {len(found)} losses, expected {len(wanted)}")
    worst = max(abs(a - b) / max(1, abs(b)) for a, b in zip(found, wanted))
    require(worst <= tolerance, f"{what}: losses differ by {worst:.2g}, more than {tolerance:.2g}: {found}, expected {wanted}")
    return f"differs by {worst:.1g}"


def compare(stretto, name, recipe, *settings, tolerance):
    """Trains on GPU and CPU and compares all losses. Dropout is on: its masks belong to samples."""
    found = stretto.losses(recipe, f"{name}-gpu", GPU, *settings)
    return require_losses(name, found, stretto.losses(recipe, f"{name}-cpu", CPU, *settings), tolerance)


def write_data(folder):
    write_lines(folder / "train.txt", 200, seed=1)
    write_lines(folder / "dev.txt", 30, seed=2)
    for model_type in ("gpt2", "llama"):
        write_model(folder / model_type, model_type)
    llama = json.loads((folder / "llama/config.json").read_text())
    for model_type, settings in DECODERS.items():
        (folder / f"{model_type}.json").write_text(json.dumps({**llama, "model_type": model_type, **settings}))
    gpt2 = json.loads((folder / "gpt2/config.json").read_text())
    (folder / "plain.json").write_text(json.dumps({**gpt2, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0}))
    write_inputs(folder)
    subprocess.run([sys.executable, "-B", SOURCE / "scripts/make_reviews.py", folder / "reviews", "--rows", "100"], check=True)
    words = sorted({word for path in (folder / "reviews").glob("*.tsv") for word in path.read_text().split()})
    (folder / "reader").mkdir()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (folder / "reader/vocab.txt").write_text("\n".join(vocabulary) + "\n")
    for model_type, settings in ENCODERS.items():
        config = {"model_type": model_type, "vocab_size": len(vocabulary), **settings}
        (folder / f"{model_type}.json").write_text(json.dumps(config))
    (folder / "reader/config.json").write_text((folder / "bert.json").read_text())
    write_bart(folder / "new-bart")
    write_roberta(folder / "new-roberta")
    (folder / "tagger.json").write_text(json.dumps(TAGGER))
    for name, recipe in (("lines", LINES), ("classes", CLASSES), ("tokens", TOKENS), ("questions", QUESTIONS)):
        (folder / f"{name}.yaml").write_text(recipe)
    (folder / "tagger.yaml").write_text(TOKENS.replace("{config: encoder/config.json}", "{config: tagger.json}").replace("tokenizer: {path: encoder}\n", ""))


# At the default loss scale the GPU's products overflow in the first steps, which are then skipped.
PRECISIONS = {"fp32": ["training.precision=fp32"], "bf16": ["training.precision=bf16"],
              "fp16": ["training.precision=fp16", "loss_scale.init_scale=128"]}

# Cases by name. A case returns a text that is shown behind its name, and ends with SystemExit if it fails.
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def add_cases():
    fp64 = ["training.precision=fp64"]
    for model_type in ("gpt2", "llama", *DECODERS):
        config = f"{model_type}/config.json" if model_type in ("gpt2", "llama") else f"{model_type}.json"
        CASES[f"fp64_{model_type}"] = lambda s, t=model_type, c=config: compare(
            s, f"fp64-{t}", "lines.yaml", *fp64, f"model.config={c}", tolerance=1e-9)
    for model_type in ENCODERS:
        CASES[f"fp64_{model_type}"] = lambda s, t=model_type: compare(
            s, f"fp64-{t}", "classes.yaml", *fp64, f"model.config={t}.json", tolerance=1e-9)
    for model_type in ("bart", "roberta"):
        new = [f"model.config=new-{model_type}/config.json", f"tokenizer.path=new-{model_type}"]
        CASES[f"fp64_{model_type}"] = lambda s, t=model_type, n=new: compare(s, f"fp64-{t}", "classes.yaml", *fp64, *n, tolerance=1e-9)
    for recipe in ("tokens", "questions", "tagger"):
        CASES[f"fp64_{recipe}"] = lambda s, r=recipe: compare(s, f"fp64-{r}", f"{r}.yaml", *fp64, tolerance=1e-9)
    for recipe in ("lines", "classes", "tokens", "questions", "tagger"):
        for precision, tolerance in (("fp32", 1e-3 if recipe != "tagger" else 1e-2), ("bf16", 0.05), ("fp16", 0.05)):
            CASES[f"{precision}_{recipe}"] = lambda s, r=recipe, p=precision, t=tolerance: compare(
                s, f"{p}-{r}", f"{r}.yaml", *PRECISIONS[p], tolerance=t)
    CASES["bf16_llama"] = lambda s: compare(s, "bf16-llama", "lines.yaml", "training.precision=bf16", "model.config=llama/config.json", tolerance=0.05)
    for precision in ("fp32", "bf16", "fp16"):  # without dropout, attention is another kernel
        CASES[f"{precision}_plain"] = lambda s, p=precision: compare(
            s, f"{p}-plain", "lines.yaml", *PRECISIONS[p], "model.config=plain.json", tolerance=1e-3 if p == "fp32" else 0.05)
    for optimizer, settings in OPTIMIZERS.items():
        CASES[f"optimizer_{optimizer}"] = lambda s, o=optimizer, more=settings: compare(
            s, f"optimizer-{o}", "classes.yaml", f"optimizer.type={o}", *more, "training.max_steps=5", "evaluate.every=never",
            "training.max_grad_norm=0", *fp64, tolerance=1e-8)
    for name, settings in {
            "accumulation": ["training.batch_size=2", "training.grad_accumulation_steps=4", "training.global_batch_size=null"],
            "recomputation": ["training.activation_checkpointing=1"],
            "clipping": ["training.max_grad_value=1e-3"],
            "average": ["ema.decay=0.9"],
            "tokens_per_step": ["training.max_tokens=100", "training.global_batch_size=null"],
            "untied": ["model.config=llama/config.json"]}.items():
        CASES[f"fp64_with_{name}"] = lambda s, n=name, more=settings: compare(s, f"with-{n}", "lines.yaml", *fp64, *more, tolerance=1e-9)


@case
def strategies(stretto):
    """With one rank all strategies take the same steps."""
    wanted = stretto.losses("lines.yaml", "ddp", GPU, "training.strategy=ddp", "training.precision=bf16")
    for strategy in ("zero1", "zero2", "fsdp"):
        found = stretto.losses("lines.yaml", strategy, GPU, f"training.strategy={strategy}", "training.precision=bf16")
        require_losses(strategy, found, wanted, 0)
    return "equal losses"


@case
def resuming(stretto):
    """A resumed run has the bits of one that was never stopped; a run continues on the other kind of device."""
    for precision in ("fp32", "bf16"):
        settings = [f"training.precision={precision}", "training.max_steps=12"]
        whole = stretto.losses("lines.yaml", f"whole-{precision}", GPU, *settings, "checkpoint.every=5")
        first = f"resume={stretto.folder}/whole-{precision}/checkpoints/step-00000005"
        require_losses("resumed", stretto.losses("lines.yaml", f"resumed-{precision}", GPU, *settings, first), whole[5:], 0)
        require(stretto.weights(f"resumed-{precision}") == stretto.weights(f"whole-{precision}"), f"{precision}: resumed weights differ")
    fp32 = ["training.max_steps=12"]
    first = f"resume={stretto.folder}/whole-fp32/checkpoints/step-00000005"
    wanted = losses_of(stretto, "whole-fp32")[5:]
    require_losses("on the CPU", stretto.losses("lines.yaml", "to-cpu", CPU, *fp32, first), wanted, 1e-3)
    stretto.losses("lines.yaml", "from-cpu", CPU, *fp32, "checkpoint.every=5")
    first = f"resume={stretto.folder}/from-cpu/checkpoints/step-00000005"
    return require_losses("from the CPU", stretto.losses("lines.yaml", "to-gpu", GPU, *fp32, first), wanted, 1e-3)


@case
def repeating(stretto):
    """Two equal runs give the same bits."""
    for recipe in ("lines", "classes"):
        runs = [stretto.losses(f"{recipe}.yaml", f"{recipe}-{i}", GPU, "training.precision=bf16") for i in range(2)]
        require_losses(recipe, runs[0], runs[1], 0)
        require(stretto.weights(f"{recipe}-0") == stretto.weights(f"{recipe}-1"), f"{recipe}: weights differ")
    return "equal bits"


@case
def writing(stretto):
    """Texts of evaluations, of `generate` and `predict` are those of the CPU."""
    texts = ["Anna has", "Boris has 12 books, and", "David"]
    settings = ["training.max_steps=60", f"evaluate.samples={json.dumps(texts)}", "optimizer.lr=1e-2"]
    stretto.losses("lines.yaml", "writer", GPU, *settings)
    records = [json.loads(line) for line in (stretto.folder / "writer/texts.jsonl").read_text().splitlines()]
    prompts = [part for text in texts for part in ("--text", text)]
    model = ["--model", "writer/model", *prompts]
    written = {device: stretto.run("generate", *model, "--max-new-tokens", 64, "--device", device) for device in ("cpu", "cuda")}
    require(written["cuda"] == written["cpu"], f"generate: {written}")
    require([record["text"] for record in records[-3:]] == written["cpu"].splitlines(), f"samples {records[-3:]}, expected {written['cpu']}")
    for more in (["--num-beams", 3], ["--do-sample", "--seed", 3], ["--batch-size", 1]):
        found = {device: stretto.run("generate", *model, *more, "--json", "--max-new-tokens", 20, "--device", device) for device in ("cpu", "cuda")}
        require(found["cuda"] == found["cpu"], f"generate {more}: {found}")
    for precision in ("bf16", "fp16"):
        stretto.run("generate", *model, "--precision", precision, "--max-new-tokens", 20, "--device", "cuda")
    require(stretto.run("predict", *model, "--device", "cuda") == stretto.run("predict", *model, "--device", "cpu"), "predict")
    return "equal texts"


def numbers_of(value):
    if isinstance(value, (int, float)):
        return [value]
    if isinstance(value, dict):
        return [number for key in sorted(value) for number in numbers_of(value[key])]
    return [number for one in value for number in numbers_of(one)] if isinstance(value, list) else []


@case
def predicting(stretto):
    """Results of `test` and `predict` are those of the CPU."""
    inputs = {"classes": ["--text", "a gripping film", "--output", "scores"],
              "tokens": ["--text", "anna berger works for blue river bank in new york ."],
              "questions": ["--text", "who works ?\tanna berger works for blue river bank in new york ."],
              "tagger": ["--text", "anna berger works for blue river bank ."]}
    worst = 0
    for recipe, texts in inputs.items():
        stretto.losses(f"{recipe}.yaml", f"for-{recipe}", GPU)
        results = []
        for device in ("cuda", "cpu"):
            stretto.run("test", f"{recipe}.yaml", "-N", 1, "--no-pin", f"output=for-{recipe}", f"training.device={device}")
            results.append(numbers_of(stretto.json(f"for-{recipe}/test_results.json")))
            printed = stretto.run("predict", "--model", f"for-{recipe}/model", *texts, "--device", device)
            results[-1] += numbers_of([json.loads(line) for line in printed.splitlines()])
        require(len(results[0]) == len(results[1]), f"{recipe}: {results}")
        here = max(abs(a - b) for a, b in zip(*results))
        require(here < 2e-3, f"{recipe}: differs by {here:.2g}: {results}")
        worst = max(worst, here)
    return f"differs by {worst:.1g}"


@case
def perplexity(stretto):
    stretto.losses("lines.yaml", "measured", GPU, "training.precision=bf16")
    found = []
    for device in ("cuda", "cpu"):
        stretto.run("test", "lines.yaml", "-N", 1, "--no-pin", "output=measured", f"training.device={device}", "causal_lm.stride=16")
        found.append(stretto.json("measured/test_results.json"))
    require(math.isclose(found[0]["perplexity"], found[1]["perplexity"], rel_tol=1e-4), f"perplexities {found}")
    return f"{found[0]['perplexity']:.4f} and {found[1]['perplexity']:.4f}"


@case
def refusals(stretto):
    train = ["train", "lines.yaml", "-N", 1, "--no-pin", "output=refused", GPU]
    stretto.require_error("only the CPU's kernels sum in a fixed order", *train, "training.deterministic=true", "training.batch_size=4")
    stretto.require_error("does not work on GPUs", *train, "training.backend=gloo")
    stretto.require_error("GPUs do not offload", *train, "training.strategy=fsdp-bf16-cpu")
    stretto.require_error("on the CPU only", *train, "model.config=llama/config.json", "optimizer.type=SparseAdam")
    stretto.require_error("only the CPU steps state in files", *train, "training.offload_optimizer=auto")
    gpus = 1 + int(subprocess.run(["nvidia-smi", "-L"], capture_output=True, encoding="utf-8").stdout.count("GPU "))
    stretto.require_error("each rank needs its own", "train", "lines.yaml", "-N", gpus, "--no-pin", "output=refused", GPU)
    return ""


@case
def more_ranks_than_gpus(stretto):
    """With device auto such a job computes on the CPU, and warns."""
    gpus = 1 + int(subprocess.run(["nvidia-smi", "-L"], capture_output=True, encoding="utf-8").stdout.count("GPU "))
    stretto.train("lines.yaml", "many", gpus, "training.max_steps=2")
    require("computing on the CPU" in stretto.log("many"), stretto.log("many"))
    return ""


@case
def automatic(stretto):
    """The default device is the GPU."""
    stretto.train("lines.yaml", "automatic", 1, "training.max_steps=2")
    log = stretto.log("automatic")
    require("cuda:0" in log or "nccl" in log, log)
    return ""


@case
def flags(stretto):
    """The flags of run_clm.py."""
    stretto.run("run-clm", "--config_name", "gpt2/config.json", "--tokenizer_name", "gpt2", "--train_file", "train.txt", "--validation_file", "dev.txt",
                "--do_train", "--do_eval", "--max_steps", 4, "--block_size", 32, "--bf16", "--output_dir", "flags", "-N", 1)
    return f"perplexity {stretto.json('flags/all_results.json')['perplexity']:.2f}"


@case
def evaluation_in_a_process(stretto):
    stretto.losses("classes.yaml", "async", GPU, "evaluate.async=true")
    require((stretto.folder / "async/model/model.safetensors").exists(), "the model")
    return ""


@case
def doctor(stretto):
    done = stretto.call(["doctor"])
    require(done.returncode == 0, done.stderr)
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "GFLOP/s" in line]
    require(lines, done.stdout + done.stderr)
    return "; ".join(" ".join(line.split()) for line in lines)


@case
def profile(stretto):
    stretto.run("profile", "lines.yaml", "-N", 1, "--no-pin", GPU)
    return ""


def add_examples(folder):
    """Programs with Lite and with Modules of torch's layers."""
    for name in ("mlp_lite", "tagger_lite", "whole"):
        program = folder / name
        if not program.exists():
            continue

        def run(stretto, program=program):
            done = subprocess.run([program], cwd=stretto.folder, capture_output=True, encoding="utf-8", timeout=stretto.timeout)
            require(done.returncode == 0, done.stderr + done.stdout)
            return done.stdout.splitlines()[-1] if done.stdout else ""
        CASES[f"example_{name}"] = run
    waves = folder / "module_waves"
    if waves.exists():
        def train_waves(stretto):
            for precision in ("fp32", "bf16", "fp16"):
                done = subprocess.run([waves, SOURCE / "examples/module/waves.yaml", "-N", "1", "--no-pin", GPU, "training.max_steps=12",
                                       f"training.precision={precision}", f"output=waves-{precision}"],
                                      cwd=stretto.folder, capture_output=True, encoding="utf-8", timeout=stretto.timeout)
                require(done.returncode == 0, done.stderr)
            return ""
        CASES["example_module_waves"] = train_waves


def sees_gpu(stretto):
    """Returns why stretto does not compute on a GPU, or ""."""
    done = stretto.call(["train", "lines.yaml", "-N", 1, "--no-pin", "output=first", GPU, "training.max_steps=1"])
    refused = "this libtorch sees no CUDA device" in done.stderr
    if done.returncode != 0 and not refused:
        print(f"FAIL first run\n{done.stderr}", flush=True)
    return done.stderr.strip() if refused else ""


def run_case(name, stretto, lock):
    begin = time.monotonic()
    try:
        shown, failure = CASES[name](stretto) or "", ""
    except SystemExit as error:
        shown, failure = "", str(error)
    except Exception:  # a missing file is a failed case as well
        shown, failure = "", traceback.format_exc()
    with lock:
        print(f"{'FAIL' if failure else 'ok  '} {name:<28} {time.monotonic() - begin:5.1f} s  {shown}", flush=True)
        lines = failure.splitlines()
        for line in lines if len(lines) <= 16 else [*lines[:4], "...", *lines[-12:]]:
            print(f"       {line[:600]}", flush=True)
    return not failure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stretto")
    parser.add_argument("--examples", type=pathlib.Path, default=pathlib.Path("build/release/examples"))
    parser.add_argument("--jobs", type=int, default=max(1, min(10, (os.cpu_count() or 2) // 2)))
    parser.add_argument("--timeout", type=float, default=120, help="of each program")
    parser.add_argument("--output", type=pathlib.Path, help="an empty folder for the runs, which is kept")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    add_cases()
    add_examples(arguments.examples.resolve())
    names = [name for name in CASES if not arguments.names or any(wanted in name for wanted in arguments.names)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.output or pathlib.Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        program = str(pathlib.Path(arguments.stretto).resolve())
        write_data(folder)
        stretto = Workspace(program, folder, arguments.timeout)
        refused = sees_gpu(stretto)
        if refused:
            print(f"SKIPPED: no GPU: {refused}")
            return 0
        lock = threading.Lock()
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            results = list(pool.map(lambda name: run_case(name, stretto, lock), names))
    print(f"{sum(results)} of {len(results)} cases passed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
