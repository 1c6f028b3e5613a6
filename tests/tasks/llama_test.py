#!/usr/bin/env python3
"""Pre-training a Llama by the flags of NeuronxDistributed's run_llama_nxd_ptl.py, and fine-tuning by those of the script next to it.

    llama_test.py STRETTO
"""

import json
import math
import os
import pathlib
import shutil
import sys
import tempfile

from workspace import SOURCE, Stretto, losses_of, require, write_lines, write_model

STEPS = 12
JOB = ["run-llama", "--model_path", "llama", "--data_dir", "corpus", "--seq_len", 48, "--lr", "3e-3", "--warmup_steps", 2, "--seed", 1,
       "--no-pin"]
TWO = [*JOB, "-N", 2, "--train_batch_size", 8, "--precision", "fp32", "--max_steps", STEPS, "--steps_this_run", -1]
FOUR = [*JOB, "-N", 4, "--train_batch_size", 4, "--use_zero1_optimizer", 1, "--precision", "fp32", "--max_steps", STEPS]


def require_losses(what, found, wanted, tolerance=1e-3):
    require(len(found) == len(wanted) and all(math.isclose(a, b, rel_tol=tolerance) for a, b in zip(found, wanted)),
            f"{what}: losses {found}, expected {wanted}")


def checkpoints(stretto, run):
    return sorted(int(path.name.split("-")[1]) for path in (stretto.folder / run / "checkpoints").iterdir())


def check_meshes(stretto):
    """Two ranks that share each layer, and two groups of them with zero1, take the steps of one rank with whole layers."""
    stretto.run(*TWO, "--output_dir", "two")
    wanted = losses_of(stretto, "two")
    require(len(wanted) == STEPS and wanted[-1] < wanted[0] - 0.5, f"losses {wanted}")
    one = [*TWO, "--tensor_parallel_size", 1, "--data_dir", "train.txt", "--set", "causal_lm.document=line"]  # the text, not its corpus
    one[one.index("-N") + 1] = 1
    stretto.run(*one, "--output_dir", "one")
    require_losses("one rank", losses_of(stretto, "one"), wanted)
    stretto.run(*FOUR, "--output_dir", "four")
    require_losses("tp 2 x dp 2, zero1", losses_of(stretto, "four"), wanted)
    log = (stretto.folder / "four/logger_logs/training_0.log").read_text()
    require("mesh       dp 2 x tp 2: each layer is divided among 2 ranks" in log, log)
    require("strategy: zero1" in (stretto.folder / "four/config.yaml").read_text(), "the strategy")
    require("sequence_parallel: true" in (stretto.folder / "two/config.yaml").read_text(), "rows are not divided")
    stretto.run(*TWO, "--train_batch_size", 2, "--grad_accum_usteps", 4, "--use_sequence_parallel", 0, "--output_dir", "accumulated")
    require_losses("accumulation, whole rows", losses_of(stretto, "accumulated"), wanted)
    require("sequence_parallel: true" not in (stretto.folder / "accumulated/config.yaml").read_text(), "rows are divided")
    stretto.run(*TWO, "--use_selective_checkpoint", 1, "--strategy", "fsdp", "--output_dir", "selective")
    require("strategy: fsdp" in (stretto.folder / "selective/config.yaml").read_text(), "the strategy of --strategy")
    require_losses("selective checkpointing", losses_of(stretto, "selective"), wanted, 1e-5)
    # The default is bf16 with fp32 master weights.
    stretto.run(*JOB, "-N", 2, "--max_steps", STEPS, "--output_dir", "bf16")
    require_losses("bf16", losses_of(stretto, "bf16"), wanted, 0.05)
    require("compute bf16 | master fp32 | gradient fp32" in (stretto.folder / "bf16/logger_logs/training_0.log").read_text(), "bf16")
    return wanted


def check_recipe(stretto, wanted):
    """The recipe of --print-recipe does the same."""
    (stretto.folder / "printed.yaml").write_text(stretto.run(*TWO, "--print-recipe", "--output_dir", "unused"))
    require(not (stretto.folder / "unused").exists(), "--print-recipe writes a folder")
    stretto.train("printed.yaml", "printed", 2)
    require(losses_of(stretto, "printed") == wanted, "the printed recipe takes other steps")


def check_records(stretto):
    records = [json.loads(line) for line in (stretto.folder / "two/metrics.jsonl").read_text().splitlines()]
    require([record["step"] for record in records] == list(range(1, STEPS + 1)), f"{records}")
    for name in ("loss", "lr", "grad_norm", "samples_per_second"):
        require(name in records[-1], f"{records[-1]}")
    # Linear: up to lr in 2 steps, then down to 0.
    rates = [record["lr"] for record in records]
    require(rates[0] == 0 and math.isclose(rates[2], 3e-3) and math.isclose(rates[-1], 3e-4), f"{rates}")
    require(list((stretto.folder / "two/tensorboard").glob("events*")), "no event file")
    results = stretto.json("two/results.json")["results"]
    require(results["parameters"]["Batch size"] == 8 and results["parameters"]["Data type"] == "fp32", f"{results['parameters']}")
    last = {metric["MetricName"]: metric for metric in results["metrics"]}
    for name, units in (("Final loss", ""), ("Time to train", "minutes"), ("Average throughput", "seq/s"), ("Peak throughput", "seq/s")):
        require(last[name]["Units"] == units and last[name]["MeasuredValue"] >= 0, f"{last}")
        require(set(last[name]) == {"MetricName", "MeasuredValue", "Units", "Timestamp", "AdditionalData"}, f"{last[name]}")
    require(last["Final loss"]["MeasuredValue"] == records[-1]["loss"], f"{last['Final loss']}")
    require(last["Final loss"]["AdditionalData"]["Global step"] == STEPS, f"{last['Final loss']}")


def check_parts(stretto, wanted):
    """A run in parts, on other meshes, takes the steps of a whole one; the newest checkpoints are kept."""
    saves = ["--save_checkpoint", "--checkpoint_freq", 2, "--num_kept_checkpoint", 2, "--output_dir", "parts"]
    stretto.run(*TWO, *saves, "--steps_this_run", 5)
    require(checkpoints(stretto, "parts") == [4, 5], f"{checkpoints(stretto, 'parts')}")
    shutil.copytree(stretto.folder / "parts", stretto.folder / "killed")
    stretto.run(*FOUR, *saves)  # the same command, on another mesh
    require_losses("a run in parts", losses_of(stretto, "parts"), wanted)
    require(checkpoints(stretto, "parts") == [10, 12], f"{checkpoints(stretto, 'parts')}")
    require(losses_of(stretto, "parts")[:5] == wanted[:5], "the first part")
    metrics = stretto.json("parts/results.json")["results"]["metrics"]
    finals = [metric["AdditionalData"]["Global step"] for metric in metrics if metric["MetricName"] == "Final loss"]
    require(finals == [5, STEPS], f"final losses after {finals}")
    # By step, into a folder of its own, from a model folder that has moved.
    shutil.copytree(stretto.folder / "llama", stretto.folder / "moved")
    stretto.run(*TWO, "--resume_ckpt", "--checkpoint_dir", "killed", "--load_step", 4, "--model_path", "moved", "--output_dir", "loaded")
    require_losses("a loaded run", losses_of(stretto, "loaded"), wanted[4:])
    # The checkpoint of another model.
    refused = ["--resume_ckpt", "--checkpoint_dir", "killed", "--output_dir", "other-model"]
    stretto.require_error('"num_hidden_layers":1', *TWO, *refused, "--num_layers", 1)
    stretto.require_error('model.config: "llama/config.json" in the checkpoint, now "wide/config.json"', *TWO, *refused, "--model_path", "wide")
    stretto.require_error("holds checkpoints of later steps", *TWO, "--resume_ckpt", "--load_step", 4, "--output_dir", "killed")
    stretto.require_error("--load_step 3: there is no checkpoint of step 3 in killed/checkpoints; it has those of steps 4, 5", *TWO,
                          "--resume_ckpt", "--load_step", 3, "--output_dir", "killed")
    require(not (stretto.folder / "other-model").exists(), "a refused command leaves a folder")


def check_cosine(stretto):
    cosine = ["--scheduler_type", "cosine", "--min_lr", "1e-3"]
    stretto.run(*TWO, *cosine, "--constant_steps", 4, "--output_dir", "cosine")
    stretto.run(*TWO, *cosine, "--output_dir", "cosine-whole")
    rates = {run: [json.loads(line)["lr"] for line in (stretto.folder / run / "metrics.jsonl").read_text().splitlines()]
             for run in ("cosine", "cosine-whole")}

    def falling(step, steps):
        return 1e-3 + 2e-3 * 0.5 * (1 + math.cos(math.pi * step / steps))

    wanted = {"cosine": [0, 1.5e-3, *(falling(step, 6) for step in range(6)), 1e-3, 1e-3, 1e-3, 1e-3],
              "cosine-whole": [1e-3, 2e-3, *(falling(step, 10) for step in range(10))]}
    for run, found in rates.items():
        require(all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) for a, b in zip(found, wanted[run])), f"{run}: {found}, expected {wanted[run]}")


def check_evaluation(stretto):
    """Perplexity at the end, as `stretto test` computes it; and evaluations while training."""
    out = stretto.run(*TWO, "--validation_dir", "dev.txt", "--do_eval", "--output_dir", "evaluated")
    require("***** eval metrics *****" in out and "perplexity " in out, out)
    tested = stretto.json("evaluated/test_results.json")
    metrics = stretto.json("evaluated/results.json")["results"]["metrics"]
    found = {metric["MetricName"]: metric["MeasuredValue"] for metric in metrics}
    require(found["Evaluation perplexity"] == tested["perplexity"] == math.exp(tested["loss"]), f"{found}, {tested}")
    require(math.isclose(stretto.json("evaluated/dev_results.json")["loss"], tested["loss"], rel_tol=1e-3), "dev_results.json")


def check_fine_tuning(stretto):
    """Records of one category, from the weights of another run; eight of them for the perplexity."""
    records = [{"instruction": f"How many are {n}?", "context": "" if n % 3 else "Numbers", "response": f"There are {n}.",
                "category": "open_qa" if n % 2 else "closed_qa"} for n in range(80)]
    (stretto.folder / "dolly.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    tune = ["run-llama", "--model_name", "llama", "--data_dir", "dolly.jsonl", "--pretrained_ckpt", "two/model", "--model_path", "llama",
            "--seq_len", 48, "--batch_size", 4, "--grad_accum_usteps", 1, "--max_steps", 4, "--warmup_steps", 1, "--use_zero_1",
            "--use_mix_precision", "--do_eval", "-N", 2, "--no-pin"]
    stretto.run(*tune, "--task", "open_qa", "--output_dir", "tuned")
    train = [json.loads(line)["text"] for line in (stretto.folder / "tuned/cache/train.jsonl").read_text().splitlines()]
    test = [json.loads(line)["text"] for line in (stretto.folder / "tuned/cache/test.jsonl").read_text().splitlines()]
    require(len(train) == 32 and len(test) == 8 and not set(train) & set(test), f"{len(train)} and {len(test)} records")
    require("### Instruction\nHow many are 9?\n### Context\nNumbers\n### Answer\nThere are 9." in train + test, f"{train}")
    require(not any("How many are 8?" in text for text in train + test), "records of another category")
    stretto.run(*TWO, "--pretrained_weight", "two/model", "--max_steps", 2, "--warmup_steps", 0, "--output_dir", "further")
    require(losses_of(stretto, "further")[0] < losses_of(stretto, "two")[-1] + 0.2, "training does not start from the weights")
    require(stretto.json("tuned/test_results.json")["perplexity"] > 1, "perplexity")
    stretto.require_error("--task opn_qa: dolly.jsonl has 0 records of this category; expected more than 8 records. Its categories are closed_qa, open_qa",
                          *tune, "--task", "opn_qa", "--output_dir", "refused")
    (stretto.folder / "damaged.jsonl").write_text((stretto.folder / "dolly.jsonl").read_text() + '{"instruction": 3}\n')
    stretto.require_error("damaged.jsonl:81: expected an object with", *tune, "--data_dir", "damaged.jsonl", "--output_dir", "refused")
    require(not (stretto.folder / "refused").exists(), "a refused command leaves a folder")


def check_blocks(stretto):
    """Blocks of ids that datasets has saved, in builds that read Arrow files."""
    saved = ["--data_dir", SOURCE / "tests/golden/columnar/blocks", "--train_batch_size", 2, "--max_steps", 2, "--output_dir", "blocks"]
    error = stretto.error(*TWO, *saved)
    if "which this build of stretto does not read" in error:
        return
    # The thread sanitizer ends processes that start threads after a fork, which Arrow can.
    if "TSAN_OPTIONS" in os.environ:
        return
    require(all(part in error for part in ("blocks have 8 tokens", "--seq_len is 48", "pass --seq_len 8")), error)
    require(not (stretto.folder / "blocks").exists(), "a refused command leaves a folder")
    stretto.run(*TWO, *saved, "--seq_len", 8)
    log = (stretto.folder / "blocks/logger_logs/training_0.log").read_text()
    require("6 blocks of up to 8 tokens, of a text of 48 tokens in 6 documents" in log, log)


def check_mistakes(stretto):
    for flags, message in (
            (["--seq_len", 49], "--seq_len 49: data.max_length: 49 exceeds the 48 positions of the model"),
            (["-N", 4, "--tensor_parallel_size", 3], "--tensor_parallel_size 3: training.mesh.tp: 4 ranks cannot be divided into groups of 3"),
            (["-N", 1], "--tensor_parallel_size 2: training.mesh.tp: "),
            (["--model_path", "gpt2"], '--model_path gpt2: the model_type of gpt2/config.json is "gpt2"; expected llama'),
            (["--model_path", "few-words"], "the tokenizer has ids up to 449, but the model's vocab_size is 100"),
            (["--model_name", "other"], "its tokens are of another tokenizer"),
            (["--data_dir", "absent"], "--data_dir absent: data.train: absent does not exist"),
            (["--data_dir", "llama"], "llama: no token corpus"),
            (["--max_step", 3], "--max_step is not a known flag of this script; did you mean \"max_steps\"?"),
            (["--output_dir", "llama"], "--output_dir llama: output: llama is a model folder"),
            (["--num_layers", -5], "--num_layers -5: expected a whole number from 1"),
            (["--train_batch_size", 0], "--train_batch_size 0: training.batch_size: "),
            (["--precision", "bf61"], "--precision bf61: training.precision: "),
            (["--lr", "-1"], "--lr -1: "),
            (["--set", "optimizer.lrr=1"], '--set optimizer.lrr=1: optimizer.lrr is not a setting'),
            (["--strategy", "zero9"], "zero9"),
            (["--pipeline_parallel_size", 4], "--pipeline_parallel_size 4: layers are not divided into stages"),
            (["--output_dir", "dev.txt"], "--output_dir dev.txt: it is a file; expected a folder")):
        job = list(TWO)
        if "-N" in flags:
            del job[job.index("-N"):job.index("-N") + 2]
        stretto.require_error(message, *job, "--output_dir", "mistaken", *flags)
        require(not (stretto.folder / "mistaken").exists(), f"{flags} leaves {sorted((stretto.folder / 'mistaken').rglob('*'))}")


def check_ignored(stretto):
    """What has no meaning here is named once."""
    os.environ.update(NEURON_CC_FLAGS="--model-type transformer", XLA_DOWNCAST_BF16="1")
    flags = ["--use_flash_attention", 1, "--kv_replicator", 4, "--max_steps", 2, "--warmup_steps", 0]
    error = stretto.error(*TWO, *flags, "--output_dir", "dev.txt")
    for text in ("NEURON_CC_FLAGS, XLA_DOWNCAST_BF16" if "NEURON_CC_FLAGS, XLA" in error else "XLA_DOWNCAST_BF16", "--use_flash_attention is ignored",
                 "--kv_replicator is ignored"):
        require(error.count(text) == 1, f"{text} in {error}")
    for name in ("NEURON_CC_FLAGS", "XLA_DOWNCAST_BF16"):
        del os.environ[name]


def main(program):
    with tempfile.TemporaryDirectory(prefix="stretto-llama-") as temporary:
        folder = pathlib.Path(temporary)
        stretto = Stretto(program, folder)
        write_lines(folder / "train.txt", 600, seed=1)
        write_lines(folder / "dev.txt", 60, seed=2)
        for model_type in ("gpt2", "llama"):
            write_model(folder / model_type, model_type)
        config = stretto.json("llama/config.json")
        for name, changes in (("wide", {"hidden_size": 64}), ("few-words", {"vocab_size": 100})):
            shutil.copytree(folder / "llama", folder / name)
            (folder / name / "config.json").write_text(json.dumps({**config, **changes}))
        shutil.copytree(folder / "llama", folder / "other")
        merges = folder / "other/merges.txt"
        merges.write_text("\n".join(merges.read_text().splitlines()[:-40]) + "\n")
        stretto.run("data", "tokenize", "train.txt", "--tokenizer", "llama", "--output", "corpus", "--document", "line")
        wanted = check_meshes(stretto)
        check_recipe(stretto, wanted)
        check_records(stretto)
        check_parts(stretto, wanted)
        check_cosine(stretto)
        check_evaluation(stretto)
        check_fine_tuning(stretto)
        check_blocks(stretto)
        check_mistakes(stretto)
        check_ignored(stretto)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
