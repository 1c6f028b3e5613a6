#!/usr/bin/env python3
"""Training a GPT-2 of 6 layers, width 384 and blocks of 256 tokens, 8 per step and rank, at GPT-2's vocabulary and at one of
800: stretto versus the step's matrix products alone, transformers, a tuned PyTorch loop, and llm.c; memory; two ranks; Muon.

No dropout; the text is of the demo's reviews, the tokenizer a small one: the time of a step depends on the size of the model's
vocabulary only. llm.c is built from $STRETTO_DATA/peers/llm.c, and skipped without it.
"""

import array
import concurrent.futures
import functools
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

FOLDER = pathlib.Path(__file__).resolve().parent
LOOP = FOLDER / "torch_loop.py"
RECIPE = """
task: causal-lm
model: {config: CONFIG}
tokenizer: {path: TOKENIZER}
data: {train: TEXT}
causal_lm: {blocks: stream}
training: {batch_size: 8, device: cpu}
optimizer: {lr: 1.0e-3}
track: {progress: "off", log_every: 1}
"""
SIZES = {"model_type": "gpt2", "n_layer": 6, "n_head": 6, "n_embd": 384, "n_positions": 256, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
         "attn_pdrop": 0.0}
TOKENS = 8 * SIZES["n_positions"]  # per step and rank
VOCABULARIES = (50257, 800)
# Operations of the matmuls of a step's attention, which `stretto profile` does not count: scores, weighted values, and the two
# gradients of each, of the causal half.
ATTENTION = 8 * SIZES["n_layer"] * 6 * 2 * SIZES["n_embd"] * SIZES["n_positions"] * (SIZES["n_positions"] + 1) / 2
MUON = ["optimizer.type=Muon", "optimizer.lr=0.02", "optimizer.adamw_lr=1e-3"]


def most_products(vocabulary, precision):
    """How many times its products a step may take, and what it should take."""
    if precision == "bf16":
        return (2.2, 1.7) if measure.has_amx() else {50257: (1.25, 1.15), 800: (1.4, 1.25)}[vocabulary]
    of_vocabulary = {50257: (1.15, 1.1), 800: (1.25, 1.2)} if measure.has_amx() else {50257: (1.06, 1.03), 800: (1.15, 1.1)}
    return of_vocabulary[vocabulary]


def least_of_tuned(vocabulary, precision):
    if precision == "bf16" and measure.has_amx():
        return 1.5, 2
    return (1.1, 1.25) if (vocabulary, precision) == (800, "bf16") else (1, None)


def least_of_transformers(vocabulary, precision):
    return {(50257, "fp32"): (1.5, 1.6), (50257, "bf16"): (2, 2.5)}.get((vocabulary, precision), (None, None))


def write_inputs(folder):
    subprocess.run([sys.executable, "-B", measure.ROOT / "scripts/make_reviews.py", folder / "reviews", "--rows", "8000"], check=True,
                   stdout=subprocess.DEVNULL)
    rows = (folder / "reviews/train.tsv").read_text(encoding="utf-8").splitlines()[1:]
    (folder / "text.txt").write_text("".join(row.split("\t")[0] + "\n" for row in rows), encoding="utf-8")
    shutil.copytree(measure.ROOT / "tests/golden/tokenizer/roberta", folder / "tokenizer")
    recipe = RECIPE
    for word, name in (("CONFIG", "config.json"), ("TOKENIZER", "tokenizer"), ("TEXT", "text.txt")):
        recipe = recipe.replace(word, str(folder / name))
    (folder / "lm.yaml").write_text(recipe)


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder

    @functools.cached_property
    def libraries(self):
        """MB of a process that only loads the libraries: stretto's, and transformers'."""
        train = measure.load_script("train")
        own, _ = train.libraries_alone(self.options, 1)
        return own, train.idle(self.options.python, "import torch; from transformers import GPT2LMHeadModel", 1)

    def use(self, vocabulary):
        (self.folder / "config.json").write_text(json.dumps({**SIZES, "vocab_size": vocabulary}))

    def alternate(self, *turns):
        """The results of each function, called in turns."""
        rounds = [[turn() for turn in turns] for _ in range(self.options.rounds)]
        return [list(results) for results in zip(*rounds)]

    def command(self, verb, precision, ranks, output, *settings):
        return [self.options.stretto, verb, self.folder / "lm.yaml", "-N", ranks, *(["--no-pin"] if ranks == 1 else []),
                f"output={output}", f"training.precision={precision}", *settings]

    def new_output(self, name="run"):
        shutil.rmtree(self.folder / name, ignore_errors=True)
        return self.folder / name

    def own(self, precision, *settings, ranks=1, core=None):
        """Tokens/s of all ranks, the median over steps but the first, and MB; of several ranks only tokens/s."""
        output = self.new_output(f"run{core or ''}")
        outcome = measure.run(self.command("train", precision, ranks, output, f"training.max_steps={self.options.steps}", *settings),
                              core or measure.one_core() if ranks == 1 else None, {"OMP_NUM_THREADS": "1"},
                              watch="stretto-rank" if ranks == 1 else "")
        records = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
        return statistics.median(record["tokens_per_second"] for record in records if "tokens_per_second" in record), outcome.pss_mb

    def two_at_once(self, precision):
        """Tokens/s of two runs of one rank at the same time, each on its core: what two ranks reach without communication."""
        cores = [str(core) for core in sorted(os.sched_getaffinity(0))[:2]]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            return sum(speed for speed, _ in pool.map(lambda core: self.own(precision, core=core), cores))

    def loop(self, how, precision, ranks=1):
        """The same of torch_loop.py."""
        command = [self.options.python, LOOP, how, "--config", self.folder / "config.json", "--precision", precision, "--steps",
                   self.options.steps]
        if ranks > 1:
            command[1:1] = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks]
        environment = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        if how != "transformers" and measure.tcmalloc():
            environment["LD_PRELOAD"] = measure.tcmalloc()
        outcome = measure.run(command, measure.one_core() if ranks == 1 else None, environment, watch=LOOP.name if ranks == 1 else "")
        seconds = json.loads(outcome.out.splitlines()[-1])
        return ranks * TOKENS / statistics.median(seconds[1:]), outcome.pss_mb

    def products(self, precision):
        """Seconds of a step, of its layers' matmuls by the fastest library, and of these and attention's at the best rate of any:
        `stretto profile` measures all in one run."""
        report = measure.run([*self.command("profile", precision, 1, self.new_output()), "--steps", self.options.steps], measure.one_core(),
                             {"OMP_NUM_THREADS": "1"}).err
        floor, multiple = map(float, re.search(r"floor ([0-9.]+) ms.* takes ([0-9.]+) times as long", report).groups())
        rates = [float(rate) for line in re.findall(r"(.*) GFLOP/s alone", report) for rate in re.findall(r" ([0-9]+)(?:,|$)", line)]
        return floor * multiple / 1e3, floor / 1e3, floor / 1e3 + ATTENTION / max(rates) / 1e9


def tuned_name():
    return "tuned PyTorch" + (" + tcmalloc" if measure.tcmalloc() else "")


def compare_steps(bench, vocabulary, precision):
    bench.use(vocabulary)
    work = f"GPT-2 L6 H384, vocabulary {vocabulary}, {precision}"
    step = functools.partial(bench.own, precision)
    ours, theirs, tuned = bench.alternate(step, *(functools.partial(bench.loop, how, precision) for how in ("transformers", "tuned")))
    speeds = [speed for speed, _ in ours]
    for name, peer, (must, goal) in (("transformers", theirs, least_of_transformers(vocabulary, precision)),
                                     (tuned_name(), tuned, least_of_tuned(vocabulary, precision))):
        measure.print_row(work, "tokens/s", speeds, name, [speed for speed, _ in peer], True, must, goal)
    own_libraries, their_libraries = bench.libraries
    measure.print_row(work, "MB without libraries", [memory - own_libraries for _, memory in ours], "transformers",
                      [memory - their_libraries for _, memory in theirs], False, 2, 1 / 0.35)
    steps, floors, floors_with_attention = zip(*bench.alternate(functools.partial(bench.products, precision))[0])
    must, goal = most_products(vocabulary, precision)
    measure.print_row(work, "s per step", steps, "the matmuls of its layers alone", floors, False)
    measure.print_row(work, "s per step", steps, "these and attention's", floors_with_attention, False, 1 / must, 1 / goal)


def write_llm_c_checkpoint(file, vocabulary):
    """Random weights in llm.c's format: 256 integers, then its tensors in fp32."""
    width, layers, length = SIZES["n_embd"], SIZES["n_layer"], SIZES["n_positions"]
    padded = (vocabulary + 127) // 128 * 128
    sizes = [padded * width, length * width, *(layers * width * rows for rows in (1, 1, 3 * width, 3, width, 1, 1, 1, 4 * width, 4, 4 * width, 1)),
             width, width]
    are_norms = {2, 8, 14}
    generator = random.Random(1)
    normal = array.array("f", (generator.gauss(0, 0.02) for _ in range(1 << 16)))
    with open(file, "wb") as out:
        header = [20240326, 3, length, vocabulary, layers, SIZES["n_head"], width, padded]
        array.array("i", header + [0] * (256 - len(header))).tofile(out)
        for i, size in enumerate(sizes):
            values = array.array("f", [1.0]) * size if i in are_norms else (normal * (size // len(normal) + 1))[:size]
            values.tofile(out)


def compare_with_llm_c(bench, vocabulary):
    work = f"GPT-2 L6 H384, vocabulary {vocabulary}, fp32"
    source = pathlib.Path(os.environ.get("STRETTO_DATA", "/nonexistent")) / "peers/llm.c"
    if not (source / "train_gpt2.c").exists():
        measure.print_skipped(f"{work}, llm.c", "STRETTO_DATA has no peers/llm.c")
        return
    bench.use(vocabulary)
    program, checkpoint = bench.folder / "llm_c", bench.folder / "llm_c.bin"
    subprocess.run(["gcc", "-Ofast", "-march=native", "-w", "-I", source, FOLDER / "llm_c.c", "-o", program, "-lm"], check=True)
    write_llm_c_checkpoint(checkpoint, vocabulary)

    def peer():
        seconds = json.loads(measure.run([program, checkpoint, 8, 3], measure.one_core()).out.splitlines()[-1])
        return TOKENS / statistics.median(seconds[1:])

    ours, theirs = bench.alternate(lambda: bench.own("fp32")[0], peer)
    measure.print_row(work, "tokens/s", ours, "llm.c", theirs, True, 4, 5)


def compare_ranks(bench, vocabulary, precision):
    bench.use(vocabulary)
    one, two_at_once, ddp, fsdp, peer = bench.alternate(
        lambda: bench.own(precision)[0], lambda: bench.two_at_once(precision), lambda: bench.own(precision, ranks=2)[0],
        lambda: bench.own(precision, "training.strategy=fsdp", ranks=2)[0], lambda: bench.loop("fsdp", precision, ranks=2)[0])
    for name, speeds, must, goal in (("ddp", ddp, 0.93, 0.96), ("fsdp", fsdp, 0.9, None)):
        measure.print_row(f"2 ranks {name}, vocabulary {vocabulary}, {precision}", "tokens/s per rank", [speed / 2 for speed in speeds], "1 rank",
                          one, True, must, goal)
        measure.print_row(f"2 ranks {name}, vocabulary {vocabulary}, {precision}", "tokens/s", speeds, "2 runs at once", two_at_once, True)
    measure.print_row(f"2 ranks fsdp, vocabulary {vocabulary}, {precision}", "tokens/s", fsdp, "torch's fully_shard", peer, True, 1.4, 1.7)


def compare_muon(bench, vocabulary, precision):
    bench.use(vocabulary)
    ours, adamw, theirs = bench.alternate(lambda: bench.own(precision, *MUON)[0], lambda: bench.own(precision)[0],
                                          lambda: bench.loop("muon", precision)[0])
    work = f"Muon, vocabulary {vocabulary}, {precision}"
    measure.print_row(work, "tokens/s", ours, "torch's Muon, tuned loop", theirs, True)
    measure.print_row(work, "tokens/s", ours, "AdamW", adamw, True)


def main():
    parser = measure.arguments(__doc__)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--only", choices=["steps", "llm_c", "ranks", "muon"], help="one part")
    options = parser.parse_args()
    measure.require_tools("taskset")
    with tempfile.TemporaryDirectory(prefix="language-models-bench-") as name:
        bench = Bench(options, pathlib.Path(name))
        write_inputs(bench.folder)
        precisions = measure.precisions("GPT-2 L6 H384")
        for vocabulary in VOCABULARIES:
            for precision in precisions:
                if options.only in (None, "steps"):
                    compare_steps(bench, vocabulary, precision)
                if options.only in (None, "ranks"):
                    compare_ranks(bench, vocabulary, precision)
            if options.only in (None, "llm_c"):
                compare_with_llm_c(bench, vocabulary)
        for precision in precisions:
            if options.only in (None, "muon"):
                compare_muon(bench, 800, precision)


if __name__ == "__main__":
    main()
