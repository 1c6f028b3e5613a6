#!/usr/bin/env python3
"""Tokens per second of training a GPT-2 of 6 layers, width 384 and blocks of 256 tokens, 8 per step, on one core: stretto
versus transformers' model with SDPA and torch's fused AdamW. No dropout; the text is of the demo's reviews, the tokenizer a
small one: the time of a step depends on the size of the model's vocabulary only.
"""

import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

PEER = """
import json, sys, time, torch, transformers
torch.set_num_threads(1)
config = transformers.GPT2Config(**json.load(open(sys.argv[1])))
model = transformers.GPT2LMHeadModel(config).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
ids = torch.randint(0, 2000, (8, 256))
seconds = []
for _ in range(int(sys.argv[3])):
    start = time.monotonic()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=sys.argv[2] == "bf16"):
        loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    seconds.append(time.monotonic() - start)
print(json.dumps(seconds))
"""

RECIPE = """
task: causal-lm
model: {config: CONFIG}
tokenizer: {path: TOKENIZER}
data: {train: TEXT}
causal_lm: {blocks: stream}
training: {global_batch_size: 8, device: cpu}
optimizer: {lr: 1.0e-3}
track: {progress: "off", log_every: 1}
"""
SIZES = {"model_type": "gpt2", "n_layer": 6, "n_head": 6, "n_embd": 384, "n_positions": 256, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
         "attn_pdrop": 0.0}
# Vocabulary and precision -> the least ratio, and the goal.
CASES = {(50257, "fp32"): (1.5, 1.6), (50257, "bf16"): (2, 2.5), (2000, "fp32"): (None, None), (2000, "bf16"): (None, None)}


def write_inputs(folder):
    subprocess.run([sys.executable, "-B", measure.ROOT / "scripts/make_reviews.py", folder / "reviews", "--rows", "4000"], check=True,
                   stdout=subprocess.DEVNULL)
    rows = (folder / "reviews/train.tsv").read_text(encoding="utf-8").splitlines()[1:]
    (folder / "text.txt").write_text("".join(row.split("\t")[0] + "\n" for row in rows), encoding="utf-8")
    shutil.copytree(measure.ROOT / "tests/golden/tokenizer/roberta", folder / "tokenizer")
    recipe = RECIPE
    for word, name in (("CONFIG", "config.json"), ("TOKENIZER", "tokenizer"), ("TEXT", "text.txt")):
        recipe = recipe.replace(word, str(folder / name))
    (folder / "lm.yaml").write_text(recipe)


def tokens_per_second(stretto, folder, precision, steps):
    """The median over steps but the first."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    measure.run([stretto, "train", folder / "lm.yaml", "-N", 1, "--no-pin", f"output={folder / 'run'}", f"training.max_steps={steps}",
                 f"training.precision={precision}"], measure.one_core(), {"OMP_NUM_THREADS": "1"})
    records = [json.loads(line) for line in (folder / "run/metrics.jsonl").read_text().splitlines()]
    return statistics.median(record["tokens_per_second"] for record in records if "tokens_per_second" in record)


def main():
    parser = measure.arguments(__doc__)
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    measure.require_tools("taskset")
    with tempfile.TemporaryDirectory(prefix="language-models-bench-") as name:
        folder = pathlib.Path(name)
        write_inputs(folder)
        for (vocabulary, precision), (must, goal) in CASES.items():
            (folder / "config.json").write_text(json.dumps({**SIZES, "vocab_size": vocabulary}))
            ours, theirs = [], []
            for _ in range(options.rounds):
                ours.append(tokens_per_second(options.stretto, folder, precision, options.steps))
                peer = measure.run([options.python, "-c", PEER, folder / "config.json", precision, options.steps], measure.one_core())
                theirs.append(8 * 256 / statistics.median(json.loads(peer.out.splitlines()[-1])[1:]))
            measure.print_row(f"GPT-2 L6 H384, vocabulary {vocabulary}, {precision}", "tokens/s", ours, "transformers", theirs, True, must,
                              goal)


if __name__ == "__main__":
    main()
