"""Question answering with transformers and torch.optim in one process, like recipes/qa.yaml and as run_qa.py does; prints speeds as JSON.

With --train: questions/s of building training samples (windows that share doc_stride, and the answer's first and last token of each), and
samples/s of fine-tuning in batches padded to the longest of each, of similar lengths unless --any-lengths.
With --dev, and a fine-tuned model as --encoder: questions/s from the questions to answers and their F1, in batches of windows sorted by
length, with --any-lengths as run_qa.py does; with --output the answers are written there instead, as JSON lines. Under torchrun, training is distributed by DDP.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import string
import sys
import time

rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
if ranks > 1:
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank]})

import torch  # after pinning, so that its threads inherit it
from transformers import AutoConfig, AutoModelForQuestionAnswering, AutoTokenizer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import fine_tuning
import windows

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--train", help="a file in SQuAD's layout")
parser.add_argument("--dev", help="a file in SQuAD's layout")
parser.add_argument("--output")
parser.add_argument("--encoder", required=True)
parser.add_argument("--config", help="a config.json: random weights of that shape instead of the encoder's")
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--max-length", type=int, default=384)
parser.add_argument("--doc-stride", type=int, default=128)
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
parser.add_argument("--any-lengths", action="store_true", help="batches of random samples, not of similar lengths")
arguments = parser.parse_args()

torch.set_num_threads(1)
random.seed(1)
tokenizer = AutoTokenizer.from_pretrained(arguments.encoder)
if arguments.config:
    with open(arguments.config, encoding="utf-8") as file:
        model = AutoModelForQuestionAnswering.from_config(AutoConfig.for_model(**json.load(file)))
else:
    model = AutoModelForQuestionAnswering.from_pretrained(arguments.encoder)
questions = windows.read_questions(arguments.train or arguments.dev)


def build(**kind):
    return windows.windows_of(questions, tokenizer, arguments.max_length, arguments.doc_stride, **kind)


def lengths(samples):
    return [len(window["input_ids"]) for window in samples]


def train():
    start = time.perf_counter()
    samples = build(evaluate=False)
    building = len(questions) / (time.perf_counter() - start)
    stepper, speed = fine_tuning.Stepper(model.train(), 1e-4, 1000, 0.1, arguments.precision), fine_tuning.Speed()
    net = model
    if ranks > 1:
        torch.distributed.init_process_group("gloo")
        net = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    for step, batch in enumerate(fine_tuning.batches_of(lengths(samples), arguments.batch_size * ranks, not arguments.any_lengths)):
        part = [samples[i] for i in batch[rank::ranks]]
        targets = {f"{name}_positions": torch.tensor([window[name] for window in part]) for name in ("start", "end")}
        stepper.step(lambda: net(**windows.batch_of(part), **targets).loss)
        speed.count(len(batch))
        if step == arguments.steps:
            break
    return {"questions": len(questions), "samples": len(samples), "questions_per_second": round(building, 1),
            "samples_per_second": speed.per_second()}


def best_answer(window, starts, ends):
    """(score, begin, end in the context) of the best of 20 starts times 20 ends, or of none as (-inf, 0, 0)."""
    best, offsets = (float("-inf"), 0, 0), window["offsets"]
    for first in starts.argsort()[:-21:-1]:
        for last in ends.argsort()[:-21:-1]:
            if offsets[first] and offsets[last] and first <= last < first + 30:
                best = max(best, (float(starts[first] + ends[last]), offsets[first][0], offsets[last][1]))
    return best


def answers():
    """The text and the score of the best answer to each question; \"\" where that of [CLS] is higher."""
    samples, best, null = build(train=False), {}, {}
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=arguments.precision == "bf16"):
        for batch in fine_tuning.evaluation_batches(lengths(samples), 32, not arguments.any_lengths):
            part = [samples[i] for i in batch]
            output = model(**windows.batch_of(part))
            starts, ends = output.start_logits.float().numpy(), output.end_logits.float().numpy()
            for row, window in enumerate(part):
                length, question = len(window["input_ids"]), window["question"]
                best[question] = max(best.get(question, (float("-inf"), 0, 0)), best_answer(window, starts[row][:length], ends[row][:length]))
                null[question] = min(null.get(question, float("inf")), float(starts[row][0] + ends[row][0]))
    return [("" if null[i] > best[i][0] else questions[i][2][best[i][1]:best[i][2]], best[i][0]) for i in range(len(questions))]


def normal(text):
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def f1(answer, gold):
    found, right = normal(answer), normal(gold)
    if not found or not right:
        return float(found == right)
    same = sum((collections.Counter(found) & collections.Counter(right)).values())
    return 2 * same / (len(found) + len(right))


def evaluate():
    model.eval()
    start = time.perf_counter()
    found, result = answers(), {}
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            for (_, question, _, _), (answer, score) in zip(questions, found):
                file.write(json.dumps({"question": question, "score": score, "answer": answer}) + "\n")
    else:
        result["f1"] = 100 * sum(max(f1(answer, gold["text"]) for gold in golds or [{"text": ""}])
                                 for (answer, _), (_, _, _, golds) in zip(found, questions)) / len(questions)
    return {**result, "questions_per_second": round(len(questions) / (time.perf_counter() - start), 2)}


result = train() if arguments.train else evaluate()
if rank == 0:
    print(json.dumps(result))
if ranks > 1:
    torch.distributed.destroy_process_group()
