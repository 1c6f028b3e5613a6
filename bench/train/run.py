#!/usr/bin/env python3
"""Speed and memory of fine-tuning: stretto versus transformers' Trainer, Accelerate and a tuned Python loop, alternately."""

import dataclasses
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

PEER = pathlib.Path(__file__).with_name("python_trainer.py")
# The config.json of models with random weights; ids are those of the encoder's tokenizer ([PAD] 0, [SEP]
# 102).
SHAPES = {
    "bert-base": {"model_type": "bert", "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12,
                  "num_attention_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 512},
    "bart-base": {"model_type": "bart", "vocab_size": 30522, "d_model": 768, "encoder_layers": 6, "decoder_layers": 6,
                  "encoder_attention_heads": 12, "decoder_attention_heads": 12, "encoder_ffn_dim": 3072,
                  "decoder_ffn_dim": 3072, "max_position_embeddings": 1024, "dropout": 0.1, "attention_dropout": 0.1,
                  "activation_dropout": 0.1, "pad_token_id": 0, "bos_token_id": 101, "eos_token_id": 102,
                  "decoder_start_token_id": 102, "forced_eos_token_id": 102},
}


@dataclasses.dataclass
class Peer:
    how: str
    must: float
    goal: float
    tcmalloc: bool = False


@dataclasses.dataclass
class Case:
    name: str
    ranks: int
    precision: str
    batch_size: int
    peers: list
    shape: str = ""  # of SHAPES; "": the encoder


CASES = [
    Case("minilm-1-fp32", 1, "fp32", 32, [Peer("hf", 2.5, 3.7), Peer("tuned", None, None, tcmalloc=True)]),
    Case("minilm-1-bf16", 1, "bf16", 32, [Peer("hf", 4, 5.5), Peer("tuned", 1.7, 2.5, tcmalloc=True)]),
    Case("minilm-2-fp32", 2, "fp32", 32, [Peer("accelerate", None, None), Peer("tuned", None, None, tcmalloc=True)]),
    Case("minilm-2-bf16", 2, "bf16", 32, [Peer("accelerate", 6, 9), Peer("tuned", 2.2, 3.7, tcmalloc=True)]),
    Case("base-1-bf16", 1, "bf16", 16, [Peer("hf", 3, 5)], shape="bert-base"),
    Case("base-1-fp32", 1, "fp32", 16, [Peer("hf", None, None)], shape="bert-base"),
    Case("bart-1-bf16", 1, "bf16", 16, [Peer("hf", 2.5, 4)], shape="bart-base"),
    Case("bart-1-fp32", 1, "fp32", 16, [Peer("hf", 2.5, 4)], shape="bart-base"),
]
# Only where --only names them: they take long and 8 GiB.
LARGE_CASES = [
    Case("bart-2-fp32", 2, "fp32", 16, [Peer("accelerate", 2.5, None)], shape="bart-base"),
    Case("bart-2-bf16", 2, "bf16", 16, [Peer("accelerate", 2.5, None)], shape="bart-base"),
]


def skipped(case, options):
    """Without bf16 instructions, peers compute bf16 at a tenth of their speed: a long run for no information."""
    if options.only:
        return case.name not in options.only
    if case.precision != "bf16" or measure.has_bf16():
        return False
    measure.print_skipped(case.name, f"this processor has no bf16 instructions (bench/train/run.py --only {case.name} runs it anyway)")
    return True


def stretto_command(verb, case, options, folder):
    settings = {
        "data.train": options.train, "data.text": "null", "data.max_length": 128, "data.cache": folder / "cache",
        "model.path": options.encoder, "tokenizer.path": options.encoder,
        "training.batch_size": case.batch_size, "training.precision": case.precision, "training.max_grad_norm": 1.0,
        "training.max_steps": options.steps // (2 if case.shape else 1), "optimizer.lr": 5e-5, "optimizer.weight_decay": 0.01,
        "evaluate.every": "never", "track.log_every": 10, "output": folder / "run", "resume": "false",
    }
    if case.shape:
        settings.update({"model.path": "null", "model.config": folder / "config.json"})
    recipe = folder / "recipe.yaml"
    recipe.write_text("task: text-classification\ncheckpoint: {monitor: null}\n")
    command = [options.stretto, verb, recipe, "-N", case.ranks]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    return command


def run_stretto(case, options, folder, extra=()):
    """Trains, and returns the outcome of the program and the records of its steps."""
    command = stretto_command("train", case, options, folder) + [f"--set={setting}" for setting in extra]
    outcome = measure.run(command, cores=measure.one_core() if case.ranks == 1 else None, watch="stretto-rank")
    records = [json.loads(line) for line in (folder / "run/metrics.jsonl").read_text().splitlines()]
    (folder / "run/metrics.jsonl").unlink()
    return outcome, records


def stretto_turn(case, options, folder):
    outcome, records = run_stretto(case, options, folder)
    speed = records[-1]["samples_per_second"]  # the mean of all steps but the first
    return speed, outcome.pss_mb, 100 * statistics.mean(record["communication"] for record in records)


def floor_turn(case, options, folder):
    """ms of a step, and of its matmuls alone by the fastest library: `stretto profile` measures both in one run."""
    command = stretto_command("profile", case, options, folder) + ["--steps", 10, "--warmup-steps", 10]
    report = measure.run(command, cores=measure.one_core(), watch="stretto-rank").err
    floor, multiple = map(float, re.search(r"floor ([0-9.]+) ms.* takes ([0-9.]+) times as long", report).groups())
    return floor * multiple, floor


def most_floors(case):
    """How many times its floor a step may take, and what it should take: faster matmuls are a smaller part of a step."""
    if case.precision == "fp32":
        return 1.3, 1.2
    return (2.0, 1.7) if measure.has_amx() else (1.6, 1.4)


def run_peer(case, peer, options, folder):
    """Trains, and returns the samples per second and the outcome of the program."""
    command = [options.python, PEER, peer.how, "--train", options.train, "--encoder", options.encoder, "--precision",
               case.precision, "--batch-size", case.batch_size, "--seconds", options.seconds]
    if case.shape:
        command += ["--config", folder / "config.json"]
    if case.ranks > 1:
        command[1:1] = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", case.ranks]
    env = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
    if peer.tcmalloc and measure.tcmalloc():
        env["LD_PRELOAD"] = measure.tcmalloc()
    outcome = measure.run(command, cores=measure.one_core() if case.ranks == 1 else None, env=env, watch=PEER.name)
    return json.loads(outcome.out.splitlines()[-1])["samples_per_second"], outcome


def peer_turn(case, peer, options, folder):
    speed, outcome = run_peer(case, peer, options, folder)
    return speed, outcome.pss_mb


def idle(python, imports, processes):
    """MB of one of `processes` processes that run these imports and wait: they share the pages of libraries as ranks do."""
    waiting = [subprocess.Popen([python, "-c", f"{imports}; import sys; print(flush=True); sys.stdin.read()"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(processes)]
    for process in waiting:
        process.stdout.readline()
    largest = max(measure.pss_of(process.pid) for process in waiting)
    for process in waiting:
        process.communicate()
    return largest


def libraries_alone(options, ranks):
    """MB of a rank that only loads the libraries: stretto's, and the peers', where torchrun is one more process."""
    rank_program = options.stretto.resolve().parent.parent / "libexec/stretto/stretto-rank"
    linked = subprocess.run(["ldd", rank_program], capture_output=True, text=True, check=True).stdout
    torch = next(line.split()[2] for line in linked.splitlines() if "libtorch_cpu.so" in line)
    own = idle(sys.executable, f"import ctypes; ctypes.CDLL({torch!r})", ranks) - idle(sys.executable, "import ctypes", ranks)
    return own, idle(options.python, "import torch, accelerate; from transformers import Trainer", ranks + (ranks > 1))


def measure_case(case, options):
    with tempfile.TemporaryDirectory(prefix="train-bench-") as temporary:
        folder = pathlib.Path(temporary)
        if case.shape:
            (folder / "config.json").write_text(json.dumps(SHAPES[case.shape]))
        ours, memory, communication = [], [], []
        theirs = {index: ([], []) for index in range(len(case.peers))}
        for turn in range(options.rounds):
            speed, pss, share = stretto_turn(case, options, folder)
            ours.append(speed)
            memory.append(pss)
            communication.append(share)
            for index, peer in enumerate(case.peers):
                speed, pss = peer_turn(case, peer, options, folder)
                theirs[index][0].append(speed)
                theirs[index][1].append(pss)
            print(f"{case.name}: turn {turn + 1} of {options.rounds} done", file=sys.stderr)
        if case.ranks == 1:
            steps, floors = zip(*[floor_turn(case, options, folder) for _ in range(options.rounds)])
            must, goal = most_floors(case)
            measure.print_row(case.name, "ms per step", steps, "its matmuls alone", floors, False, 1 / must, 1 / goal)
        else:
            measure.print_row(case.name, "% of a step waiting for communication", communication, "(required at most)",
                              [6.0], False, 1, 2)
        for index, peer in enumerate(case.peers):
            name = peer.how + (" + tcmalloc" if peer.tcmalloc and measure.tcmalloc() else "")
            measure.print_row(case.name, "samples/s", ours, name, theirs[index][0], True, peer.must, peer.goal)
            if index == 0:
                own_libraries, their_libraries = libraries_alone(options, case.ranks)
                measure.print_row(case.name, "MB per rank", [mb - own_libraries for mb in memory], name,
                                  [mb - their_libraries for mb in theirs[index][1]], False, 1 / 0.6, 1 / 0.4)


def main():
    parser = measure.arguments(__doc__)
    parser.add_argument("--only", nargs="*", default=[], help=f"some of {', '.join(case.name for case in CASES + LARGE_CASES)}; "
                        f"default: all but {', '.join(case.name for case in LARGE_CASES)}")
    parser.add_argument("--steps", type=int, default=40, help="steps of stretto per turn; the first is not measured")
    parser.add_argument("--seconds", type=float, default=15, help="seconds of a peer's steps per turn")
    options = parser.parse_args()
    options.encoder = measure.encoder(options.encoder)
    measure.require_tools("taskset")
    unknown = set(options.only) - {case.name for case in CASES + LARGE_CASES}
    if unknown:
        sys.exit(f"no such case: {', '.join(unknown)}")
    print("MB per rank: Pss minus that of as many processes that only load the libraries")
    with tempfile.TemporaryDirectory(prefix="train-data-") as data:
        options.train = measure.training_file(pathlib.Path(data), options.encoder)
        for case in CASES + [case for case in LARGE_CASES if case.name in options.only]:
            if not skipped(case, options):
                measure_case(case, options)


if __name__ == "__main__":
    main()
