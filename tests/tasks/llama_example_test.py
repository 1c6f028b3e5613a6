#!/usr/bin/env python3
"""examples/llama, a Module in the shape of NeuronxDistributed's NeuronLTModule, trains as `stretto run-llama` does.

    llama_example_test.py STRETTO LLAMA_PRETRAIN
"""

import json
import math
import pathlib
import sys
import tempfile

from workspace import SOURCE, Stretto, losses_of, require, write_lines, write_model

STEPS = 10
# The keys that neuronx_distributed_config() adds to those of the example, with its defaults.
NXD_DEFAULTS = {"context_parallel_size": 1, "expert_parallel_size": 1, "pipeline_config": None, "pad_model": False, "lora_config": None,
                "lnc_size": 1}


def main(program, example):
    with tempfile.TemporaryDirectory(prefix="stretto-llama-example-") as temporary:
        folder = pathlib.Path(temporary)
        stretto, pretrain = Stretto(program, folder), Stretto(example, folder)
        write_lines(folder / "train.txt", 600, seed=1)
        write_model(folder / "model", "llama")
        stretto.run("data", "tokenize", "train.txt", "--tokenizer", "model", "--output", "corpus", "--document", "line")
        stretto.run("run-llama", "--model_path", "model", "--data_dir", "corpus", "--seq_len", 48, "--lr", "3e-3", "--warmup_steps", 2,
                    "--max_steps", STEPS, "--train_batch_size", 4, "--grad_accum_usteps", 2, "--use_zero1_optimizer", 1, "--precision", "fp32",
                    "-N", 4, "--no-pin", "--output_dir", "script")
        config = json.loads((SOURCE / "examples/llama/nxd_config.json").read_text())
        (folder / "nxd_config.json").write_text(json.dumps({**NXD_DEFAULTS, **config}))
        job = ["nxd_config.json", SOURCE / "examples/llama/pretrain.yaml", "--no-pin", "data.seq_len=48", "llama.lr=3e-3", "llama.warmup_steps=2",
               f"training.max_steps={STEPS}", "training.precision=fp32", "training.device=cpu"]
        wanted = losses_of(stretto, "script")
        for ranks, batch, accumulation in ((4, 4, 2), (2, 8, 2)):
            run = f"example-{ranks}"
            pretrain.run(*job, "-N", ranks, f"training.batch_size={batch}", f"training.grad_accumulation_steps={accumulation}", f"output={run}")
            found = losses_of(stretto, run)
            require(len(found) == STEPS and all(math.isclose(a, b, rel_tol=1e-4) for a, b in zip(found, wanted)),
                    f"{run}: losses {found}, of run-llama {wanted}")
        log = (folder / "example-4/logger_logs/training_0.log").read_text()
        require("mesh       dp 2 x tp 2" in log and "step 10 loss is " in log and "seq/s" in log, log)
        require(stretto.json("example-4/model/config.json")["hidden_size"] == stretto.json("model/config.json")["hidden_size"], "config.json")
        # In parts, as with Trainer(max_steps=steps_this_run) and ckpt_path.
        parts = [*job, "training.batch_size=4", "training.grad_accumulation_steps=2", "output=parts"]
        pretrain.run(*parts, "-N", 4, "training.steps_this_run=4")
        pretrain.run(*parts, "-N", 4)
        found = losses_of(stretto, "parts")
        require(len(found) == STEPS and all(math.isclose(a, b, rel_tol=1e-4) for a, b in zip(found, wanted)), f"in parts: {found}, {wanted}")
        for change, message in (({"tensor_parallel": 2}, 'nxd_config.json:1:'), ({"optimizer_config": {"zero_one": True}}, "zero_one_enabled"),
                                ({"pipeline_parallel_size": 4}, "pipeline_parallel_size: layers are not divided into stages"),
                                ({"lora_config": {"lora_rank": 8}}, "lora_config: adapters are not available")):
            (folder / "nxd_config.json").write_text(json.dumps({**config, **change}))
            pretrain.require_error(message, *parts, "-N", 2)


if __name__ == "__main__":
    main(*(pathlib.Path(path).resolve() for path in sys.argv[1:]))
