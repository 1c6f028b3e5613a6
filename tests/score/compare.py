"""compare.py STRETTO: run by score_test.py, with a Python that has seqeval and numpy. With STRETTO_DATA, real files too."""

import collections
import functools
import json
import math
import operator
import os
import pathlib
import random
import re
import string
import subprocess
import sys
import tempfile
import types
import warnings

import numpy

if "sklearn" not in sys.modules:  # seqeval imports one warning class from it
    try:
        import sklearn.exceptions  # noqa: F401
    except ImportError:
        sys.modules["sklearn"] = types.ModuleType("sklearn")
        sys.modules["sklearn.exceptions"] = types.ModuleType("sklearn.exceptions")
        sys.modules["sklearn.exceptions"].UndefinedMetricWarning = type("UndefinedMetricWarning", (UserWarning,), {})

import seqeval.metrics
import seqeval.metrics.v1
import seqeval.scheme

warnings.filterwarnings("ignore")
STRETTO = None


def score(*arguments):
    done = subprocess.run([STRETTO, "score", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise SystemExit(f"stretto score {arguments} ended with {done.returncode}: {done.stderr.decode()}")
    return json.loads(done.stdout)


def require_equal(what, found, wanted):
    if found != wanted:
        raise SystemExit(f"{what}: stretto gives\n{json.dumps(found, indent=1)}\nexpected\n{json.dumps(wanted, indent=1)}")


# --- seqeval

def write_conll(path, gold, predicted):
    lines = ["\n".join(f"w{i} X {g} {p}" for i, (g, p) in enumerate(zip(*pair))) for pair in zip(gold, predicted)]
    path.write_text("\n\n".join(lines) + "\n")


def seqeval_scores(gold, predicted, scheme=None):
    """Returns what Hugging Face's metric prints, and the averages of classification_report."""
    options = dict(output_dict=True, zero_division=0)
    if scheme is None:
        report = seqeval.metrics.classification_report(gold, predicted, **options)
    else:
        report = seqeval.metrics.classification_report(gold, predicted, mode="strict", scheme=scheme, **options)
    if not [name for name in report if not name.endswith(" avg")]:
        report = {}  # seqeval's averages over no type are NaN
    averages = {name: report.pop(name) for name in ["micro avg", "macro avg", "weighted avg"] if name in report}
    scores = {name: {"precision": row["precision"], "recall": row["recall"], "f1": row["f1-score"],
                     "number": int(row["support"])} for name, row in report.items()}
    micro = averages.get("micro avg", {"precision": 0, "recall": 0, "f1-score": 0, "support": 0})
    scores.update(overall_precision=micro["precision"], overall_recall=micro["recall"], overall_f1=micro["f1-score"],
                  overall_accuracy=seqeval.metrics.accuracy_score(gold, predicted))
    for name in ["micro avg", "macro avg", "weighted avg"]:
        scores[name] = averages.get(name, micro)
    return json.loads(json.dumps(scores, default=float))


def chunk_tag(text):
    tag, _, kind = text.partition("-")
    return tag, "" if kind == "0" else kind


def conlleval_scores(gold, predicted):
    """Returns the counts of conlleval.pl, implemented from its description: two automata that read both
    columns."""
    ends = {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O"), ("E", "E"), ("E", "I"), ("E", "O")}
    starts = {("B", "B"), ("I", "B"), ("O", "B"), ("O", "I"), ("E", "E"), ("E", "I"), ("O", "E")}

    def end(a, b):
        return (a[0], b[0]) in ends or a[0] not in "O." and a[1] != b[1]

    def start(a, b):
        return (a[0], b[0]) in starts or b[0] not in "O." and a[1] != b[1]

    rows = []
    for pair in zip(gold, predicted):
        rows += [(chunk_tag(g), chunk_tag(p), True) for g, p in zip(*pair)] + [(("O", ""), ("O", ""), False)]
    counts = collections.defaultdict(collections.Counter)
    last, inside, same = (("O", ""), ("O", "")), False, 0
    for g, p, is_word in rows:
        if inside:
            closes = end(last[0], g), end(last[1], p)
            if all(closes) and last[0][1] == last[1][1]:
                inside = False
                counts[last[0][1]]["correct"] += 1
            elif closes[0] != closes[1] or g[1] != p[1]:
                inside = False
        opens = start(last[0], g), start(last[1], p)
        inside = inside or all(opens) and g[1] == p[1]
        if opens[0]:
            counts[g[1]]["gold"] += 1
        if opens[1]:
            counts[p[1]]["found"] += 1
        same += is_word and g == p
        last = g, p

    def percentages(count):
        precision = 100 * count["correct"] / count["found"] if count["found"] else 0
        recall = 100 * count["correct"] / count["gold"] if count["gold"] else 0
        fb1 = 2 * precision * recall / (precision + recall) if precision + recall else 0
        return {"precision": float(f"{precision:.2f}"), "recall": float(f"{recall:.2f}"), "FB1": float(f"{fb1:.2f}")}

    total = sum(counts.values(), collections.Counter())
    tokens = sum(map(len, gold))
    return {"tokens": tokens, "phrases": total["gold"], "found": total["found"], "correct": total["correct"],
            "accuracy": float(f"{100 * same / tokens:.2f}"), **percentages(total),
            "types": {kind: {**percentages(count), "found": count["found"]} for kind, count in sorted(counts.items())}}


def random_tags(draw, prefixes, kinds, length):
    return [draw.choice(["O"] + [f"{prefix}-{kind}" for prefix in prefixes for kind in kinds]) for _ in range(length)]


def check_taggings(folder):
    draw = random.Random(3)
    schemes = {"IOB1": "IB", "IOB2": "IB", "IOE1": "IE", "IOE2": "IE", "IOBES": "IBES", "BILOU": "IBLU"}
    path = folder / "tags.conll"
    cases = 0
    for round in range(12):
        for scheme, prefixes in schemes.items():
            # More than eight and 128 types: numpy adds them in another order.
            kinds = ["PER", "LOC", "A-B", "MISC"] if round else [f"T{i}" for i in range(150)]
            lengths = [draw.randint(1, 12) for _ in range(draw.randint(1, 100 if round else 300))]
            gold = [random_tags(draw, prefixes, kinds, length) for length in lengths]
            predicted = [tags if draw.random() < 0.4 else random_tags(draw, prefixes, kinds, len(tags)) for tags in gold]
            write_conll(path, gold, predicted)
            require_equal(f"default mode, {scheme}", score("seqeval", path), seqeval_scores(gold, predicted))
            require_equal(f"conlleval, {scheme}", score("seqeval", path, "--mode", "conlleval"),
                          conlleval_scores(gold, predicted))
            strict = score("seqeval", path, "--mode", "strict", "--scheme", scheme.lower())
            require_equal(f"strict, {scheme}", strict, seqeval_scores(gold, predicted, getattr(seqeval.scheme, scheme)))
            cases += 1
            try:
                detected = seqeval.scheme.auto_detect(gold)
            except ValueError:
                continue
            try:
                wanted = seqeval_scores(gold, predicted, detected)
            except ValueError:
                continue  # the predictions have prefixes that the gold tags do not have
            require_equal("strict, detected", score("seqeval", path, "--mode", "strict"), wanted)
    write_conll(path, [["O", "O"]], [["O", "O"]])
    require_equal("no spans", score("seqeval", path)["overall_f1"], 0)
    print(f"seqeval: {cases} generated taggings in 3 modes")


def check_real_tags(folder):
    for name in ["ground_truth.txt"]:
        path = folder / "ner_eval" / name
        sentences = [[line.split() for line in block.splitlines()] for block in path.read_text().split("\n\n")]
        gold = [[row[-2] for row in rows] for rows in sentences if rows]
        predicted = [[row[-1] for row in rows] for rows in sentences if rows]
        require_equal(name, score("seqeval", path), seqeval_scores(gold, predicted))
        require_equal(name, score("seqeval", path, "--mode", "conlleval"), conlleval_scores(gold, predicted))
        require_equal(name, score("seqeval", path, "--mode", "strict"),
                      seqeval_scores(gold, predicted, seqeval.scheme.auto_detect(gold)))
        print(f"seqeval: {name}, {len(gold)} sentences")


# --- SQuAD

def normalize(text):
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def f1_of(gold, predicted, empty_equals_empty):
    gold, predicted = normalize(gold).split(), normalize(predicted).split()
    if empty_equals_empty and not (gold and predicted):
        return int(gold == predicted)
    common = sum((collections.Counter(gold) & collections.Counter(predicted)).values())
    if common == 0:
        return 0
    precision, recall = common / len(predicted), common / len(gold)
    return 2 * precision * recall / (precision + recall)


def questions_of(data):
    return [qa for article in data["data"] for paragraph in article["paragraphs"] for qa in paragraph["qas"]]


def left_to_right(values):
    return functools.reduce(operator.add, values, 0)  # sum() of Python 3.12 and later compensates


def squad_v2(data, predictions, na_probs, threshold):
    answerable, raw = {}, {"exact": {}, "f1": {}}
    for qa in questions_of(data):
        name, predicted = qa["id"], predictions[qa["id"]]
        answerable[name] = bool(qa["answers"])
        gold = [answer["text"] for answer in qa["answers"] if normalize(answer["text"])] or [""]
        raw["exact"][name] = max(int(normalize(answer) == normalize(predicted)) for answer in gold)
        raw["f1"][name] = max(f1_of(answer, predicted, True) for answer in gold)
    probs = na_probs or dict.fromkeys(predictions, 0.0)
    final = {kind: {name: float(not answerable[name]) if probs[name] > threshold else value
                    for name, value in values.items()} for kind, values in raw.items()}
    result = {}
    for prefix, names in [("", list(answerable)), ("HasAns_", [n for n in answerable if answerable[n]]),
                          ("NoAns_", [n for n in answerable if not answerable[n]])]:
        if names:
            for kind in ["exact", "f1"]:
                result[prefix + kind] = 100.0 * left_to_right(final[kind][name] for name in names) / len(names)
            result[prefix + "total"] = len(names)
    for kind in ["exact", "f1"] if na_probs else []:
        best = now = sum(not value for value in answerable.values())
        best_threshold = 0.0
        for name in sorted(na_probs, key=na_probs.get):
            if name in answerable:
                now += raw[kind][name] if answerable[name] else -1 if predictions[name] else 0
                if now > best:
                    best, best_threshold = now, na_probs[name]
        result[f"best_{kind}"], result[f"best_{kind}_thresh"] = 100.0 * best / len(answerable), best_threshold
    return result


def squad_v1(data, predictions):
    exact = f1 = 0
    questions = questions_of(data)
    for qa in questions:
        if qa["id"] in predictions:
            predicted = predictions[qa["id"]]
            exact += max(normalize(answer["text"]) == normalize(predicted) for answer in qa["answers"])
            f1 += max(f1_of(answer["text"], predicted, False) for answer in qa["answers"])
    return {"exact_match": 100.0 * exact / len(questions), "f1": 100.0 * f1 / len(questions)}


PIECES = ("the a an The cat, dog's \u0130stanbul STRASSE stra\u00dfe \u039f\u0394\u039f\u03a3 \u03a3\u03a3 caf\u00e9 CAFE\u0301 10th 10.5 $3 "
          "na\u00efve\u00a0x _a_ a_b \u4e2d\u6587 a\u0301 the\u2014end \u00b2 \u2167 -- ... \ud83d\ude00 \u00bfan? An\u2028other theme \t").encode(
              "utf-16", "surrogatepass").decode("utf-16").split(" ")


def random_text(draw):
    return " ".join(draw.choices(PIECES, k=draw.choice([0, 1, 1, 2, 3, 5])))


def check_squad(folder):
    draw = random.Random(5)
    paths = data_path, predictions_path, odds_path = [folder / name for name in ["data.json", "predictions.json", "odds.json"]]
    for round in range(60):
        qas, predictions = [], {}
        for number in range(draw.randint(1, 40)):
            answers = [{"text": random_text(draw), "answer_start": 0} for _ in range(draw.choice([0, 1, 1, 3]))]
            if round % 3 == 0 and not answers:
                answers = [{"text": "the cat", "answer_start": 0}]
            if round % 6 == 1:
                answers = []
            qas.append({"id": f"q{number}", "question": "?", "answers": answers})
            predictions[f"q{number}"] = draw.choice([answer["text"] for answer in answers] + [random_text(draw), ""])
        odds = {name: draw.choice([0.0, 0.5, 1.0, 1.5, draw.uniform(-3, 3)]) for name in draw.sample(list(predictions), len(predictions))}
        data = {"version": "v2.0", "data": [{"title": "t", "paragraphs": [{"context": "c", "qas": qas}]}]}
        for path, content in zip(paths, [data, predictions, odds]):
            path.write_text(json.dumps(content, ensure_ascii=draw.random() < 0.5), encoding="utf-8")
        require_equal("squad 2.0", score("squad", data_path, predictions_path, "--version", "2.0"),
                      squad_v2(data, predictions, None, 1.0))
        by_questions = squad_v1(data, predictions) if all(qa["answers"] for qa in qas) else squad_v2(data, predictions, None, 1.0)
        require_equal("squad, by its questions", score("squad", data_path, predictions_path), by_questions)
        threshold = draw.choice([1.0, 0.25])
        require_equal("squad 2.0 with odds", score("squad", data_path, predictions_path, "--version", "2.0", "--na-prob", odds_path,
                                                   "--na-prob-thresh", threshold), squad_v2(data, predictions, odds, threshold))
        if all(qa["answers"] for qa in qas):
            data["version"] = "1.1"
            data_path.write_text(json.dumps(data))
            require_equal("squad 2.0 of 1.1", score("squad", data_path, predictions_path, "--version", "2.0"),
                          squad_v2(data, predictions, None, 1.0))
            predictions.popitem()
            predictions_path.write_text(json.dumps(predictions))
            require_equal("squad 1.1", score("squad", data_path, predictions_path), squad_v1(data, predictions))
    print("squad: 60 generated files")


def check_real_squad(folder, data_path):
    draw = random.Random(7)
    data = json.loads((data_path / "squad2/train_dev.json").read_text(encoding="utf-8"))
    predictions, odds = {}, {}
    for article in data["data"]:
        for paragraph in article["paragraphs"]:
            words = paragraph["context"].split(" ")
            for qa in paragraph["qas"]:
                begin = draw.randrange(len(words))
                texts = [" ".join(words[begin:begin + draw.randint(1, 6)]), ""] + [a["text"] for a in qa["answers"]] * 3
                predictions[qa["id"]] = draw.choice(texts)
                odds[qa["id"]] = draw.gauss(0, 2)
    (folder / "predictions.json").write_text(json.dumps(predictions))
    (folder / "odds.json").write_text(json.dumps(odds))
    require_equal("squad2", score("squad", data_path / "squad2/train_dev.json", folder / "predictions.json", "--na-prob",
                                  folder / "odds.json"), squad_v2(data, predictions, odds, 1.0))
    print(f"squad: {len(predictions)} questions of squad2")


# --- GLUE

def ranks(values):
    order = sorted(values)
    return [order.index(value) + (order.count(value) + 1) / 2 for value in values]


def glue_scores(metric, gold, predicted, classes):
    if metric == "accuracy":
        return float((gold == predicted).mean())
    if metric == "f1":
        true = ((gold == 1) & (predicted == 1)).sum()
        return float(2 * true / ((gold == 1).sum() + (predicted == 1).sum()))
    if metric == "matthews_correlation":
        g, p = numpy.bincount(gold, minlength=classes), numpy.bincount(predicted, minlength=classes)
        n, correct = len(gold), (gold == predicted).sum()
        return float((correct * n - g @ p) / numpy.sqrt(float(n**2 - g @ g) * float(n**2 - p @ p)))
    x, y = (gold, predicted) if metric == "pearson" else (ranks(list(gold)), ranks(list(predicted)))
    return float(numpy.corrcoef(x, y)[0, 1])


def check_glue(folder):
    draw = random.Random(11)
    tasks = {"cola": ["matthews_correlation"], "sst2": ["accuracy"], "mrpc": ["accuracy", "f1"], "qqp": ["accuracy", "f1"],
             "stsb": ["pearson", "spearmanr"], "mnli": ["accuracy"], "qnli": ["accuracy"], "rte": ["accuracy"], "wnli": ["accuracy"]}
    names = {"mnli": ["entailment", "neutral", "contradiction"], "qnli": ["entailment", "not_entailment"]}
    for task, metrics in tasks.items():
        classes = len(names.get(task, "01"))
        if task == "stsb":
            gold = numpy.array([draw.randint(0, 20) / 4 for _ in range(200)])
            predicted = gold + numpy.array([draw.gauss(0, 1) for _ in gold])
        else:
            gold = numpy.array([draw.randrange(classes) for _ in range(200)])
            predicted = numpy.where([draw.random() < 0.6 for _ in gold], gold, draw.choices(range(classes), k=200))
        words = names.get(task)
        (folder / "gold.tsv").write_text("index\tsentence\tlabel\n" + "".join(
            f"{i}\ta \"b\t{words[label] if words else label}\n" for i, label in enumerate(gold)))
        (folder / "predictions.txt").write_text("index\tprediction\n" + "".join(f"{i}\t{p}\n" for i, p in enumerate(predicted)))
        found = score("glue", task, folder / "gold.tsv", folder / "predictions.txt")
        wanted = {metric: glue_scores(metric, gold, predicted, classes) for metric in metrics}
        if len(metrics) > 1:
            wanted["combined_score"] = sum(wanted.values()) / len(wanted)
        if list(found) != list(wanted) or any(not math.isclose(found[key], wanted[key], rel_tol=1e-12) for key in wanted):
            require_equal(task, found, wanted)
    print(f"glue: {len(tasks)} tasks")


def main(stretto):
    global STRETTO
    STRETTO = stretto
    with tempfile.TemporaryDirectory(prefix="stretto-score-") as temporary:
        folder = pathlib.Path(temporary)
        check_taggings(folder)
        check_squad(folder)
        check_glue(folder)
        if os.environ.get("STRETTO_DATA"):
            real = pathlib.Path(os.environ["STRETTO_DATA"])
            check_real_tags(real)
            check_real_squad(folder, real)


if __name__ == "__main__":
    main(sys.argv[1])
