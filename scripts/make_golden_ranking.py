#!/usr/bin/env python3
"""Writes tests/golden/metrics/ranking.json: areas under the ROC curve and average precisions by scikit-learn.

Needs scikit-learn (the file in the repository: scikit-learn 1.9, numpy 2.4):
    python3 scripts/make_golden_ranking.py

One object per case: {"kind", "num_labels", "scores", "labels", "auroc", "average_precision"}. scores are row-major [samples,
num_labels]; labels are classes of the samples (binary, multi_class) or row-major like the scores (multi_label). Both metrics
are numbers for a binary case, else {"macro", "weighted", "micro"}. Scores are rounded so that many are equal.
"""

import json
import pathlib

import numpy
from sklearn.metrics import average_precision_score, roc_auc_score

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "metrics" / "ranking.json"
AVERAGES = ["macro", "weighted", "micro"]


def binary(samples, digits, generator):
    labels = generator.integers(0, 2, samples)
    scores = numpy.round(generator.normal(labels, 1.5), digits)
    return dict(kind="binary", num_labels=1, scores=scores.tolist(), labels=labels.tolist(),
                auroc=roc_auc_score(labels, scores), average_precision=average_precision_score(labels, scores))


def multi_class(samples, num_labels, generator):
    labels = generator.choice(num_labels, samples, p=numpy.arange(1, num_labels + 1) / (num_labels * (num_labels + 1) / 2))
    scores = generator.integers(1, 6, (samples, num_labels)) + 2.0 * (numpy.arange(num_labels) == labels[:, None])
    scores /= scores.sum(axis=1, keepdims=True)
    return dict(kind="multi_class", num_labels=num_labels, scores=scores.flatten().tolist(), labels=labels.tolist(),
                auroc={a: roc_auc_score(labels, scores, multi_class="ovr", average=a) for a in AVERAGES},
                average_precision={a: average_precision_score(labels, scores, average=a) for a in AVERAGES})


def multi_label(samples, num_labels, generator):
    labels = (generator.random((samples, num_labels)) < numpy.linspace(0.1, 0.7, num_labels)).astype(int)
    scores = numpy.round(generator.normal(labels, 1.0), 1)
    return dict(kind="multi_label", num_labels=num_labels, scores=scores.flatten().tolist(), labels=labels.flatten().tolist(),
                auroc={a: roc_auc_score(labels, scores, average=a) for a in AVERAGES},
                average_precision={a: average_precision_score(labels, scores, average=a) for a in AVERAGES})


def main():
    generator = numpy.random.default_rng(7)
    cases = [binary(10, 0, generator), binary(61, 1, generator), binary(50, 6, generator), multi_class(40, 3, generator),
             multi_class(90, 5, generator), multi_label(40, 3, generator), multi_label(80, 4, generator)]
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


main()
