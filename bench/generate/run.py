#!/usr/bin/env python3
"""Milliseconds per step of generation with the shape of GPT-2 small, random weights and prompts of 64 tokens, on one core: stretto
versus transformers' generate, CTranslate2 (fp32, if it is installed), and the time to read the weights from memory once. A step
adds a token to each text. The time of a step is the difference between whole runs with 68 and with 4 new tokens.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

PROMPT, SHORT, LONG = 64, 4, 68

MODEL = """
import sys, torch, transformers
torch.manual_seed(0)
config = transformers.GPT2Config()
transformers.GPT2LMHeadModel(config).save_pretrained(sys.argv[1])
"""

# Both print seconds per step.
TRANSFORMERS = f"""
import json, sys, time, torch, transformers
torch.set_num_threads(1)
batch, beams, precision = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
model = transformers.GPT2LMHeadModel.from_pretrained(sys.argv[1], dtype=torch.bfloat16 if precision == "bf16" else torch.float32).eval()
ids = torch.randint(0, 256, (batch, {PROMPT}))
def seconds(tokens):
    start = time.monotonic()
    model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False,
                   num_beams=beams, pad_token_id=50256)
    return time.monotonic() - start
seconds({SHORT})
print(json.dumps({{"step": (seconds({LONG}) - seconds({SHORT})) / {LONG - SHORT}}}))
"""
CTRANSLATE2 = f"""
import json, os, sys, time, ctranslate2
folder, batch, beams = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
converted = os.path.join(folder, "ctranslate2")
if not os.path.exists(converted):
    ctranslate2.converters.TransformersConverter(folder).convert(converted, quantization="float32")
generator = ctranslate2.Generator(converted, compute_type="float32", intra_threads=1, inter_threads=1)
prompts = [["a"] * {PROMPT}] * batch
def seconds(tokens):
    start = time.monotonic()
    generator.generate_batch(prompts, min_length=tokens, max_length=tokens, include_prompt_in_result=False, beam_size=beams, end_token=[])
    return time.monotonic() - start
seconds({SHORT})
print(json.dumps({{"step": (seconds({LONG}) - seconds({SHORT})) / {LONG - SHORT}}}))
"""
READ = """
import json, time, torch
torch.set_num_threads(1)
values = torch.ones(128 << 20)
best = 1e9
for _ in range(5):
    start = time.monotonic()
    values.sum()
    best = min(best, time.monotonic() - start)
print(json.dumps({"bytes_per_second": values.numel() * 4 / best}))
"""

# Prompts, beams and precision -> the least ratio to transformers, and the goal.
CASES = {(1, 1, "fp32"): (None, None), (1, 1, "bf16"): (2, 2.5), (8, 1, "fp32"): (None, None), (8, 1, "bf16"): (1.8, 2.8),
         (1, 4, "fp32"): (None, None), (1, 4, "bf16"): (1.8, 2.8)}
WEIGHTS = 124_439_808  # all but the table of positions' unused rows: the table of words is also the head


def byte_letters():
    """The letters that stand for bytes in vocabularies of byte-level BPE."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) for byte in printable] + [chr(256 + i) for i in range(len(others))]


def write_model(python, folder):
    """GPT-2 small with random weights, and a tokenizer whose tokens are bytes and words that no text has."""
    subprocess.run([python, "-c", MODEL, folder], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    tokens = byte_letters()
    tokens += [f"<unused{i}>" for i in range(50256 - len(tokens))] + ["<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "GPT2Tokenizer", "eos_token": "<|endoftext|>",
                                                              "unk_token": "<|endoftext|>", "bos_token": "<|endoftext|>"}))


def seconds_per_step(stretto, folder, batch, beams, precision):
    prompts = folder / "prompts.txt"
    prompts.write_text(("a" * PROMPT + "\n") * batch)

    def seconds(tokens):
        return measure.run([stretto, "generate", "--model", folder, "--input", prompts, "--batch-size", batch, "--precision", precision,
                            "--num-beams", beams, "--max-new-tokens", tokens, "--min-new-tokens", tokens, "--json"], measure.one_core(),
                           {"OMP_NUM_THREADS": "1"}).seconds
    return (min(seconds(LONG) for _ in range(2)) - min(seconds(SHORT) for _ in range(2))) / (LONG - SHORT)


def step_of(python, script, *arguments):
    outcome = measure.run([python, "-c", script, *arguments], measure.one_core(), {"OMP_NUM_THREADS": "1"})
    return json.loads(outcome.out.splitlines()[-1])


def main():
    options = measure.arguments(__doc__).parse_args()
    measure.require_tools("taskset")
    has_ctranslate2 = subprocess.run([options.python, "-c", "import ctranslate2"], stderr=subprocess.DEVNULL).returncode == 0
    precisions = measure.precisions("generate, GPT-2 small")
    with tempfile.TemporaryDirectory(prefix="generate-bench-") as name:
        folder = pathlib.Path(name)
        write_model(options.python, folder)
        for (batch, beams, precision), (must, goal) in CASES.items():
            if precision not in precisions:
                continue
            ours, theirs, others, reads = [], [], [], []
            for _ in range(options.rounds):
                ours.append(1e3 * seconds_per_step(options.stretto, folder, batch, beams, precision))
                theirs.append(1e3 * step_of(options.python, TRANSFORMERS, folder, batch, beams, precision)["step"])
                if has_ctranslate2 and precision == "fp32":
                    others.append(1e3 * step_of(options.python, CTRANSLATE2, folder, batch, beams)["step"])
                bandwidth = step_of(options.python, READ)["bytes_per_second"]
                reads.append(1e3 * WEIGHTS * (2 if precision == "bf16" else 4) / bandwidth)
            work = f"generate, GPT-2 small, {f'beams {beams}' if beams > 1 else f'batch {batch}'}, {precision}"
            measure.print_row(work, "ms", ours, "transformers", theirs, False, must, goal)
            if others:
                measure.print_row(work, "ms", ours, "CTranslate2", others, False, *((1, 1.1) if batch * beams == 1 else (1.5, 2.2)))
            if batch * beams == 1:
                least = (1 / 1.2, 1 / 1.1) if precision == "fp32" else (1 / 1.4, 1 / 1.2)
                measure.print_row(work, "ms", ours, "reading the weights", reads, False, *least)


if __name__ == "__main__":
    main()
