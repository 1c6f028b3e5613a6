#!/usr/bin/env python3
"""Writes short synthetic sentences with named entities, and questions about them: small data for the tasks
token-classification and question-answering.

    python3 scripts/make_entities.py OUT_DIR [--rows 600] [--seed 1]

Writes to OUT_DIR, each as train, dev and test (dev and test have a sixth of the rows):
    *.conll   a word and its tag (IOB2: PER, LOC, ORG) per line, a blank line behind each sentence
    *.jsonl   the same as {"tokens": [...], "ner_tags": [...]} per line, as Hugging Face's run_ner reads
    *.json    questions in the layout of SQuAD 2.0; a third of them have no answer
Sentences are generated from a grammar with a seed. Some names of dev and test do not occur in train. The same arguments give the
same bytes with Python 3.6 or later.
"""
import argparse
import json
import os

from make_reviews import Random, write

# Names for all splits, then names for dev and test only.
FIRST = "anna paul maria john elena peter".split(), "clara hugo".split()
LAST = "berger stone rossi novak lindt moreau".split(), "hansen okoro".split()
LOC = "paris|new york|vienna|cape town|lima|san marino".split("|"), "oslo|buenos aires".split("|")
ORG = "acme|blue river bank|orion labs|city theatre|nordwind".split("|"), "delta works|halcyon".split("|")
FORMS = [
    "{per} works for {org} in {loc} .",
    "yesterday {per} flew from {loc} to {loc2} .",
    "{org} , founded by {per} , opened an office in {loc} .",
    "the mayor of {loc} met {per} .",
    "{per} and {per2} live in {loc} .",
    "shares of {org} fell , said {per} .",
    "it rained in {loc} all day .",
    "nobody knew why .",
]
# The form's number, the question, and what answers it.
QUESTIONS = [
    (0, "who does {per} work for ?", "org"),
    (0, "where does {per} work ?", "loc"),
    (1, "where did {per} fly to ?", "loc2"),
    (2, "who founded {org} ?", "per"),
    (3, "who met the mayor of {loc} ?", "per"),
    (4, "where does {per} live ?", "loc"),
    (5, "whose shares fell ?", "org"),
    (6, "where did it rain ?", "loc"),
]


class Names:
    """The names of one sentence."""

    def __init__(self, random, unseen):
        self.random, self.unseen = random, unseen
        self.by_slot = {"per": self.person(), "per2": self.person(), "loc": self.pick(LOC), "loc2": self.pick(LOC),
                        "org": self.pick(ORG)}

    def pick(self, names):
        return self.random.choice(names[1] if self.random.chance(self.unseen) else names[0])

    def person(self):
        first, last = self.pick(FIRST), self.pick(LAST)
        return first if self.random.chance(0.3) else first + " " + last


def sentence(form, names):
    """Words and their tags."""
    tokens, tags = [], []
    for part in form.split():
        if part.startswith("{"):
            slot = part[1:-1]
            name = names.by_slot[slot].split()
            kind = slot.rstrip("2").upper()
            tokens += name
            tags += ["B-" + kind] + ["I-" + kind] * (len(name) - 1)
        else:
            tokens.append(part)
            tags.append("O")
    return tokens, tags


def question(random, unseen, number):
    """One paragraph of a few sentences with one question."""
    form, text, answer = random.choice(QUESTIONS)
    asked = Names(random, unseen)
    sentences = [" ".join(sentence(FORMS[form], asked)[0])]
    # Other sentences must not answer it too.
    others = [index for index in range(len(FORMS)) if index != form]
    for _ in range(random.below(4)):
        sentences.append(" ".join(sentence(FORMS[random.choice(others)], Names(random, unseen))[0]))
    target = sentences[0]
    random.shuffle(sentences)
    impossible = random.chance(1 / 3)
    if impossible:
        sentences.remove(target)
        sentences = sentences or ["nobody knew why ."]
    context = " ".join(sentences)
    answers = []
    if not impossible:
        wanted = asked.by_slot[answer]
        inside = target.rindex(wanted) if answer == "loc2" else target.index(wanted)
        answers = [{"text": wanted, "answer_start": context.index(target) + inside}]
    return {"context": context, "qas": [{"id": "q{}".format(number), "question": text.format(**asked.by_slot),
                                         "answers": answers, "is_impossible": impossible}]}


def main():
    parser = argparse.ArgumentParser(description="Writes synthetic sentences with entities, and questions about them.")
    parser.add_argument("out_dir")
    parser.add_argument("--rows", type=int, default=600, help="sentences and questions of train; dev and test have a sixth")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.rows < 12:
        parser.error("--rows {}: at least 12 are needed".format(args.rows))
    os.makedirs(args.out_dir, exist_ok=True)
    for number, split in enumerate(["train", "dev", "test"]):
        rows, unseen = (args.rows, 0) if split == "train" else (args.rows // 6, 0.25)
        random = Random(args.seed * 3 + number)
        tagged = [sentence(random.choice(FORMS), Names(random, unseen)) for _ in range(rows)]
        path = os.path.join(args.out_dir, split)
        write(path + ".conll", "\n".join("".join("{} {}\n".format(*row) for row in zip(*pair)) for pair in tagged))
        write(path + ".jsonl", "".join(json.dumps({"tokens": tokens, "ner_tags": tags}) + "\n" for tokens, tags in tagged))
        paragraphs = [question(random, unseen, index) for index in range(rows)]
        write(path + ".json", json.dumps({"version": "v2.0", "data": [{"title": split, "paragraphs": paragraphs}]}) + "\n")


if __name__ == "__main__":
    main()
