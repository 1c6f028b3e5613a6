#!/usr/bin/env python3
"""Validation loss after equal tokens, over seeds: a GPT-2 and a Llama of 6 layers, width 384, blocks of 256 tokens and a vocabulary
of 800, from random weights on tinyshakespeare, by stretto and by a plain PyTorch loop over transformers' model.

Both train on the first nine tenths of the text, with AdamW (lr 1e-3, betas 0.9 and 0.95, weight decay 0.1 on matrices), a warm-up
of a tenth of the steps, then a cosine, gradients clipped to norm 1, no dropout; and evaluate on the rest at the end.

With --start same, the default, both begin with the same initial weights, drawn by transformers, and read the same blocks in the same
order: the seed draws the weights and the order of the text's paragraphs. What differs then is how the programs compute. With
--start own, each draws its own initial weights and its own order of the blocks, so that losses also differ by chance.
"""

import argparse
import json
import math
import pathlib
import random
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

LENGTH, VOCABULARY, BATCH = 256, 800, 8
MODELS = {
    "gpt2": {"model_type": "gpt2", "n_layer": 6, "n_head": 6, "n_embd": 384, "n_positions": LENGTH, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
             "attn_pdrop": 0.0},
    "llama": {"model_type": "llama", "num_hidden_layers": 6, "num_attention_heads": 6, "hidden_size": 384, "intermediate_size": 1024,
              "max_position_embeddings": LENGTH, "tie_word_embeddings": True},
}
RECIPE = """
task: causal-lm
causal_lm: {blocks: stream}
training: {global_batch_size: 8, max_grad_norm: 1.0, device: cpu, epochs: 100}
optimizer: {type: AdamW, lr: 1.0e-3, weight_decay: 0.1, betas: [0.9, 0.95]}
scheduler: {type: CosineWithWarmup, warmup_ratio: 0.1}
checkpoint: {keep_last: 0}
track: {progress: "off"}
"""

TOKENIZER = """
import sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
tokenizer.train([sys.argv[1]], trainers.BpeTrainer(vocab_size=int(sys.argv[2]), special_tokens=["<|endoftext|>"], show_progress=False,
                                                   initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
tokenizer.save(sys.argv[3] + "/tokenizer.json")
"""

PEER = """
import json, math, sys, torch, transformers
from tokenizers import Tokenizer
folder, config, text, start, precision, seed, steps, length, batch_size = *sys.argv[1:6], *map(int, sys.argv[6:10])
torch.set_num_threads(1)
torch.manual_seed(seed)
tokenizer = Tokenizer.from_file(folder + "/tokenizer/tokenizer.json")
def blocks(name):
    ids = torch.tensor(tokenizer.encode(open(name, encoding="utf-8").read()).ids + [0])
    return ids.split(length)
model = (transformers.AutoModelForCausalLM.from_pretrained(start, dtype=torch.float32) if start else
         transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(**json.load(open(config)))))
groups = [{"params": [p for p in model.parameters() if (p.dim() > 1) == decayed], "weight_decay": 0.1 * decayed} for decayed in (True, False)]
optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), fused=True)
schedule = transformers.get_cosine_schedule_with_warmup(optimizer, steps // 10, steps)
def loss_of(ids):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
        return model(input_ids=ids, labels=ids).loss
train, order = [block for block in blocks(text) if len(block) == length], []
for _ in range(steps):
    if len(order) < batch_size:
        order = list(range(len(train)))[::-1] if start else torch.randperm(len(train)).tolist()
    loss_of(torch.stack([train[order.pop()] for _ in range(batch_size)])).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
model.eval()
total = count = 0
with torch.no_grad():
    for block in blocks(folder + "/validation.txt"):
        if len(block) > 1:
            total, count = total + loss_of(block[None]).item() * (len(block) - 1), count + len(block) - 1
print(json.dumps({"loss": total / count, "tokens": count}))
"""


START = """
import json, sys, torch, transformers
torch.manual_seed(int(sys.argv[3]))
config = transformers.AutoConfig.for_model(**json.load(open(sys.argv[1])))
transformers.AutoModelForCausalLM.from_config(config).save_pretrained(sys.argv[2])
"""


def prepare(options):
    folder = options.output
    (folder / "tokenizer").mkdir(parents=True, exist_ok=True)
    text = options.data.read_text(encoding="utf-8")
    cut = text.index("\n", len(text) * 9 // 10) + 1
    (folder / "train.txt").write_text(text[:cut], encoding="utf-8")
    (folder / "validation.txt").write_text(text[cut:], encoding="utf-8")
    subprocess.run([options.python, "-c", TOKENIZER, folder / "train.txt", str(VOCABULARY), folder / "tokenizer"], check=True)
    (folder / "tokenizer/tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "GPT2Tokenizer", "eos_token": "<|endoftext|>"}))
    for name, config in MODELS.items():
        (folder / f"{name}.json").write_text(json.dumps({**config, "vocab_size": VOCABULARY, "bos_token_id": 0, "eos_token_id": 0}))
    (folder / "recipe.yaml").write_text(RECIPE)


def prepare_start(options, model, seed):
    """Initial weights and an order of the paragraphs of the text for both programs."""
    folder, start = options.output, options.output / f"{model}-{seed}-start"
    subprocess.run([options.python, "-c", START, folder / f"{model}.json", start, str(seed)], check=True)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(folder / "tokenizer" / file, start)
    paragraphs = (folder / "train.txt").read_text(encoding="utf-8").split("\n\n")
    random.Random(seed).shuffle(paragraphs)
    text = folder / f"train-{seed}.txt"
    text.write_text("\n\n".join(paragraphs), encoding="utf-8")
    return start, text


def stretto_loss(options, model, seed, start, text):
    folder = options.output
    run = folder / f"{model}-{seed}"
    of_model = ([f"model.path={start}", "training.shuffle=false"] if start else
                [f"model.config={folder / f'{model}.json'}", f"tokenizer.path={folder / 'tokenizer'}"])
    measure.run([options.stretto, "train", folder / "recipe.yaml", "-N", options.ranks, *(["--no-pin"] if options.ranks == 1 else []),
                 *of_model, f"data.train={text}",
                 f"data.validation={folder / 'validation.txt'}", f"training.max_steps={options.steps}", f"training.seed={seed}",
                 f"training.precision={options.precision}", f"evaluate.every={options.steps}", f"output={run}", "resume=false"],
                measure.one_core() if options.ranks == 1 else None)
    return json.loads((run / "dev_results.json").read_text())["loss"]


def peer_loss(options, model, seed, start, text, length=LENGTH):
    folder = options.output
    out = measure.run([options.python, "-c", PEER, folder, folder / f"{model}.json", text, start or "", options.precision, seed, options.steps,
                       length, BATCH],
                      measure.one_core(), {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}).out
    return json.loads(out.splitlines()[-1])["loss"]


def main():
    parser = measure.arguments(__doc__)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="tinyshakespeare's input.txt")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="a folder for the runs")
    parser.add_argument("--start", choices=["same", "own"], default="same", help="initial weights and blocks of both programs")
    parser.add_argument("--steps", type=int, default=100, help=f"of {BATCH} blocks of {LENGTH} tokens")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    options = parser.parse_args()
    prepare(options)
    for model in options.models:
        ours, theirs = [], []
        for seed in options.seeds:
            start, text = prepare_start(options, model, seed) if options.start == "same" else (None, options.output / "train.txt")
            ours.append(stretto_loss(options, model, seed, start, text))
            theirs.append(peer_loss(options, model, seed, start, text))
            print(f"{model}, seed {seed}: stretto {ours[-1]:.4f}, plain PyTorch loop {theirs[-1]:.4f}", flush=True)
        own, other = statistics.mean(ours), statistics.mean(theirs)
        verdict = "met" if own <= other + 0.01 else "MISSED"
        print(f"{model}, mean: stretto {own:.4f}, plain PyTorch loop {other:.4f}; must be at most 0.01 above it: {verdict} "
              f"(a uniform guess: {math.log(VOCABULARY):.4f})", flush=True)


if __name__ == "__main__":
    main()
