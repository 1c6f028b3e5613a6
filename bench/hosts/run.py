#!/usr/bin/env python3
"""Two hosts against one: training, all-reduce and the time to the first step, with Gloo and torchrun as peers. The hosts are network
namespaces joined by Ethernet (scripts/testbed.sh), so that memory is not shared between them."""

import argparse
import json
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

start = measure.load_script("start")
train = measure.load_script("train")

TESTBED = measure.ROOT / "scripts/testbed.sh"
CASE = train.Case("minilm, 2 hosts x 1 rank, fp32", 1, "fp32", 32, [])


def quoted(command):
    return shlex.join(str(word) for word in command)


def cores_of(host, hosts):
    """A share of the cores, as an argument of taskset: the hosts are on one machine."""
    cores = sorted(os.sched_getaffinity(0))
    return ",".join(map(str, cores[host::hosts] or cores))


def on_hosts(commands, env=None):
    """Runs a command on each host, and returns what the first prints."""
    limited = [f"exec taskset -c {cores_of(host, len(commands))} {quoted(command)}" for host, command in enumerate(commands)]
    return measure.run([TESTBED, *limited], env={"STRETTO_SECRET": "0123456789abcdef" * 4, **(env or {})})


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def nodes(node):
    return ["--nodes", 2, "--node-rank", node, "--master-addr", "10.77.0.1"]


def torchrun(node, ranks, python):
    return [python, "-m", "torch.distributed.run", "--nnodes", 2, "--node-rank", node, "--nproc-per-node", ranks, "--master-addr",
            "10.77.0.1", "--master-port", 29555]


def last_speed(folder):
    return json.loads((folder / "run/metrics.jsonl").read_text().splitlines()[-1])["samples_per_second"]


def training(options):
    with tempfile.TemporaryDirectory(prefix="hosts-bench-") as temporary:
        folder = pathlib.Path(temporary)
        options.train = measure.training_file(folder, options.encoder)
        command = train.stretto_command("train", CASE, options, folder)
        one_host = list(command)
        one_host[one_host.index("-N") + 1] = 2
        peer = [train.PEER, "tuned", "--train", options.train, "--encoder", options.encoder, "--precision", "fp32", "--batch-size",
                CASE.batch_size, "--seconds", options.seconds]
        environment = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1",
                       "GLOO_SOCKET_IFNAME": "eth0"}
        if measure.tcmalloc():
            environment["LD_PRELOAD"] = measure.tcmalloc()
        ours, together, theirs = [], [], []
        for _ in range(options.rounds):
            on_hosts([command + nodes(node) for node in (0, 1)])
            ours.append(last_speed(folder))
            measure.run(one_host)
            together.append(last_speed(folder))
            out = on_hosts([torchrun(node, 1, options.python) + peer for node in (0, 1)], environment).out
            theirs.append(json_lines(out)[-1]["samples_per_second"])
        measure.print_row(CASE.name, "samples/s", ours, "1 host x 2 ranks", together, True, 0.85, 0.95)
        measure.print_row(CASE.name, "samples/s", ours, "DDP over Gloo, tuned", theirs, True, 1.3)


def reductions(options):
    def measured(*flags):
        return json_lines(on_hosts([[options.stretto, "launch", "-N", 2, *nodes(node), *flags, "--", options.program.resolve(),
                                     options.rounds] for node in (0, 1)]).out)

    records, encrypted = measured(), measured("--encrypt")
    for size, must, goal in ((1 << 20, None, None), (25 << 20, 1.6, 2), (100 << 20, 1.6, 2)):
        of_size = [record for record in records if record["bytes"] == size]
        measure.print_row(f"all-reduce {size >> 20} MiB, 2 hosts x 2 ranks", "ms", [record["in place"] for record in of_size],
                          "Gloo among all ranks", [record["gloo"] for record in of_size], False, must, goal)
        measure.print_row(f"all-reduce {size >> 20} MiB, 2 hosts x 2 ranks, encrypted", "ms",
                          [record["in place"] for record in encrypted if record["bytes"] == size], "without encryption",
                          [record["in place"] for record in of_size], False)


def first_step(options):
    with tempfile.TemporaryDirectory(prefix="hosts-bench-") as temporary:
        folder = pathlib.Path(temporary)
        recipe, data = start.write_job(folder)
        ours, theirs = [], []
        for turn in range(options.rounds):
            commands = [[options.stretto, "train", recipe, "-N", 2, "--set", f"output={folder}/run{turn}", *nodes(node)]
                        for node in (0, 1)]
            ours.append(seconds_to_step(commands, "step 1/1"))
            peers = [torchrun(node, 2, options.python) + [start.PEER, "ddp", folder, data] for node in (0, 1)]
            theirs.append(seconds_to_step(peers, "first step done", {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0"}))
        measure.print_row("rendezvous and first step, 2 hosts x 2 ranks", "s", ours, "torchrun + DDP", theirs, False)
        print(f"rendezvous and first step: median {statistics.median(ours):.2f} s; required at most 1.2 s, goal 0.8 s")


def seconds_to_step(commands, sign, env=None):
    """From when the hosts are up, which takes the testbed a moment: each prints a line first."""
    up = [f"date +up=%s.%N; exec {quoted(command)}" for command in commands]
    process = subprocess.Popen([str(TESTBED), *up], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env={**os.environ, "STRETTO_SECRET": "0123456789abcdef" * 4, **(env or {})})
    begun, seen, lines = None, None, []
    for line in process.stdout:
        lines.append(line)
        if match := re.match(r"up=([0-9.]+)", line):
            begun = max(begun or 0, float(match[1]))
        elif seen is None and sign in line:
            seen = time.time()
    if process.wait() != 0 or seen is None:
        sys.exit("".join(lines[-30:]))
    return seen - begun


MEASUREMENTS = {"first_step": first_step, "reductions": reductions, "training": training}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stretto", type=pathlib.Path, default=measure.ROOT / "build/release/bin/stretto")
    parser.add_argument("--program", type=pathlib.Path, default=measure.ROOT / "build/release/bench/collectives_bench")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch and transformers")
    parser.add_argument("--encoder", help="default: STRETTO_ENCODER, else the demo's")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40, help="steps of stretto per turn; the first is not measured")
    parser.add_argument("--seconds", type=float, default=15, help="seconds of a peer's steps per turn")
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS), help="default: all")
    options = parser.parse_args()
    if "training" in options.only:
        options.encoder = measure.encoder(options.encoder)
    measure.require_tools("taskset", "unshare")
    possible = subprocess.run([TESTBED], capture_output=True, text=True)
    if possible.returncode == 77:
        measure.print_skipped("2 hosts", possible.stderr.strip())
        return
    for name in options.only:
        MEASUREMENTS[name](options)


if __name__ == "__main__":
    main()
