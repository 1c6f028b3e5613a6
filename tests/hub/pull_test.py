#!/usr/bin/env python3
"""stretto pull against a double of Hugging Face's hub on this machine.

    pull_test.py STRETTO [-v]
"""

import hashlib
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
STRETTO = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else "stretto"
COMMIT, OLD_COMMIT = "a" * 40, "b" * 40
TOKEN = "a-token-of-the-test"


def blob_hash(content):
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()


class Hub:
    """The files that the server has, and the requests that it received."""

    def __init__(self):
        golden = SOURCE / "tests/golden/bert/old_names"
        weights = (golden / "model.safetensors").read_bytes()
        vocabulary = "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]).encode()
        self.models = {
            "tiny/bert": {"config.json": (golden / "config.json").read_bytes(), "model.safetensors": weights,
                          "vocab.txt": vocabulary, "pytorch_model.bin": b"pickle", "onnx/model.onnx": b"onnx",
                          "1_Pooling/config.json": b"{}", "train.py": b"print()", "empty.txt": b""},
            "tiny/pickled": {"config.json": b"{}", "pytorch_model.bin": b"pickle"},
            "tiny/private": {"config.json": b"{}", "model.safetensors": weights},
        }
        self.large = {"model.safetensors", "pytorch_model.bin", "onnx/model.onnx"}
        self.corrupt = self.ignore_range = False
        self.cut_at = None  # the next transfer of a large file ends there
        self.extra = {}  # of the listing
        self.requests = []
        self.cdn = ""  # the server that large files are on; "": this one

    def listing(self, name, revision):
        siblings = []
        for file, content in self.models[name].items():
            entry = {"rfilename": file, "size": len(content), "blobId": blob_hash(content)}
            if file in self.large:
                entry["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 1}
            siblings.append(entry)
        return {"id": name, "sha": OLD_COMMIT if revision == "v1" else COMMIT, "siblings": siblings, **self.extra}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, content=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        hub = self.server.hub
        hub.requests.append((self.path, dict(self.headers)))
        path = self.path.split("?")[0].strip("/").split("/")
        if path[0] == "cdn":
            return self.send_file("/".join(path[1:3]), "/".join(path[3:]))
        is_api = path[:2] == ["api", "models"]
        name = "/".join(path[2:4] if is_api else path[:2])
        if name not in hub.models:
            return self.reply(401)
        if name == "tiny/private" and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.reply(401)
        if is_api:
            revision = path[5]
            if revision not in ("main", "v1", COMMIT):
                return self.reply(404)
            return self.reply(200, json.dumps(hub.listing(name, revision)).encode())
        file = "/".join(path[4:])
        if file in hub.large:  # as the hub does for large files
            return self.reply(302, Location=f"{hub.cdn}/cdn/{name}/{file}")
        return self.send_file(name, file)

    def send_file(self, name, file):
        hub = self.server.hub
        content = hub.models[name][file]
        if hub.corrupt:
            content = content[:-1] + b"?"
        wanted = self.headers.get("Range")
        if wanted and not hub.ignore_range:
            begin = int(wanted[len("bytes="):-1])
            return self.reply(206, content[begin:], Content_Range=f"bytes {begin}-{len(content) - 1}/{len(content)}")
        if hub.cut_at is None or file not in hub.large:
            return self.reply(200, content)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[:hub.cut_at])
        self.wfile.flush()
        hub.cut_at = None
        self.close_connection = True


def serve(server):
    """Runs the server on a thread. shutdown() returns after the server has checked its flag, by default twice
    per second."""
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()


class Pull(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="stretto-hub-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.hub = self.server.hub = Hub()
        serve(self.server)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.cache = self.folder / "home/hub"

    def run_stretto(self, *arguments, expect=0, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_") and "proxy" not in name.lower()}
        environment.update(HF_ENDPOINT=f"http://127.0.0.1:{self.server.server_port}/", HF_HOME=str(self.folder / "home"),
                           OMP_NUM_THREADS="1", **variables)
        done = subprocess.run([STRETTO, *map(str, arguments)], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout if expect == 0 else done.stderr

    def blobs(self):
        return sorted(path.name for path in (self.cache / "models--tiny--bert/blobs").iterdir())

    def test_the_cache_is_that_of_hugging_face(self):
        snapshot = self.run_stretto("pull", "tiny/bert").strip()
        model = self.cache / "models--tiny--bert"
        self.assertEqual(pathlib.Path(snapshot), model / "snapshots" / COMMIT)
        self.assertEqual((model / "refs/main").read_text(), COMMIT)
        files = self.hub.models["tiny/bert"]
        names = ["config.json", "empty.txt", "model.safetensors", "vocab.txt"]
        self.assertEqual(sorted(path.name for path in pathlib.Path(snapshot).iterdir()), names)
        for name in names:
            link = model / "snapshots" / COMMIT / name
            self.assertEqual(link.read_bytes(), files[name])
            digest = hashlib.sha256(files[name]).hexdigest() if name in self.hub.large else blob_hash(files[name])
            self.assertEqual(os.readlink(link), f"../../blobs/{digest}")
        self.assertEqual(len(self.blobs()), len(names))

        # Files in the cache are not fetched again, revisions share contents, and a commit is a revision.
        before = len(self.hub.requests)
        self.run_stretto("pull", "tiny/bert", "--revision", COMMIT)
        self.run_stretto("pull", "tiny/bert", "--revision", "v1")
        self.assertEqual(len(self.hub.requests), before + 2)
        self.assertEqual((model / "refs/v1").read_text(), OLD_COMMIT)
        self.assertEqual((model / "snapshots" / OLD_COMMIT / "vocab.txt").read_bytes(), files["vocab.txt"])

    def test_other_files_are_fetched_when_asked_for(self):
        snapshot = pathlib.Path(self.run_stretto("pull", "tiny/bert", "--include", "onnx/*,*.bin").strip())
        self.assertEqual((snapshot / "onnx/model.onnx").read_bytes(), b"onnx")
        self.assertEqual((snapshot / "pytorch_model.bin").read_bytes(), b"pickle")
        self.assertFalse((snapshot / "train.py").exists())
        self.assertIn("--include *.gguf: tiny/bert has no such file", self.run_stretto("pull", "tiny/bert", "--include", "*.gguf", expect=2))
        self.assertIn("its weights are pickles, not safetensors", self.run_stretto("pull", "tiny/pickled", expect=2))
        self.run_stretto("pull", "tiny/pickled", "--include", "pytorch_model*")

    def test_an_interrupted_file_is_continued(self):
        size = len(self.hub.models["tiny/bert"]["model.safetensors"])
        for ignore_range in False, True:
            self.hub.cut_at, self.hub.ignore_range = size // 3, ignore_range
            said = self.run_stretto("pull", "tiny/bert", expect=1)
            self.assertIn("check the connection and HF_ENDPOINT", said)
            self.assertFalse((self.cache / "models--tiny--bert/refs/main").exists())
            partial = [name for name in self.blobs() if name.endswith(".incomplete")]
            self.assertEqual((self.cache / "models--tiny--bert/blobs" / partial[0]).stat().st_size, size // 3)
            snapshot = pathlib.Path(self.run_stretto("pull", "tiny/bert").strip())
            self.assertEqual((snapshot / "model.safetensors").read_bytes(), self.hub.models["tiny/bert"]["model.safetensors"])
            self.assertFalse([name for name in self.blobs() if name.endswith(".incomplete")])
            ranges = [headers.get("Range") for _, headers in self.hub.requests]
            self.assertIn(f"bytes={size // 3}-", ranges)
            shutil.rmtree(self.cache)

    def test_contents_that_are_not_those_announced_are_refused(self):
        self.hub.corrupt = True
        self.assertIn("that are not the announced", self.run_stretto("pull", "tiny/bert", expect=2))
        self.assertEqual(self.blobs(), [])
        self.hub.corrupt = False
        self.run_stretto("pull", "tiny/bert")
        for name in "../../escaped.json", "/tmp/escaped.json", "a/../../b.json", "a//b.json", "a/":
            self.hub.extra = {"siblings": [{"rfilename": name, "size": 2, "blobId": "0" * 40}]}
            self.assertIn("is not understood", self.run_stretto("pull", "tiny/bert", expect=2))
        for extra in {"sha": "../x"}, {"sha": 1}, {"siblings": 3}, {"siblings": [{"rfilename": "a.json", "size": -1, "blobId": "0" * 40}]}:
            self.hub.extra = extra
            self.run_stretto("pull", "tiny/bert", expect=2)

    def test_access(self):
        self.assertIn("if it is private, set HF_TOKEN", self.run_stretto("pull", "tiny/private", expect=2))
        self.assertIn("HF_TOKEN gives access to", self.run_stretto("pull", "tiny/private", expect=2, HF_TOKEN="wrong"))
        said = self.run_stretto("pull", "tiny/private", HF_TOKEN=TOKEN)
        self.assertNotIn(TOKEN, said)

    def test_the_token_reaches_no_other_server(self):
        cdn = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        cdn.daemon_threads, cdn.hub = True, Hub()
        serve(cdn)
        self.addCleanup(cdn.server_close)
        self.addCleanup(cdn.shutdown)
        self.hub.cdn = f"http://127.0.0.1:{cdn.server_port}"
        self.run_stretto("pull", "tiny/private", HF_TOKEN=TOKEN)
        self.assertEqual([path for path, _ in cdn.hub.requests], ["/cdn/tiny/private/model.safetensors"])
        self.assertNotIn(TOKEN, str(cdn.hub.requests))
        self.assertIn(TOKEN, str(self.hub.requests))

    def test_mistakes_are_named(self):
        self.run_stretto("pull", "tiny/bert")
        self.assertIn('did you mean "tiny/bert"?', self.run_stretto("pull", "tiny/brt", expect=2))
        self.assertIn("revision v9 of this model", self.run_stretto("pull", "tiny/bert", "--revision", "v9", expect=2))
        self.assertIn("is not a branch, tag or commit", self.run_stretto("pull", "tiny/bert", "--revision", "../x", expect=2))
        for name in "a/b/c", "../x", "", "a b", "-x", "a//b", "x" * 97:
            self.run_stretto("pull", "--", name, expect=2)
        self.assertIn("fetch it with `stretto pull nobody/nothing`",
                      self.run_stretto("predict", "--model", "nobody/nothing", "--text", "a", expect=2))
        self.assertIn("HF_HUB_OFFLINE is set", self.run_stretto("pull", "tiny/bert", expect=2, HF_HUB_OFFLINE="1"))
        environment = {"HF_ENDPOINT": "ftp://x"}
        done = subprocess.run([STRETTO, "pull", "tiny/bert"], env={**os.environ, **environment}, stderr=subprocess.PIPE, encoding="utf-8")
        self.assertIn('HF_ENDPOINT: "ftp://x" is not a URL', done.stderr)

    def test_a_recipe_finds_the_model_by_its_name(self):
        recipe = "model: {path: tiny/bert}\ndata: {train: t.tsv, max_length: 8}\nevaluate: {every: never}\n" \
                 "training: {max_steps: 1, batch_size: 2, device: cpu}\noutput: run\n"
        (self.folder / "recipe.yaml").write_text(recipe)
        (self.folder / "t.tsv").write_text("text\tlabel\na\tx\nb\ty\n")
        said = self.run_stretto("train", "recipe.yaml", expect=2)
        self.assertIn("tiny/bert does not exist", said)
        self.assertIn("fetch it with `stretto pull tiny/bert`", said)
        self.run_stretto("pull", "tiny/bert")
        self.server.shutdown()  # the cache is enough
        self.run_stretto("train", "recipe.yaml")
        self.assertIn(f"snapshots/{COMMIT}", (self.folder / "run/config.yaml").read_text())
        self.assertIn('did you mean "tiny/bert"?', self.run_stretto("train", "recipe.yaml", "model.path=tiny/bart", expect=2))


if __name__ == "__main__":
    unittest.main()
