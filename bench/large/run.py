#!/usr/bin/env python3
"""Full-size models with random weights on two ranks, a few steps: samples/s and MB per rank of a BART of bart-base's shape on SST-2, and of
a BERT of bert-large's shape (that of whole-word masking) on SQuAD, stretto versus Accelerate and DDP. Takes 16 GiB; not part of `make bench`."""

import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

PEER = measure.ROOT / "bench/qa/transformers_peer.py"
BERT_LARGE = {"model_type": "bert", "vocab_size": 30522, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
              "intermediate_size": 4096, "max_position_embeddings": 512}
BART = {"bart-2-fp32": "fp32", "bart-2-bf16": "bf16"}
BERT = {"bert-large-2-fp32": "fp32", "bert-large-2-bf16": "bf16"}


def stretto_turn(options, train, folder, precision):
    settings = {"data.train": train, "data.validation": "null", "data.test": "null", "data.cache": folder / "cache", "model.path": "null",
                "model.config": folder / "config.json", "tokenizer.path": options.encoder, "training.max_steps": options.steps + 1,
                "training.global_batch_size": 2 * options.batch_size, "training.precision": precision, "evaluate.every": "never",
                "checkpoint.monitor": "null", "track.log_every": 1, "output": folder / "run", "resume": "false"}
    command = [options.stretto, "train", measure.ROOT / "recipes/qa.yaml", "-N", 2]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    outcome = measure.run(command, env=measure.data_variable(), watch="stretto-rank")
    records = (folder / "run/metrics.jsonl").read_text().splitlines()
    return json.loads(records[-1])["samples_per_second"], outcome.pss_mb


def peer_turn(options, train, folder, precision):
    env = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    if measure.tcmalloc():
        env["LD_PRELOAD"] = measure.tcmalloc()
    command = [options.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, PEER, "--train", train, "--encoder",
               options.encoder, "--config", folder / "config.json", "--steps", options.steps, "--batch-size", options.batch_size,
               "--precision", precision, "--any-lengths"]
    outcome = measure.run(command, env=env, watch=PEER.name)
    return json.loads(outcome.out.splitlines()[-1])["samples_per_second"], outcome.pss_mb


def bert(options, name):
    with tempfile.TemporaryDirectory(prefix="large-bench-") as temporary:
        folder = pathlib.Path(temporary)
        (folder / "config.json").write_text(json.dumps(BERT_LARGE))
        train = list(measure.load_script("qa").data_files(folder).values())[0]
        turns = [(*stretto_turn(options, train, folder, BERT[name]), *peer_turn(options, train, folder, BERT[name]))
                 for _ in range(options.rounds)]
        own, memory, theirs, their_memory = zip(*turns)
    own_libraries, their_libraries = measure.load_script("train").libraries_alone(options, 2)
    measure.print_row(name, "samples/s", own, measure.peer_name("DDP"), theirs, True, 2.5)
    measure.print_row(name, "MB per rank", [mb - own_libraries for mb in memory], measure.peer_name("DDP"),
                      [mb - their_libraries for mb in their_memory], False)


def main():
    parser = measure.arguments(__doc__, rounds=1)
    parser.add_argument("--only", nargs="*", default=[*BART, *BERT], choices=[*BART, *BERT])
    parser.add_argument("--steps", type=int, default=4, help="steps per turn of BERT; one more is not measured")
    parser.add_argument("--batch-size", type=int, default=4, help="of BERT, per rank")
    options = parser.parse_args()
    options.encoder = measure.encoder(options.encoder)
    for name in options.only:
        if name in BERT:
            bert(options, name)
    chosen = [name for name in options.only if name in BART]
    if chosen:
        sys.argv = [sys.argv[0], "--stretto", str(options.stretto), "--python", options.python, "--encoder", str(options.encoder), "--rounds",
                    str(options.rounds), "--steps", "16", "--only", *chosen]
        measure.load_script("train").main()


if __name__ == "__main__":
    main()
