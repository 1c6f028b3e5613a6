"""Compares the folder of classification_test.py with transformers."""

import json
import sys

import torch
import transformers

TOLERANCE = 1e-5


def records(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def require_same(what, found, wanted):
    """Compares labels exactly and scores up to rounding; both have the same structure."""
    flat = lambda value: value if isinstance(value, list) else [value]
    same = len(found) == len(wanted) and all(
        isinstance(a, list) == isinstance(b, list) and len(flat(a)) == len(flat(b)) and all(
            c.keys() == d.keys() and c["label"] == d["label"] and abs(c["score"] - d["score"]) < TOLERANCE for c, d in zip(flat(a), flat(b)))
        for a, b in zip(found, wanted))
    if not same:
        sys.exit(f"{what}: stretto gives {found}, transformers {wanted}")


def check_requests(folder, run, pipeline):
    """The lines of `stretto predict --output pipeline` are the elements of the pipeline's lists."""
    texts = json.loads((folder / "texts.json").read_text())
    for k in (1, 2, "all"):
        require_same(f"{run}: top_k {k}", records(folder / f"{run}.top-{k}.jsonl"), pipeline(texts, top_k=None if k == "all" else k))
    wanted = []
    for line in (folder / "requests.jsonl").read_text().splitlines():
        if line:
            request = json.loads(line)
            found = pipeline(request["inputs"] if isinstance(request, dict) and "inputs" in request else request)
            wanted += found if isinstance(found, list) else [found]
    require_same(f"{run}: requests", records(folder / f"{run}.requests.jsonl"), wanted)


def main(folder):
    compared = 0
    for run in ("regression", "multi", "one"):
        path = folder / run / "model"
        model = transformers.AutoModelForSequenceClassification.from_pretrained(path).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(path)
        pipeline = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer)
        for label, scores, logits in zip(*(records(folder / f"{run}.{output}.jsonl") for output in ("label", "scores", "logits"))):
            text = label["text"]
            with torch.no_grad():
                wanted = model(**tokenizer(text, return_tensors="pt")).logits[0].tolist()
            if max(abs(a - b) for a, b in zip(logits["logits"], wanted)) > TOLERANCE:
                sys.exit(f"{run}: {text!r}: the logits differ: {logits}, {wanted}")
            every = {one["label"]: one["score"] for one in pipeline(text, top_k=None)}
            if scores["scores"].keys() != every.keys() or any(abs(scores["scores"][name] - every[name]) > TOLERANCE for name in every):
                sys.exit(f"{run}: {text!r}: {scores} is not {every}")
            best = pipeline(text)[0] if isinstance(pipeline(text), list) else pipeline(text)
            if label["label"] != best["label"] or abs(label["score"] - best["score"]) > TOLERANCE:
                sys.exit(f"{run}: {text!r}: {label} is not {best}")
            compared += 1
        check_requests(folder, run, pipeline)
    pairs = transformers.pipeline("text-classification", model=str(folder / "foreign"))(records(folder / "pairs.jsonl"), top_k=None)
    require_same("pairs", records(folder / "pairs.out.jsonl"), pairs)
    print(f"{compared} texts: logits, scores, labels and replies to requests are those of transformers")
