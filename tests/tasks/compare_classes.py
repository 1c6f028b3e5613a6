"""compare_classes.py FOLDER: run by classification_test.py, which wrote the folder, with a Python that has transformers."""

import json
import pathlib
import sys

import torch
import transformers

TOLERANCE = 1e-5


def records(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main(folder):
    transformers.logging.set_verbosity_error()
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
    print(f"{compared} texts: logits, scores and labels are those of transformers")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
