#!/usr/bin/env python3
"""On one NVIDIA GPU: training a GPT-2 of 6 layers, width 384 and blocks of 256 tokens, and generation with the shape of GPT-2
small; stretto versus a plain PyTorch loop and transformers' Trainer and generate.

    python3 bench/gpu/run.py --stretto build/release/bin/stretto [--text FILE] [--seconds N] [--only train]

python3 needs torch with CUDA, transformers and accelerate. A row: tokens/s, or ms per step of generation; the most memory that
torch reserved, in MiB; ratios above 1 mean that stretto is better. The programs run one after the other, each on all of the GPU.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

FOLDER = pathlib.Path(__file__).resolve().parent
SIZES = {"model_type": "gpt2", "n_layer": 6, "n_head": 6, "n_embd": 384, "n_positions": 256, "vocab_size": 50257}
RECIPE = """
task: causal-lm
model: {config: config.json}
tokenizer: {path: tokenizer}
data: {train: text.txt, cache: cache}
causal_lm: {blocks: stream}
training: {device: cuda, max_grad_norm: 1.0, max_steps: 90}
optimizer: {lr: 1.0e-3}
track: {progress: "off", log_every: 10, throughput_steps: 10}
"""
# Precision, sequences per step, dropout, and whether transformers' Trainer is measured, too.
TRAINING = [("bf16", 8, 0.0, True), ("bf16", 64, 0.0, True), ("bf16", 64, 0.1, False), ("fp32", 32, 0.0, False)]
GENERATION = [("bf16", 1), ("bf16", 8)]


class Stretto:
    def __init__(self, program, folder, deadline):
        self.program, self.folder, self.deadline = program, folder, deadline
        libraries = os.environ.get("STRETTO_LIBRARIES")
        self.environment = {**os.environ, **({"LD_LIBRARY_PATH": libraries} if libraries else {})}

    def run(self, *arguments):
        """Seconds, and the error message if it fails."""
        start = time.monotonic()
        try:
            done = subprocess.run([self.program, *map(str, arguments)], cwd=self.folder, env=self.environment, capture_output=True, encoding="utf-8",
                                  timeout=min(45, max(1, self.deadline - time.monotonic())))
        except subprocess.TimeoutExpired:
            return 0, "no end in time"
        return time.monotonic() - start, done.stderr[-1500:] if done.returncode else ""

    def train(self, precision, batch, dropout):
        """Tokens/s and MiB, or None."""
        (self.folder / "config.json").write_text(json.dumps({**SIZES, "resid_pdrop": dropout, "embd_pdrop": dropout, "attn_pdrop": dropout}))
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        _, error = self.run("train", "lm.yaml", "-N", 1, "--no-pin", "output=run", f"training.precision={precision}", f"training.batch_size={batch}")
        if error:
            print(f"stretto train {precision} {batch}: {error}", flush=True)
            return None
        records = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        rates = [record["tokens_per_second"] for record in records if "tokens_per_second" in record]
        found = statistics.median(rates[2:]), max(record.get("gpu_memory_mib", 0) for record in records)
        print(f"stretto train {precision} {batch} {dropout}: {found[0]:.0f} tokens/s", flush=True)
        return found

    def generate(self, precision, batch):
        """Seconds per step, or None."""
        (self.folder / "prompts.txt").write_text(("a" * 64 + "\n") * batch)
        times = {}
        for tokens in (4, 260, 4, 260):
            seconds, error = self.run("generate", "--model", "small", "--input", "prompts.txt", "--batch-size", batch, "--precision", precision,
                                      "--max-new-tokens", tokens, "--min-new-tokens", tokens, "--json", "--device", "cuda")
            if error:
                print(f"stretto generate {precision} {batch}: {error}", flush=True)
                return None
            times[tokens] = min(seconds, times.get(tokens, seconds))
        return (times[260] - times[4]) / 256


def peers(folder, cases, seconds):
    """The results of peers.py by case."""
    command = [sys.executable, FOLDER / "peers.py", folder / "config.json", folder / "small", *cases]
    results = {}
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", env={**os.environ, "HF_HUB_OFFLINE": "1"}, timeout=seconds)
        out, error = done.stdout, done.stderr
    except subprocess.TimeoutExpired as expired:
        out, error = (expired.stdout or b"").decode(), "no end in time"
    for line in out.splitlines():
        if line.startswith('{"case"'):  # Trainer prints, too
            result = json.loads(line)
            results[result["case"]] = result
            if "error" in result:
                print(f"{result['case']}: {result['error']}", flush=True)
    missing = [case for case in cases if case not in results]
    if missing:
        print(f"peers without a result: {missing}\n{error[-1500:]}", flush=True)
    return results


def row(name, unit, ours, memory, others, better):
    """`others`: results of peers by name."""
    text = f"{name:<34} {unit:<9} stretto {ours:10.4g} ({memory:6.0f} MiB)" if ours else f"{name:<34} {unit:<9} stretto failed"
    for peer, result in others.items():
        if result is None or "value" not in result:
            text += f"   {peer} failed"
            continue
        value = result["value"] * (1e3 if unit == "ms" else 1)
        ratio = (ours / value if better == "more" else value / ours) if ours else float("nan")
        text += f"   {peer} {value:10.4g} ({result['mib']:6.0f} MiB) ratio {ratio:.2f}"
    print(text, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stretto", default=measure.ROOT / "build/release/bin/stretto", type=pathlib.Path)
    parser.add_argument("--text", type=pathlib.Path, default=measure.ROOT / "docs/guide/recipes.md", help="what stretto is trained on")
    parser.add_argument("--seconds", type=float, default=600, help="for all measurements")
    parser.add_argument("--only", choices=["train", "generate"])
    options = parser.parse_args()
    deadline = time.monotonic() + options.seconds
    trains, generates = options.only != "generate", options.only != "train"
    with tempfile.TemporaryDirectory(prefix="gpu-bench-") as name:
        folder = pathlib.Path(name)
        shutil.copytree(measure.ROOT / "tests/golden/tokenizer/roberta", folder / "tokenizer")
        text = options.text.read_text(encoding="utf-8")
        (folder / "text.txt").write_text(text * max(1, 8_000_000 // max(1, len(text))), encoding="utf-8")
        (folder / "lm.yaml").write_text(RECIPE)
        (folder / "config.json").write_text(json.dumps(SIZES))
        if generates:
            measure.load_script("generate").write_model(sys.executable, folder / "small")
        stretto = Stretto(options.stretto.resolve(), folder, deadline)
        own = {case: stretto.train(*case[:3]) for case in TRAINING} if trains else {}
        own_steps = {case: stretto.generate(*case) for case in GENERATION} if generates else {}
        cases = [f"{how}:{p}:{batch}:{dropout}" for p, batch, dropout, both in TRAINING if trains for how in (["loop", "trainer"] if both else ["loop"])]
        cases += [f"generate:{precision}:{batch}" for precision, batch in GENERATION if generates]
        results = peers(folder, cases, max(10, deadline - time.monotonic()))
    for (precision, batch, dropout, both), found in own.items():
        others = {"loop": results.get(f"loop:{precision}:{batch}:{dropout}")}
        if both:
            others["Trainer"] = results.get(f"trainer:{precision}:{batch}:{dropout}")
        name = f"train, {precision}, batch {batch}, dropout {dropout}"
        row(name, "tokens/s", found[0] if found else None, found[1] if found else 0, others, "more")
    for (precision, batch), seconds in own_steps.items():
        row(f"generate, {precision}, batch {batch}", "ms", 1e3 * seconds if seconds else None, 0,
            {"transformers": results.get(f"generate:{precision}:{batch}")}, "less")


if __name__ == "__main__":
    main()
