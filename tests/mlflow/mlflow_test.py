#!/usr/bin/env python3
"""Trains with track.trackers [jsonl, mlflow] against a real `mlflow server`, and reads the run back by MLflow's own client.

    mlflow_test.py STRETTO MODULE_WAVES RECIPE

Runs in a Python with mlflow (scripts/setup.sh mlflow). Covered: experiment, run name, tags, parameters, metrics in batches, artifacts;
and a server that is down while a run trains, to which `stretto track sync` sends everything later.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import mlflow

STRETTO, WAVES, RECIPE = sys.argv[1:4]
STEPS = 400  # one record per step, which gives more metrics than one request may have


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


class Server:
    def __init__(self, folder, port):
        self.folder, self.port, self.url = folder, port, f"http://127.0.0.1:{port}"
        self.log = open(folder / "server.log", "ab")

    def __enter__(self):
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self.port), "--workers", "1",
                   "--backend-store-uri", f"sqlite:///{self.folder}/mlflow.db", "--artifacts-destination", str(self.folder / "artifacts")]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, start_new_session=True)
        deadline = time.monotonic() + 180
        while True:
            try:
                urllib.request.urlopen(self.url + "/health", timeout=5).read()
                return self
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    sys.exit("mlflow server does not start:\n" + (self.folder / "server.log").read_text()[-3000:])
                time.sleep(0.5)

    def __exit__(self, *_):
        os.killpg(self.process.pid, 15)
        self.process.wait(60)


def train(output, url, ranks, *settings):
    return subprocess.run([STRETTO, "launch", "-N", str(ranks), "--no-pin", WAVES, RECIPE, f"output={output}", "track.trackers=[jsonl,mlflow]",
                           f"track.logging_dir={url}", "track.experiment=waves", "track.tags=[team=audio]", "patience=1000", *settings],
                          capture_output=True, text=True, timeout=500)


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")
    print(f"ok: {what}")


def check_run(client, name, output, steps):
    experiment = client.get_experiment_by_name("waves")
    runs = client.search_runs([experiment.experiment_id], f"attributes.run_name = '{name}'")
    check(len(runs) == 1, f"{name}: one run in the experiment")
    run = runs[0]
    check(run.info.status == "FINISHED", f"{name}: finished")
    check(run.data.tags["team"] == "audio", f"{name}: tags")
    check(run.data.params["optimizer.lr"] == "0.005" and run.data.params["training.max_steps"] == str(steps), f"{name}: parameters")
    records = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    for metric, key in (("train/loss", "loss"), ("train/lr", "lr"), ("eval/f1_macro", "eval_f1_macro")):
        expected = [(record["step"], record[key]) for record in records if key in record]
        found = sorted((point.step, point.value) for point in client.get_metric_history(run.info.run_id, metric))
        check(found == expected, f"{name}: {metric}, {len(found)} values as in metrics.jsonl")
    files = {file.path for file in client.list_artifacts(run.info.run_id)}
    check({"config.yaml", "training_0.log"} <= files, f"{name}: artifacts {sorted(files)}")
    with tempfile.TemporaryDirectory() as folder:
        copy = client.download_artifacts(run.info.run_id, "config.yaml", folder)
        check(pathlib.Path(copy).read_bytes() == (output / "config.yaml").read_bytes(), f"{name}: the artifact is config.yaml, byte for byte")


def main():
    os.environ.update(no_proxy="127.0.0.1", MLFLOW_DISABLE_TELEMETRY="true")
    for variable in ("MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN"):
        os.environ.pop(variable, None)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        port = free_port()
        with Server(folder, port) as server:
            client = mlflow.MlflowClient(server.url)
            whole = train(folder / "whole", server.url, 2, "track.run_name=whole", "track.log_every=1", f"training.max_steps={STEPS}")
            check(whole.returncode == 0, "trains against the server" if whole.returncode == 0 else whole.stderr[-3000:])
            check_run(client, "whole", folder / "whole", STEPS)

        dead = train(folder / "later", f"http://127.0.0.1:{port}", 1, "track.run_name=later", "track.log_every=1", "training.max_steps=40")
        check(dead.returncode == 0, "a run continues without its server" if dead.returncode == 0 else dead.stderr[-3000:])
        check("stretto track sync" in dead.stderr, "the run prints the command that sends its values later")
        sync = [STRETTO, "track", "sync", str(folder / "later")]
        check(subprocess.run(sync, capture_output=True, timeout=120).returncode != 0, "track sync fails while the server is down")
        with Server(folder, port) as server:
            sent = subprocess.run(sync, capture_output=True, text=True, timeout=120)
            check(sent.returncode == 0, "track sync sends it" if sent.returncode == 0 else sent.stderr)
            check_run(mlflow.MlflowClient(server.url), "later", folder / "later", 40)
            again = subprocess.run(sync, capture_output=True, text=True, timeout=120)
            check(again.returncode == 0, "track sync has nothing left to send")
            check_run(mlflow.MlflowClient(server.url), "later", folder / "later", 40)
    print("mlflow: all checks passed")


main()
