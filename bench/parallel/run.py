#!/usr/bin/env python3
"""Tensor parallelism on two ranks of this host: a Llama of 12 layers, width 768, MLP of 2,048 and a vocabulary of 8,192 with 8 blocks
of 256 tokens per step, and BERT-base's shape with 32 samples per step: versus data parallelism at the same global batch, the
matrix products of a rank alone, and torch's tensor parallelism (DTensor over Gloo). The Llama also by zero1 and fsdp, versus
transformers with Accelerate's FSDP2; and on four ranks by tp 2 with zero1, versus zero1 alone."""

import json
import pathlib
import re
import shutil
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

LOOP = pathlib.Path(__file__).with_name("torch_loop.py")
ACCELERATE_LOOP = pathlib.Path(__file__).with_name("accelerate_loop.py")
BLOCKS, LENGTH = 8, 256
LLAMA = {"model_type": "llama", "hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 12,
         "num_key_value_heads": 12, "head_dim": 64, "vocab_size": 8192, "max_position_embeddings": LENGTH, "tie_word_embeddings": False,
         "bos_token_id": 0, "eos_token_id": 2}
HALF = {**LLAMA, "intermediate_size": 1024, "num_attention_heads": 6, "num_key_value_heads": 6, "vocab_size": 4096}  # the products of a rank
ROWS = ["training.mesh.tp=2", "training.mesh.sequence_parallel=true", f"training.batch_size={BLOCKS}"]
TP, DP = ["training.mesh.tp=2", f"training.batch_size={BLOCKS}"], [f"training.batch_size={BLOCKS // 2}"]


def most_products(precision):
    """How many times its products a step may take, and what it should take."""
    if precision == "fp32":
        return 1.25, 1.1
    return (2.4, 1.8) if measure.has_amx() else (1.7, 1.4)


class Llama:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        language_models = measure.load_script("language_models")
        language_models.write_inputs(folder)
        for name, config in (("config", LLAMA), ("half", HALF)):
            (folder / f"{name}.json").write_text(json.dumps(config))

    def command(self, verb, precision, ranks, *settings):
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        return [self.options.stretto, verb, self.folder / "lm.yaml", "-N", ranks, f"output={self.folder / 'run'}",
                f"training.precision={precision}", *settings]

    def seconds(self, precision, settings, ranks=2):
        """Per step, the median over steps but the first."""
        measure.run(self.command("train", precision, ranks, f"training.max_steps={self.options.steps}", *settings))
        records = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        speeds = [record["tokens_per_second"] for record in records if "tokens_per_second" in record]
        return BLOCKS * LENGTH / statistics.median(speeds)

    def memory(self, precision, settings, ranks=2):
        """MB of the larger rank, in a run of its own: looking at it slows the steps."""
        return measure.run(self.command("train", precision, ranks, "training.max_steps=3", *settings), watch="stretto-rank").pss_mb

    def products(self, precision):
        """Seconds of the matrix products of a rank's step, each by the fastest library."""
        command = self.command("profile", precision, 1, f"training.batch_size={BLOCKS}", f"model.config={self.folder / 'half.json'}")
        report = measure.run([*command, "--no-pin", "--steps", self.options.steps], measure.one_core()).err
        return float(re.search(r"floor ([0-9.]+) ms", report)[1]) / 1e3

    def loop(self, script, how, precision, steps, watch=""):
        command = [self.options.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, script, how, "--config",
                   self.folder / "config.json", "--precision", precision, "--steps", steps, "--batch-size", BLOCKS, "--length", LENGTH]
        environment = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **({"LD_PRELOAD": measure.tcmalloc()} if measure.tcmalloc() else {})}
        return measure.run(command, env=environment, watch=watch)

    def loop_seconds(self, script, how, precision):
        """Of a Python program, per step, the median over steps but the first."""
        outcome = self.loop(script, how, precision, self.options.steps)
        return statistics.median(json.loads(next(line for line in reversed(outcome.out.splitlines()) if line.startswith("[")))[1:])

    def loop_memory(self, script, how, precision):
        return self.loop(script, how, precision, 3, watch=script.name).pss_mb


def compare_llama(options, folder, precision, libraries):
    llama, work = Llama(options, folder), f"Llama L12 H768, tp 2, {precision}"
    turns = [(llama.seconds(precision, TP), llama.seconds(precision, DP), llama.products(precision), llama.loop_seconds(LOOP, "tp", precision),
              llama.loop_seconds(LOOP, "dp", precision)) for _ in range(options.rounds)]
    tp, dp, products, peer_tp, peer_dp = map(list, zip(*turns))
    measure.print_row(work, "s per step", tp, "dp 2", dp, False, 1 / 1.15, 1 / 1.05)
    most, goal = most_products(precision)
    measure.print_row(work, "s per step", tp, "its matrix products", products, False, 1 / most, 1 / goal)
    measure.print_row(work, "s per step", tp, "torch's DTensor over Gloo", peer_tp, False, *((1.45, 1.65) if precision == "fp32" else (2, 2.8)))
    measure.print_row(f"Llama L12 H768, dp 2, {precision}", "s per step", dp, "torch's DDP over Gloo", peer_dp, False)
    dp_memory = [llama.memory(precision, DP) - libraries]
    measure.print_row(work, "MB without libraries", [llama.memory(precision, TP) - libraries], "dp 2", dp_memory, False, 1 / 0.65, 1 / 0.55)
    rows = f"{work}, sequence parallel"
    measure.print_row(rows, "s per step", [llama.seconds(precision, ROWS) for _ in turns], "dp 2", dp, False, 1 / 1.15, 1 / 1.05)
    measure.print_row(rows, "MB without libraries", [llama.memory(precision, ROWS) - libraries], "dp 2", dp_memory, False, 1 / 0.65, 1 / 0.55)


def compare_sharded(options, folder, precision, libraries, their_libraries):
    """dp 2 by zero1 and by fsdp, versus Accelerate's FSDP2."""
    llama, strategies = Llama(options, folder), ("zero1", "fsdp")
    settings = {strategy: [*DP, f"training.strategy={strategy}"] for strategy in strategies}
    turns = [(*(llama.seconds(precision, settings[strategy]) for strategy in strategies), llama.loop_seconds(ACCELERATE_LOOP, "fsdp2", precision))
             for _ in range(options.rounds)]
    *own, peer = map(list, zip(*turns))
    name, tokens = "transformers, Accelerate's FSDP2", BLOCKS * LENGTH
    must, goal = (1.45, 1.7) if precision == "fp32" else (2, 2.8)
    memory = llama.loop_memory(ACCELERATE_LOOP, "fsdp2", precision) - their_libraries
    for strategy, seconds in zip(strategies, own):
        work = f"Llama L12 H768, dp 2 {strategy}, {precision}"
        measure.print_row(work, "tokens/s", [tokens / each for each in seconds], name, [tokens / each for each in peer], True, must, goal)
        bounds = (1 / 0.55, 1 / 0.4) if strategy == "fsdp" else (None, None)
        measure.print_row(work, "MB without libraries", [llama.memory(precision, settings[strategy]) - libraries], name, [memory], False,
                          *bounds)


def compare_both(options, folder, precision):
    """tp 2 with zero1 on four ranks, versus zero1 on all of them."""
    llama = Llama(options, folder)
    zero1 = "training.strategy=zero1"
    both, alone = [zero1, "training.mesh.tp=2", f"training.batch_size={BLOCKS // 2}"], [zero1, f"training.batch_size={BLOCKS // 4}"]
    turns = [(llama.seconds(precision, both, 4), llama.seconds(precision, alone, 4)) for _ in range(options.rounds)]
    own, other = ([BLOCKS * LENGTH / seconds for seconds in column] for column in zip(*turns))
    work = f"Llama L12 H768, tp 2 x zero1, 4 ranks, {precision}"
    measure.print_row(work, "tokens/s", own, "dp 4 zero1", other, True, 0.85, 0.95)
    measure.print_row(work, "MB", [llama.memory(precision, both, 4)], "dp 4 zero1", [llama.memory(precision, alone, 4)], False)


def compare_bert(options, folder, precision, train, libraries):
    case, work = train.Case("base", 2, precision, 16, [], shape="bert-base"), f"BERT-base, tp 2, {precision}"
    folder = folder / f"bert-{precision}"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(train.SHAPES["bert-base"]))
    speeds, memory = ([], []), ([], [])
    for _ in range(options.rounds):
        for i, settings in enumerate((["training.mesh.tp=2", "training.batch_size=32"], [])):
            outcome, records = train.run_stretto(case, options, folder, settings)
            speeds[i].append(records[-1]["samples_per_second"])
            memory[i].append(outcome.pss_mb - libraries)
    measure.print_row(work, "samples/s", speeds[0], "dp 2", speeds[1], True, 1 / 1.15, 1 / 1.05)
    measure.print_row(work, "MB without libraries", memory[0], "dp 2", memory[1], False, 1 / 0.65, 1 / 0.55)


def main():
    parser = measure.arguments(__doc__)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--only", choices=["llama", "sharded", "both", "bert"], help="one comparison")
    options = parser.parse_args()
    options.encoder = measure.encoder(options.encoder)
    measure.require_tools("taskset")
    train = measure.load_script("train")
    libraries, their_libraries = train.libraries_alone(options, 2)
    with tempfile.TemporaryDirectory(prefix="parallel-bench-") as name:
        folder = pathlib.Path(name)
        options.train = measure.training_file(folder, options.encoder)
        for precision in measure.precisions("tp 2"):
            for comparison, compare, more in (("llama", compare_llama, [libraries]), ("sharded", compare_sharded, [libraries, their_libraries]),
                                              ("both", compare_both, [])):
                if options.only in (None, comparison):
                    (folder / f"{comparison}-{precision}").mkdir()
                    compare(options, folder / f"{comparison}-{precision}", precision, *more)
            if options.only in (None, "bert"):
                compare_bert(options, folder, precision, train, libraries)


if __name__ == "__main__":
    main()
