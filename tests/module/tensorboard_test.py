#!/usr/bin/env python3
"""TensorBoard's reader accepts the event files of a run, and they contain the values of metrics.jsonl.

    tensorboard_test.py STRETTO WAVES RECIPE PYTHON...

Trains examples/module/waves.cpp, kills it after a checkpoint, resumes it, and reads tensorboard/ with the first PYTHON that
has tensorboard: every step exactly once. Ends with 77 (skipped) if no PYTHON has it.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
READ = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "tensors": 0}).Reload()
print(json.dumps({"scalars": {tag: [(event.step, event.value) for event in events.Scalars(tag)]
                              for tag in events.Tags()["scalars"]},
                  "text": [event.tensor_proto.string_val[0].decode()
                           for event in events.Tensors("recipe/text_summary")]}))
"""


def find_python(candidates):
    for python in candidates:
        try:
            if subprocess.run([python, "-c", "import tensorboard"], stderr=subprocess.DEVNULL).returncode == 0:
                return python
        except OSError:
            pass
    return None


def records(run):
    lines = (run / "metrics.jsonl").read_text().splitlines() if (run / "metrics.jsonl").exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def kill_after_a_checkpoint(command, run):
    """Kills the run at a step after its first checkpoint, which has been logged and will be repeated."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True) as running:
        while not any((run / "checkpoints").glob("step-????????")) or records(run)[-1]["step"] % 10 != 5:
            if running.poll() is not None:
                raise SystemExit(f"the run ended before it was killed:\n{running.stderr.read().decode()}")
            time.sleep(0.002)
        os.killpg(running.pid, signal.SIGKILL)


def main(stretto, waves, recipe, candidates):
    python = find_python(candidates)
    if python is None:
        print("Skipped: no Python with tensorboard (looked for " + ", ".join(candidates) + ")")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="stretto-tensorboard-") as temporary:
        run = pathlib.Path(temporary) / "run"
        command = [stretto, "launch", "-N", "2", "--no-pin", waves, recipe, f"output={run}", "training.epochs=2",
                   "checkpoint.every=10", "track.log_every=1"]
        kill_after_a_checkpoint(command, run)
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        events = json.loads(subprocess.run([python, "-c", READ, run / "tensorboard"], check=True, text=True,
                                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
        for name, prefix, tag in [("loss", "", "train/loss"), ("lr", "", "train/lr"), ("accuracy", "", "train/accuracy"),
                                   ("f1_macro", "eval_", "eval/f1_macro")]:
            expected = [(record["step"], record[prefix + name]) for record in records(run) if prefix + name in record]
            found = events["scalars"][tag]
            assert [step for step, _ in found] == [step for step, _ in expected], (tag, found, expected)
            for (_, value), (_, wanted) in zip(found, expected):
                assert abs(value - wanted) <= 1e-6 * max(1, abs(wanted)), (tag, value, wanted)
        assert [step for step, _ in events["scalars"]["train/loss"]] == list(range(1, 61)), events["scalars"]["train/loss"]
        assert events["text"] and "global_batch_size: 20" in events["text"][-1], events["text"]
        files = sorted(path.name for path in (run / "tensorboard").iterdir())
        assert len(files) == 2, files
    print("each of 60 steps once, over 2 event files")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
