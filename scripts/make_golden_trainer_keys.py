#!/usr/bin/env python3
"""Writes tests/golden/trainer/keys.json: the keys of the files that transformers' Trainer writes, and its total_flos.

    python3 scripts/make_golden_trainer_keys.py

Needs scripts/golden-requirements.txt. The calls are those of run_clm.py on a tiny GPT-2, with tied and untied tables.
"""

import json
import math
import pathlib
import tempfile

import accelerate
import torch
import transformers

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/trainer/keys.json"
SIZES = {"n_layer": 2, "n_head": 2, "n_embd": 8, "n_positions": 16, "vocab_size": 50, "bos_token_id": None, "eos_token_id": None}
BLOCKS, BLOCK_SIZE, EPOCHS = 10, 8, 2


class Blocks(torch.utils.data.Dataset):
    def __len__(self):
        return BLOCKS

    def __getitem__(self, i):
        ids = [(7 * i + j) % SIZES["vocab_size"] for j in range(BLOCK_SIZE)]
        return {"input_ids": ids, "labels": ids}


def run_clm(folder, tied):
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**SIZES, tie_word_embeddings=tied))
    arguments = transformers.TrainingArguments(output_dir=str(folder), num_train_epochs=EPOCHS, per_device_train_batch_size=2, logging_steps=3,
                                               eval_strategy="epoch", report_to=[], use_cpu=True, save_strategy="no")
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=Blocks(), eval_dataset=Blocks())
    metrics = {**trainer.train().metrics, "train_samples": BLOCKS}
    trainer.log_metrics("train", metrics)
    trainer.save_metrics("train", metrics)
    trainer.save_state()
    metrics = {**trainer.evaluate(), "eval_samples": BLOCKS}
    trainer.save_metrics("eval", {**metrics, "perplexity": math.exp(metrics["eval_loss"])})
    return {name: json.loads((folder / f"{name}.json").read_text()) for name in ("train_results", "eval_results", "all_results", "trainer_state")}


def main():
    golden = {"versions": {package.__name__: package.__version__ for package in (transformers, torch, accelerate)}, "sizes": SIZES,
              "tokens": BLOCKS * BLOCK_SIZE * EPOCHS, "total_flos": {}}
    for name, tied in (("tied", True), ("untied", False)):
        with tempfile.TemporaryDirectory() as folder:
            files = run_clm(pathlib.Path(folder), tied)
        golden["total_flos"][name] = files["train_results"]["total_flos"]
    golden |= {name: sorted(content) for name, content in files.items()}
    history = files["trainer_state"]["log_history"]
    golden["log_history"] = {"training": sorted(history[0]), "evaluation": sorted(next(entry for entry in history if "eval_loss" in entry)),
                             "end": sorted(history[-1])}
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
