#!/usr/bin/env python3
"""Loss curves on real input over meshes of four ranks: they are one training run, up to rounding.

- a GPT-2 (a recipe) and a Llama (run-llama) of 6 layers, width 384, on tinyshakespeare: dp 4, tp 2 x dp 2, tp 4, tp 2 x zero1 and
  tp 2 x fsdp; a run that is killed on tp 2 x dp 2 and resumed on tp 4; and two hosts (network namespaces) with dp between them and tp
  inside;
- with --seeds, the validation loss of that Llama after equal tokens, trained by run-llama and by a plain PyTorch loop over transformers'
  Llama from the same weights on the same blocks; the run of run-llama is killed on tp 2 x dp 2 and resumed on tp 4;
- BERT-base's shape and an encoder such as MiniLM on SST-2, tp 2 and dp 2: the losses of each step, and the encoder's accuracy.

Prints the largest distance of each curve from that of dp 4, and the places where a requirement is missed. Training multiplies
differences by rounding: a run on two ranks, which only add in another order, shows by how much. fp32, no dropout.
"""

import argparse
import json
import os
import pathlib
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

VOCABULARY, GLOBAL_BATCH = 800, 8
TESTBED = measure.ROOT / "scripts/testbed.sh"
MODELS = {
    "gpt2": {"model_type": "gpt2", "n_layer": 6, "n_head": 12, "n_embd": 384, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
    "llama": {"model_type": "llama", "num_hidden_layers": 6, "num_attention_heads": 12, "num_key_value_heads": 4, "hidden_size": 384,
              "intermediate_size": 1024, "tie_word_embeddings": False},
}
MESHES = {"dp 4": (1, "ddp"), "tp 2 x dp 2": (2, "ddp"), "tp 4": (4, "ddp"), "tp 2 x zero1": (2, "zero1"), "tp 2 x fsdp": (2, "fsdp")}
RECIPE = """
task: causal-lm
causal_lm: {blocks: stream}
training: {max_grad_norm: 1.0, device: cpu, seed: 1}
optimizer: {type: AdamW, lr: 1.0e-3, weight_decay: 0.1, betas: [0.9, 0.95]}
evaluate: {every: never}
checkpoint: {monitor: null}
track: {progress: "off", log_every: 1}
"""


class Curves:
    """The runs of one model over meshes."""

    def __init__(self, options, model, folder):
        self.options, self.model, self.folder = options, model, folder
        size = "n_positions" if model == "gpt2" else "max_position_embeddings"
        config = {**MODELS[model], size: options.length, "vocab_size": VOCABULARY, "bos_token_id": 0, "eos_token_id": 0}
        (folder / f"{model}.json").write_text(json.dumps(config))

    def command(self, run, tp, strategy, ranks=4, hosts=1, saves=False):
        """The command of one host."""
        folder, steps = self.folder, self.options.steps
        common = [f"--nproc-per-node={ranks // hosts}", "--no-pin", "--strategy", strategy]
        batch = GLOBAL_BATCH // (ranks // tp)
        every = max(2, steps // 4)
        if self.model == "llama":
            save = ["--save_checkpoint", "--checkpoint_freq", every, "--num_kept_checkpoint", -1] if saves else []
            return [self.options.stretto, "run-llama", *common, *self.model_and_data(), "--seq_len", self.options.length,
                    "--train_batch_size", batch, "--max_steps", steps, "--lr", "1e-3", "--beta2", 0.95, "--weight_decay", 0.1,
                    "--warmup_steps", steps // 10, "--scheduler_type", "cosine", "--precision", "fp32", "--seed", 1,
                    "--use_selective_checkpoint", 1, "--tensor_parallel_size", tp, "--output_dir", run, *save]
        return [self.options.stretto, "train", folder / "recipe.yaml", *common, "--tp", tp, f"model.config={folder / 'gpt2.json'}",
                f"tokenizer.path={folder / 'tokenizer'}", f"data.train={folder / 'train.txt'}", f"data.max_length={self.options.length}",
                f"training.batch_size={batch}", f"training.max_steps={steps}", "scheduler.type=CosineWithWarmup",
                f"scheduler.num_warmup_steps={steps // 10}", f"checkpoint.every={every if saves else 'never'}", "checkpoint.keep_last=0",
                f"output={run}"]

    def model_and_data(self):
        """The flags of run-llama."""
        return ["--model_path", self.folder / "llama.json", "--model_name", self.folder / "tokenizer", "--data_dir", self.folder / "train.txt"]

    def run(self, name, tp, strategy, ranks=4):
        run = self.folder / f"{self.model}-{name.replace(' ', '')}"
        execute(self.command(run, tp, strategy, ranks))
        return losses_of(run)

    def killed_and_resumed(self):
        run = self.folder / f"{self.model}-killed"
        command = [str(word) for word in self.command(run, 2, "ddp", saves=True)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        half = self.options.steps // 2
        while process.poll() is None and len(losses_of(run)) < half:
            time.sleep(0.05)
        if process.poll() is not None:
            sys.exit(f"{shlex.join(command)} ended with {process.returncode} before it was killed")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for _ in range(120):  # until the ranks have noticed the death of their launcher
            time.sleep(0.5)
            done = finished(self.command(run, 4, "ddp", saves=True))
            if "another run is writing" not in done.stderr:
                break
        require(done)
        return losses_of(run)

    def on_two_hosts(self):
        run = self.folder / f"{self.model}-hosts"
        hosts = [[*self.command(run, 2, "ddp", hosts=2), "--nnodes", 2, "--node-rank", host, "--master-addr", "10.77.0.1"] for host in (0, 1)]
        execute([TESTBED, *(shlex.join(map(str, command)) for command in hosts)], STRETTO_SECRET="0123456789abcdef" * 4)
        return losses_of(run)


class SeedCurves(Curves):
    """Runs of the Llama from given weights on given blocks, in their order, which are evaluated at the end."""

    def __init__(self, options, folder, start, text):
        super().__init__(options, "llama", folder)
        self.start, self.text = start, text

    def model_and_data(self):
        # The peer's warm-up begins at 0, that of run-llama's cosine above it.
        return ["--pretrained_weight", self.start, "--data_dir", self.text, "--validation_dir", self.folder / "validation.txt", "--do_eval",
                "--set", "training.shuffle=false", "--set", "scheduler.warmup_start=null"]


def finished(command, **environment):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, env={**os.environ, **environment})


def require(done):
    if done.returncode != 0:
        sys.exit(f"{shlex.join(done.args)} ended with {done.returncode}:\n{done.stdout[-1000:]}{done.stderr[-3000:]}")


def execute(command, **environment):
    require(finished(command, **environment))


def losses_of(run):
    """The loss of each step; a step that a resumed run repeats counts once."""
    losses = {}
    try:
        lines = (run / "metrics.jsonl").read_text().splitlines()
    except OSError:
        return losses
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:  # a killed program wrote a part of it
            continue
        if "loss" in record:
            losses[record["step"]] = record["loss"]
    return losses


def compare(work, losses, reference, bound=None):
    """The largest distance between two curves, which it prints, as that of the first 20 steps; and whether it is within the bound."""
    if losses.keys() != reference.keys():
        sys.exit(f"{work}: it has losses of steps {sorted(losses)}, expected {sorted(reference)}")
    distances = {step: abs(losses[step] - reference[step]) for step in sorted(reference)}
    step = max(distances, key=distances.get)
    early = max(list(distances.values())[:20])
    verdict = "" if bound is None else f"; at most {bound:.2g}: {'met' if distances[step] <= bound else 'MISSED'}"
    print(f"{work:34} largest distance {distances[step]:.2e} (step {step} of {len(reference)}, loss {reference[step]:.4f}), "
          f"{early:.2e} in 20 steps{verdict}", flush=True)
    return distances[step]


def shakespeare(options, folder):
    accuracy = load_accuracy()
    text = options.text.read_text(encoding="utf-8")
    (folder / "tokenizer").mkdir()
    (folder / "train.txt").write_text(text, encoding="utf-8")
    subprocess.run([options.python, "-c", accuracy.TOKENIZER, folder / "train.txt", str(VOCABULARY), folder / "tokenizer"], check=True)
    (folder / "tokenizer/tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "GPT2Tokenizer", "eos_token": "<|endoftext|>"}))
    (folder / "recipe.yaml").write_text(RECIPE)
    for model in options.models:
        curves = Curves(options, model, folder)
        reference = None
        for name, (tp, strategy) in MESHES.items():
            if reference is not None and name not in options.meshes:
                continue
            losses = curves.run(name, tp, strategy)
            if reference is None:
                reference = losses
                first, last = min(losses), max(losses)
                print(f"{model + ', ' + name:34} loss {losses[first]:.4f} at step {first}, {losses[last]:.4f} at step {last}", flush=True)
                # Training multiplies the difference of two roundings. Two ranks only add in another order.
                bound = max(options.bound, 3 * compare(f"{model}, dp 2 (rounding alone)", curves.run("dp 2", 1, "ddp", ranks=2), reference))
            else:
                compare(f"{model}, {name}", losses, reference, bound)
        compare(f"{model}, killed, then tp 4", curves.killed_and_resumed(), reference, bound)
        if subprocess.run([TESTBED], capture_output=True).returncode == 77:
            measure.print_skipped(f"{model}, two hosts", "this system permits no network namespaces")
        else:
            compare(f"{model}, two hosts, tp 2 inside", curves.on_two_hosts(), reference, bound)


def validation(options, folder):
    """The validation losses of runs that are killed and resumed on another mesh, and those of transformers' Llama."""
    accuracy = load_accuracy()
    ours, theirs = [], []
    peer = argparse.Namespace(output=folder, data=options.text, python=options.python, precision="fp32", steps=options.steps)
    accuracy.prepare(peer)
    Curves(options, "llama", folder)  # writes llama.json
    for seed in options.seeds:
        start, text = accuracy.prepare_start(peer, "llama", seed)
        curves = SeedCurves(options, folder, start, text)
        curves.killed_and_resumed()
        ours.append(json.loads((folder / "llama-killed/test_results.json").read_text())["loss"])
        shutil.rmtree(folder / "llama-killed")
        theirs.append(accuracy.peer_loss(peer, "llama", seed, start, text, options.length))
        print(f"{f'llama, seed {seed}, validation loss':34} stretto {ours[-1]:.4f}, transformers {theirs[-1]:.4f}", flush=True)
    own, other = statistics.mean(ours), statistics.mean(theirs)
    print(f"{'llama, mean of seeds':34} stretto {own:.4f}, transformers {other:.4f}; must be at most 0.01 above it: "
          f"{'met' if own <= other + 0.01 else 'MISSED'}", flush=True)


def load_accuracy():
    sys.path.insert(0, str(measure.ROOT / "bench/language_models"))
    import accuracy
    return accuracy


def sst2(options, folder):
    train = measure.load_script("train")
    recipe = "task: text-classification\ncheckpoint: {monitor: null}\nevaluate: {every: never}\ntrack: {progress: \"off\", log_every: 1}\n"
    (folder / "sst2.yaml").write_text(recipe)
    (folder / "bert.json").write_text(json.dumps(train.SHAPES["bert-base"]))
    data = options.sst2
    for model, batch in (("bert-base", 8), ("encoder", 32)):
        of_model = ["model.config=" + str(folder / "bert.json"), f"tokenizer.path={options.encoder}"] if model == "bert-base" else [
            f"model.path={options.encoder}"]
        curves = []
        for tp in (1, 2):
            run = folder / f"{model}-tp{tp}"
            execute([options.stretto, "train", folder / "sst2.yaml", "-N", 2, "--tp", tp, *of_model, f"data.train={data / 'train.tsv'}",
                     "data.max_length=128", "model.dropout=0", f"training.global_batch_size={batch}", f"training.max_steps={options.sst2_steps}",
                     "training.max_grad_norm=1", "optimizer.lr=5e-5", "optimizer.weight_decay=0.01", f"output={run}"])
            curves.append(losses_of(run))
            shutil.rmtree(run)
        compare(f"{model} on SST-2, tp 2", curves[1], curves[0], 1e-4)
    results = []
    for tp in (1, 2):
        run = folder / f"accuracy-tp{tp}"
        execute([options.stretto, "train", measure.ROOT / "recipes/sst2.yaml", "-N", 2, "--tp", tp, f"model.path={options.encoder}",
                 f"data.train={data / 'train.tsv'}", f"data.validation={data / 'dev.tsv'}", "data.test=null", "training.batch_size=null",
                 "training.global_batch_size=64", "training.precision=fp32", f"data.max_train_samples={options.samples}", f"output={run}"])
        results.append(json.loads((run / "dev_results.json").read_text())["accuracy"])
    print(f"{'encoder on SST-2, dev accuracy':34} dp 2 {results[0]:.4f}, tp 2 {results[1]:.4f} after {options.samples} samples", flush=True)


def main():
    data = pathlib.Path(os.environ.get("STRETTO_DATA", "."))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stretto", type=pathlib.Path, default=measure.ROOT / "build/release/bin/stretto")
    parser.add_argument("--python", default=sys.executable, help="a Python with tokenizers; for --seeds also with torch and transformers")
    parser.add_argument("--text", type=pathlib.Path, default=data / "tinyshakespeare/input.txt")
    parser.add_argument("--sst2", type=pathlib.Path, default=data / "sst2", help="a folder with train.tsv and dev.tsv")
    parser.add_argument("--encoder", help="default: STRETTO_ENCODER, else the demo's")
    parser.add_argument("--steps", type=int, default=40, help=f"of {GLOBAL_BATCH} blocks")
    parser.add_argument("--length", type=int, default=128, help="tokens per block")
    parser.add_argument("--bound", type=float, default=2e-3, help="the largest distance of a language model's loss, or 3 times that of dp 2")
    parser.add_argument("--models", nargs="*", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--meshes", nargs="*", choices=list(MESHES)[1:], default=list(MESHES)[1:], help="besides dp 4")
    parser.add_argument("--seeds", type=int, nargs="*", default=[], help="of the runs that compare validation losses with transformers' Llama")
    parser.add_argument("--sst2-steps", type=int, default=50)
    parser.add_argument("--samples", type=int, default=8000, help="of SST-2, for the accuracy; 0: without SST-2")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="curves-") as name:
        folder = pathlib.Path(name)
        if options.models:
            shakespeare(options, folder)
        if options.seeds:
            validation(options, folder / "seeds")
        if options.samples:
            options.encoder = measure.encoder(options.encoder)
            sst2(options, folder)


if __name__ == "__main__":
    main()
