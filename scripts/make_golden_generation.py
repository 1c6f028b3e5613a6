#!/usr/bin/env python3
"""Writes tests/golden/generation/tokens.json: what transformers generates with the decoders in tests/golden/gpt2 and llama.

Needs torch, transformers and safetensors (the file in the repository: torch 2.13, transformers 5.23):
    python3 scripts/make_golden_generation.py

A list of {folder, options, prompt, expected}: options as of GenerationConfig; prompt: token ids; expected: of each returned
sequence the new ids, up to and with the first end token.
"""

import json

import torch
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


def main():
    decoders.set_up()
    generator = torch.Generator().manual_seed(7)
    cases = []
    for folder in FOLDERS:
        model = AutoModelForCausalLM.from_pretrained(GOLDEN / folder, attn_implementation="eager", dtype=torch.float32).eval()
        for options in OPTIONS:
            for length in (1, 4, 9):
                prompt = torch.randint(0, model.config.vocab_size, (length,), generator=generator)
                ends = options.get("eos_token_id", [])
                ends = ends if isinstance(ends, list) else [ends]
                # Nothing of config.json, and other defaults than none are given in `options`.
                model.generation_config = GenerationConfig(pad_token_id=0)
                config = GenerationConfig(pad_token_id=0, do_sample=False, **options)
                with torch.no_grad():
                    found = model.generate(prompt[None], attention_mask=torch.ones(1, length, dtype=torch.int64), generation_config=config)
                cases.append({"folder": folder, "options": options, "prompt": prompt.tolist(),
                              "expected": [new_ids(one[length:], ends) for one in found]})
    folder = GOLDEN / "generation"
    folder.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(case) for case in cases)
    (folder / "tokens.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
