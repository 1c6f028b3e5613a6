#!/usr/bin/env python3
"""Speed and memory of the sharded strategies, alternately: versus ddp, and versus torch's ZeroRedundancyOptimizer and fully_shard;
with --plan, memory versus what `stretto plan` predicts. Ranks of one host, with one copy of the parameters."""

import argparse
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

STRATEGIES = {"ddp": [], "ddp, deterministic": ["training.deterministic=true"], "zero1": [], "zero1, copies": ["training.shared_parameters=off"], "zero2": [], "fsdp": [],
              "fsdp, gathered": ["training.shared_parameters=off"]}

PEERS = {"zero1": "zero1", "fsdp": "fsdp"}  # strategy: what python_trainer.py calls the peer's


# Ranks of one host and settings by strategy, for which the plan's figure is compared with what the ranks
# take.
PLANNED = {"ddp": (2, []), "zero1": (2, []), "zero2": (2, []), "fsdp": (2, []), "hsdp": (4, ["training.dp_shard=2"])}


def compare_with_plan(train, precision, options, temporary):
    """MB of all ranks that no file backs, as `stretto plan` predicts them and as they are."""
    for strategy, (ranks, settings) in PLANNED.items():
        case = train.Case(f"plan-{precision}", ranks, precision, 32, [])
        folder = temporary / f"{precision}-{strategy}"
        folder.mkdir()
        settings = [f"training.strategy={strategy}", *settings]
        command = train.stretto_command("plan", case, options, folder) + ["--steps", 10, "--json"]
        rows = json.loads(measure.run(command + [f"--set={setting}" for setting in settings]).out)["strategies"]
        plan = next(row["bytes_per_host"] for row in rows if row["strategy"] == strategy) / 2**20
        outcome, _ = train.run_stretto(case, options, folder, settings)
        measure.print_row(f"{precision} {strategy}, {ranks} ranks", "MB per host", [outcome.sum_unbacked_mb], "stretto plan", [plan], False)


def turn(train, case, strategy, options, folder):
    settings = [f"training.strategy={strategy.split(',')[0]}",
                f"training.global_batch_size={case.batch_size * case.ranks}", *STRATEGIES[strategy]]
    outcome, records = train.run_stretto(case, options, folder, settings)
    return records[-1]["samples_per_second"], outcome.sum_pss_mb


def measure_case(train, case, options, temporary):
    own_libraries, their_libraries = (case.ranks * mb for mb in train.libraries_alone(options, case.ranks))
    results = {name: ([], []) for name in [*STRATEGIES, *(f"torch's {peer}" for peer in PEERS.values())]}

    def turn_folder(name, turn_number):
        folder = temporary / f"{case.name}-{name.replace(', ', '-')}-{turn_number}"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(train.SHAPES["bert-base"]))
        return folder

    for turn_number in range(options.rounds):
        for name, (speeds, memory) in results.items():
            folder = turn_folder(name, turn_number)
            if name in STRATEGIES:
                speed, pss = turn(train, case, name, options, folder)
                memory.append(pss - own_libraries)
            else:
                peer = train.Peer(name.split()[-1], None, None, tcmalloc=True)
                speed, outcome = train.run_peer(case, peer, options, folder)
                memory.append(outcome.sum_pss_mb - their_libraries)
            speeds.append(speed)
        print(f"{case.name}: turn {turn_number + 1} of {options.rounds} done", file=sys.stderr)
    for strategy in STRATEGIES:
        speeds, memory = results[strategy]
        if strategy != "ddp":
            measure.print_row(f"{case.name} {strategy}", "samples/s", speeds, "ddp", results["ddp"][0], True)
            measure.print_row(f"{case.name} {strategy}", "MB per host", memory, "ddp", results["ddp"][1], False)
        if strategy in PEERS:
            peer = f"torch's {PEERS[strategy]}"
            measure.print_row(f"{case.name} {strategy}", "samples/s", speeds, peer, results[peer][0], True, 1.5)
            measure.print_row(f"{case.name} {strategy}", "MB per host", memory, peer, results[peer][1], False, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stretto", type=pathlib.Path, default=measure.ROOT / "build/release/bin/stretto")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch, transformers and accelerate")
    parser.add_argument("--encoder", help="default: STRETTO_ENCODER, else the demo's")
    parser.add_argument("--only", nargs="*", default=[], help="cases such as minilm-2-fp32 or base-2-bf16")
    parser.add_argument("--plan", action="store_true", help="compare memory with what `stretto plan` predicts, and nothing else")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40, help="steps per turn; half for the BERT-base shape")
    parser.add_argument("--seconds", type=float, default=15, help="seconds of a peer's steps per turn")
    options = parser.parse_args()
    options.encoder = measure.encoder(options.encoder)
    train = measure.load_script("train")
    cases = [train.Case(f"{model}-{ranks}-{precision}", ranks, precision, 16 if model == "base" else 32, [],
                        shape="bert-base" if model == "base" else "")
             for model, ranks in [("minilm", 2), ("base", 2), ("base", 4)]
             for precision in measure.precisions("sharding")]
    with tempfile.TemporaryDirectory(prefix="sharding-bench-") as temporary:
        options.train = measure.training_file(pathlib.Path(temporary), options.encoder)
        for precision in ("fp32", "bf16") if options.plan else ():
            compare_with_plan(train, precision, options, pathlib.Path(temporary))
        for case in () if options.plan else cases:
            if options.only and case.name not in options.only:
                continue
            measure_case(train, case, options, pathlib.Path(temporary))


if __name__ == "__main__":
    main()
