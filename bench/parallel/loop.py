"""What the Python loops of this folder share: their arguments, and ranks that are pinned before torch starts its threads."""

import argparse
import os


def arguments(description, hows, config):
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("how", choices=hows)
    parser.add_argument("--config", required=True, help=config)
    parser.add_argument("--precision", choices=["fp32", "bf16"], required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--batch-size", type=int, required=True, help="blocks per step of all ranks together")
    parser.add_argument("--length", type=int, default=256)
    return parser.parse_args()


def pin():
    """Gives this rank a core of its own. Returns its number and that of all ranks."""
    rank, ranks = int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"])
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    return rank, ranks
