#!/usr/bin/env python3
"""Writes tests/golden/generation: what transformers generates.

Needs torch, transformers and safetensors (the file in the repository: torch 2.13, transformers 5.23):
    python3 scripts/make_golden_generation.py

tokens.json, with the decoders in tests/golden/gpt2 and llama: a list of {folder, options, prompt, expected}: options as of
GenerationConfig; prompt: token ids; expected: of each returned sequence the new ids, up to and with the first end token.

choices.json: a list of {options, logits, choices}: the ids from which transformers' logits processors let sampling draw.

A folder per family, a small model with random weights and a tokenizer of tests/golden/tokenizer, and in it texts.json: a list of
{options, texts, expected}: generation_config.json, prompts, and what the pipeline text-generation returns for each.
"""

import json
import shutil

import torch
import transformers
from transformers import AutoModelForCausalLM, GenerationConfig

import golden_decoders as decoders
import make_golden_bert as common

GOLDEN = common.ROOT.parent
FOLDERS = ["gpt2/plain", "gpt2/inverse", "gpt2/untied", "llama/plain", "llama/grouped", "llama/tied", "llama/mistral", "llama/qwen2",
           "llama/qwen3"]
ENDS = [3, 17, 25]
OPTIONS = [
    dict(max_new_tokens=12),
    dict(max_new_tokens=12, repetition_penalty=1.4, no_repeat_ngram_size=2),
    dict(max_new_tokens=12, eos_token_id=ENDS, min_new_tokens=3),
    dict(max_new_tokens=10, num_beams=3, eos_token_id=3),
    dict(max_new_tokens=10, num_beams=3, eos_token_id=ENDS, num_return_sequences=3),
    dict(max_new_tokens=12, num_beams=4, eos_token_id=ENDS, early_stopping=True, num_return_sequences=2, length_penalty=0.6),
    dict(max_new_tokens=12, num_beams=3, eos_token_id=ENDS, early_stopping="never", num_return_sequences=2, length_penalty=2.0),
    dict(max_new_tokens=12, num_beams=3, eos_token_id=ENDS, early_stopping="never", length_penalty=0.0),
    dict(max_new_tokens=12, num_beams=2, eos_token_id=ENDS, length_penalty=-1.0, no_repeat_ngram_size=2, repetition_penalty=1.2,
         min_new_tokens=2),
]


def new_ids(sequence, ends):
    ids = sequence.tolist()
    for position, token in enumerate(ids):
        if token in ends:
            return ids[:position + 1]
    return ids


# Options that came later, and lengths of prompts: with longrope, texts that become longer than the original number of positions
# (8), and prompts that are; with dynamic positions, texts and prompts that are longer than the model's (12).
MORE = [(folder, dict(max_new_tokens=12, eos_token_id=ENDS, min_length=8), length)
        for folder in ("gpt2/plain", "llama/grouped") for length in (1, 4, 9)]
MORE += [("llama/longrope", options, length) for length in (3, 6, 9)
         for options in (dict(max_new_tokens=12 - length), dict(max_new_tokens=12 - length, num_beams=3, num_return_sequences=2))]
MORE += [("llama/dynamic", options, length) for length in (3, 11, 12, 15)
         for options in (dict(max_new_tokens=14), dict(max_new_tokens=9, num_beams=3, num_return_sequences=2))]
MORE += [(folder, options, length) for folder in ("gpt2/plain", "llama/grouped") for length in (1, 4, 9)
         for options in (dict(max_new_tokens=12, suppress_tokens=[1, 5, 6, 8, 14, 21, 30, 31, 36]),
                         dict(max_new_tokens=12, begin_suppress_tokens=list(range(0, 40, 2)), eos_token_id=ENDS),
                         dict(max_new_tokens=12, eos_token_id=3, bad_words_ids=[[3], [8], [14, 21], [30, 5, 6], *([i, i] for i in range(40))]),
                         dict(max_new_tokens=12, num_beams=3, num_return_sequences=3, eos_token_id=ENDS, renormalize_logits=True,
                              suppress_tokens=[1, 5, 6, 8], repetition_penalty=1.3))]
# What restricts the choices of sampling, alone and together.
CHOICES = [dict(top_k=4), dict(top_p=0.7), dict(min_p=0.2), dict(typical_p=0.5), dict(epsilon_cutoff=0.04), dict(epsilon_cutoff=0.9),
           dict(eta_cutoff=0.1), dict(eta_cutoff=0.01), dict(temperature=0.6, eta_cutoff=0.3, epsilon_cutoff=0.02),
           dict(top_k=12, top_p=0.9, min_p=0.02, typical_p=0.95, epsilon_cutoff=0.03, eta_cutoff=0.05),
           dict(num_beams=3, epsilon_cutoff=0.9), dict(num_beams=3, eos_token_id=ENDS, eta_cutoff=0.99, top_k=1),
           dict(top_p=0.6, epsilon_cutoff=0.08)]

TEXTS = ["The quick brown fox", "Anna has 12 apples, and", "Größe: 3 \u20ac", "\u6771\u4eac \U0001f600 caf", "def f(x):\n    return"]
TEXT_OPTIONS = [dict(do_sample=False, max_new_tokens=24), dict(do_sample=False, max_new_tokens=16, num_beams=3, num_return_sequences=2),
                dict(do_sample=False, max_new_tokens=24, repetition_penalty=1.5, no_repeat_ngram_size=3)]
SIZES = dict(hidden_size=24, num_attention_heads=2, num_hidden_layers=2)


def generated(model, options, prompt):
    ends = options.get("eos_token_id", [])
    ends = ends if isinstance(ends, list) else [ends]
    # Nothing of config.json, and other defaults than none are given in `options`.
    model.generation_config = GenerationConfig(pad_token_id=0)
    config = GenerationConfig(pad_token_id=0, do_sample=False, **options)
    with torch.no_grad():
        found = model.generate(prompt[None], attention_mask=torch.ones(1, len(prompt), dtype=torch.int64), generation_config=config)
    return [new_ids(one[len(prompt):], ends) for one in found]


def write_tokens(folder):
    generator = torch.Generator().manual_seed(7)
    cases = []
    models = {}
    for name, options, length in [(*both, length) for both in ((name, options) for name in FOLDERS for options in OPTIONS)
                                  for length in (1, 4, 9)] + MORE:
        if name not in models or name == "llama/dynamic":  # dynamic positions depend on what a model has seen before
            models[name] = AutoModelForCausalLM.from_pretrained(GOLDEN / name, attn_implementation="eager", dtype=torch.float32).eval()
        prompt = torch.randint(0, models[name].config.vocab_size, (length,), generator=generator)
        cases.append({"folder": name, "options": options, "prompt": prompt.tolist(), "expected": generated(models[name], options, prompt)})
    lines = ",\n".join(json.dumps(case) for case in cases)
    (folder / "tokens.json").write_text(f"[\n{lines}\n]\n")


def write_choices(folder):
    generator = torch.Generator().manual_seed(8)
    model = AutoModelForCausalLM.from_pretrained(GOLDEN / "gpt2/plain")
    cases = []
    for options in CHOICES:
        config = GenerationConfig(do_sample=True, **{"top_k": 0, **options})
        model._prepare_special_tokens(config, kwargs_has_attention_mask=True, device="cpu")
        processors = model._get_logits_processor(generation_config=config, input_ids_seq_length=1, device="cpu")
        for scale in (0.5, 2.0, 5.0):
            logits = (scale * torch.randn(1, 24, generator=generator)).round(decimals=3)
            choices = processors(torch.zeros(1, 1, dtype=torch.int64), logits)[0].isfinite().nonzero()[:, 0]
            cases.append({"options": {"top_k": 0, **options}, "logits": [round(one, 3) for one in logits[0].tolist()], "choices": choices.tolist()})
    (folder / "choices.json").write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


def write_texts(folder, tokenizer, make, fan_in):
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(GOLDEN / "tokenizer" / tokenizer, folder)
    loaded = transformers.AutoTokenizer.from_pretrained(folder)
    model = make(len(loaded)).eval()
    decoders.randomise(model, 11, fan_in)
    model.save_pretrained(folder)
    cases = []
    for options in TEXT_OPTIONS:
        (folder / "generation_config.json").write_text(json.dumps(options))
        pipeline = transformers.pipeline("text-generation", model=str(folder), tokenizer=loaded, device="cpu", dtype=torch.float32)
        cases.append({"options": options, "texts": TEXTS, "expected": [pipeline(text, pad_token_id=0) for text in TEXTS]})
    (folder / "generation_config.json").unlink()
    (folder / "texts.json").write_text(json.dumps(cases, indent=1) + "\n")


def main():
    decoders.set_up()
    folder = GOLDEN / "generation"
    folder.mkdir(exist_ok=True)
    write_tokens(folder)
    write_choices(folder)
    write_texts(folder / "gpt2", "gpt2", lambda vocabulary: transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=vocabulary, n_embd=24, n_head=2, n_layer=2, n_positions=64, bos_token_id=None, eos_token_id=None)), lambda name: 0)
    llama = dict(SIZES, intermediate_size=32, num_key_value_heads=1, max_position_embeddings=64, bos_token_id=1, eos_token_id=2)
    write_texts(folder / "llama", "llama2", lambda vocabulary: transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=vocabulary, **llama)), lambda name: 1)
    write_texts(folder / "qwen2", "qwen2", lambda vocabulary: transformers.Qwen2ForCausalLM(transformers.Qwen2Config(
        vocab_size=vocabulary, **dict(llama, bos_token_id=None, eos_token_id=None))), lambda name: 1)


if __name__ == "__main__":
    main()
