"""Shared by the benchmarks: runs programs on selected cores, measures their memory, prints one table of ratios."""

import argparse
import dataclasses
import importlib.util
import itertools
import json
import os
import pathlib
import platform
import random
import shutil
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass
class Outcome:
    out: str
    seconds: float
    pss_mb: float  # the largest of any one watched process, at its peak
    err: str
    sum_pss_mb: float = 0  # of all watched processes, at its peak
    sum_unbacked_mb: float = 0  # the same of what no file backs: anonymous and shared memory


def children_of(pid):
    pids = [pid]
    for parent in pids:
        try:
            for task in pathlib.Path(f"/proc/{parent}/task").iterdir():
                pids += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            pass
    return pids


def pss_of(pid, parts=("Pss",)):
    """Proportional set size in MB, or parts of it: shared pages are divided by the number of processes that map them."""
    try:
        lines = [line.split() for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()]
    except OSError:
        return 0
    return sum(int(line[1]) for line in lines if line[0].rstrip(":") in parts) / 1024


def run(command, cores=None, env=None, watch="", stdin=None):
    """Runs `command` on `cores` and records the peak memory of its children whose command line contains `watch`. Ends the
    program with the command's message if it fails."""
    command = [str(word) for word in command]
    if cores:
        command = ["taskset", "-c", cores] + command
    peak = sum_peak = unbacked_peak = 0
    start = time.monotonic()
    process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, **(env or {})})
    done = threading.Event()

    def look():
        nonlocal peak, sum_peak, unbacked_peak
        pause = 0.1
        while not done.wait(pause):
            began = time.monotonic()
            together = unbacked = 0
            for pid in children_of(process.pid):
                try:
                    line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
                except OSError:
                    continue
                if watch in line:
                    pss = pss_of(pid)
                    peak = max(peak, pss)
                    together += pss
                    unbacked += pss_of(pid, ("Pss_Anon", "Pss_Shmem"))
            sum_peak = max(sum_peak, together)
            unbacked_peak = max(unbacked_peak, unbacked)
            # Looking walks through the memory, which slows programs that use all cores: it takes 2 % of a core at most.
            pause = 0.1 if cores else max(0.1, 50 * (time.monotonic() - began))

    watcher = threading.Thread(target=look)
    if watch:
        watcher.start()
    out, err = process.communicate()
    seconds = time.monotonic() - start
    done.set()
    if watch:
        watcher.join()
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}:\n{err[-3000:]}")
    return Outcome(out, seconds, peak, err, sum_peak, unbacked_peak)


def one_core():
    """The first core that this process may use, as an argument of taskset."""
    return str(min(os.sched_getaffinity(0)))


def tcmalloc():
    """An allocator library that doubles the speed of some Python programs (Debian: libtcmalloc-minimal4), or None."""
    for folder in [f"/usr/lib/{platform.machine()}-linux-gnu", "/usr/lib64", "/usr/lib"]:
        found = pathlib.Path(folder) / "libtcmalloc_minimal.so.4"
        if found.exists():
            return str(found)
    return None


def arguments(description, rounds=3):
    """The parser of a benchmark of whole programs."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--stretto", type=pathlib.Path, default=ROOT / "build/release/bin/stretto")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch, transformers and accelerate")
    parser.add_argument("--encoder", help="default: STRETTO_ENCODER, else the demo's")
    parser.add_argument("--rounds", type=int, default=rounds)
    return parser


def data_variable():
    return {"STRETTO_DATA": os.environ.get("STRETTO_DATA", "unset")}  # recipes name it


def seconds_until(command, sign, env=None):
    """The seconds until the program writes a line that contains `sign`; waits for its end."""
    start = time.monotonic()
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env={**os.environ, **(env or {})})
    seen, lines = None, []
    for line in process.stdout:
        lines.append(line)
        if seen is None and sign in line:
            seen = time.monotonic() - start
    if process.wait() != 0 or seen is None:
        sys.exit("".join(lines[-30:]))
    return seen


def train_command(stretto, recipe, settings):
    """Trains on one core, without evaluation."""
    command = [stretto, "train", recipe, "-N", 1]
    for name, value in {"evaluate.every": "never", "checkpoint.monitor": "null", "data.validation": "null", "data.test": "null",
                        "resume": "false", **settings}.items():
        command += ["--set", f"{name}={value}"]
    return command


def stretto_train(stretto, recipe, settings):
    """Trains on one core, and returns the outcome of the program and the records of its steps."""
    outcome = run(train_command(stretto, recipe, settings), cores=one_core(), env=data_variable())
    metrics = settings["output"] / "metrics.jsonl"
    records = [json.loads(line) for line in metrics.read_text().splitlines()]
    metrics.unlink()
    return outcome, records


def first_step(options, work, recipe, settings):
    """A row: seconds from the command to the end of the first step on one core, when samples are cached."""
    command = train_command(options.stretto, recipe, {**settings, "training.max_steps": 1, "track.log_every": 1})
    times = [seconds_until(["taskset", "-c", one_core(), *command], "step 1/1", data_variable()) for _ in range(options.rounds + 1)]
    print_row(f"{work}, start to first step", "s", times[1:], "(required at most)", [1.0], False, 1)


def stretto_predict(stretto, model, texts, *arguments):
    """Lines per second of a file of texts, from the command to its end."""
    with open(texts, encoding="utf-8") as file:
        outcome = run([stretto, "predict", "--model", model, *arguments], cores=one_core(), stdin=file)
    return outcome.out.count("\n") / outcome.seconds


def python_peer(python, script, *script_arguments):
    """Runs a Python program on one core with the fastest allocator there is, and returns the JSON object that it prints last."""
    env = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    if tcmalloc():
        env["LD_PRELOAD"] = tcmalloc()
    return json.loads(run([python, script, *script_arguments], cores=one_core(), env=env).out.splitlines()[-1])


def peer_name(*how):
    """Of a peer that python_peer ran, for the table."""
    return ", ".join(["transformers" + (" + tcmalloc" if tcmalloc() else ""), *how])


def has_bf16():
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    return "avx512_bf16" in flags or "amx_bf16" in flags or " bf16 " in flags


def has_amx():
    return "amx_bf16" in pathlib.Path("/proc/cpuinfo").read_text()


def fastest_precision():
    return "bf16" if has_bf16() else "fp32"


def precisions(work):
    """Those to measure on this machine, or in this run: without bf16 instructions, peers compute bf16 at a tenth of their speed, for
    no information."""
    if chosen := os.environ.get("STRETTO_BENCH_PRECISIONS"):
        return chosen.split()
    if has_bf16():
        return ["fp32", "bf16"]
    print_skipped(f"{work}, bf16", "this processor has no bf16 instructions")
    return ["fp32"]


def spread(values):
    return f"{statistics.median(values):.4g} ({min(values):.4g}-{max(values):.4g})"


def print_row(work, unit, ours, peer_name, theirs, higher_is_better, must=None, goal=None):
    """One line of the table: medians, spread, and the ratio in favour of stretto."""
    own, other = statistics.median(ours), statistics.median(theirs)
    above, below = (own, other) if higher_is_better else (other, own)
    ratio = above / below if below > 0 else float("inf")
    row = {"work": work, "unit": unit, "stretto": spread(ours), "peer": peer_name, "peer_value": spread(theirs),
           "ratio": round(ratio, 3), "must": must, "goal": goal}
    verdict = "" if must is None else f"  must {must:g}x: {'met' if ratio >= must else 'MISSED'}"
    print(f"{work:34} {unit:10} stretto {row['stretto']:24} {peer_name:28} {row['peer_value']:24} "
          f"ratio {ratio:6.2f}{verdict}" + (f"  goal {goal:g}x" if goal else ""), flush=True)
    record(row)


def print_skipped(work, why):
    """Instead of a row that cannot be measured on this machine."""
    print(f"{work:34} skipped: {why}", flush=True)
    record({"work": work, "skipped": why})


def record(row):
    """Saves a row for the table that run.py prints at the end."""
    results = os.environ.get("STRETTO_BENCH_RESULTS")
    if results:
        with open(results, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def encoder(options_encoder):
    for folder in [options_encoder, os.environ.get("STRETTO_ENCODER"), ROOT / ".deps/all-MiniLM-L6-v2",
                   pathlib.Path(os.environ.get("STRETTO_DEPS", ROOT / ".deps")) / "all-MiniLM-L6-v2"]:
        if folder and (pathlib.Path(folder) / "model.safetensors").exists():
            return pathlib.Path(folder).resolve()
    sys.exit("no encoder found: run `scripts/setup.sh demo`, or set STRETTO_ENCODER to a model folder")


# Words per line of SST-2's train.tsv, at 0, 5, .. 95 % of its lines. The spread of lengths determines the
# cost of padding.
SST2_WORDS = [1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 18, 21, 26]
SST2_LONGEST, SST2_VOCABULARY = 52, 14000


def made_entities(folder):
    """A folder of generated sentences with entities and of questions about them."""
    subprocess.run([sys.executable, ROOT / "scripts/make_entities.py", folder / "data", "--rows", "3000"], check=True,
                   stdout=subprocess.DEVNULL)
    return folder / "data"


def training_file(folder, encoder_folder=None):
    """SST-2's training file if STRETTO_DATA has it, else lines of the same lengths with words of the encoder's vocabulary,
    drawn by Zipf's law; text<TAB>label below a header."""
    data = os.environ.get("STRETTO_DATA")
    if data and (pathlib.Path(data) / "sst2/train.tsv").exists():
        return pathlib.Path(data) / "sst2/train.tsv"
    print("STRETTO_DATA is not set: using generated lines with the lengths of SST-2's", file=sys.stderr)
    vocabulary = (encoder(encoder_folder) / "vocab.txt").read_text(encoding="utf-8").split()
    words = [word for word in vocabulary if word.isascii() and word.isalpha() and len(word) > 1][:SST2_VOCABULARY]
    sums = list(itertools.accumulate(1 / rank for rank in range(1, len(words) + 1)))
    generator = random.Random(1)
    upper = SST2_WORDS[1:] + [SST2_LONGEST]
    lines = ["sentence\tlabel"]
    for _ in range(20000):
        part = generator.randrange(len(SST2_WORDS))
        count = generator.randint(SST2_WORDS[part], upper[part])
        lines.append(" ".join(generator.choices(words, cum_weights=sums, k=count)) + f"\t{generator.randrange(2)}")
    path = folder / "train.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def load_script(name):
    """A benchmark's run.py as a module, for benchmarks that vary it: load_script("train")."""
    spec = importlib.util.spec_from_file_location(f"{name}_run", ROOT / "bench" / name / "run.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"{name}_run"] = module
    spec.loader.exec_module(module)
    return module


def require_tools(*names):
    for name in names:
        if not shutil.which(name):
            sys.exit(f"{name} is missing")
