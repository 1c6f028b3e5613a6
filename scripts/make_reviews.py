#!/usr/bin/env python3
"""Writes short synthetic reviews with a sentiment label: the data of `make demo`.

    python3 scripts/make_reviews.py OUT_DIR [--rows 3000] [--seed 1]

Writes train.tsv, dev.tsv, test.tsv ("sentence<TAB>label" below a header, as in GLUE's SST-2; 1 = positive)
and a README.txt to OUT_DIR. Reviews of films, food and gadgets are generated from a grammar with a seed.
Counting good and bad words is not enough: negation inverts a word ("not a dull film"), and in a contrast the
last clause decides ("the plot is clumsy but the acting shines"). Some adjectives, verbs and nouns of dev.tsv
and test.tsv do not occur in train.tsv, so pre-training helps: a bag-of-words classifier reaches about 0.72, a
fine-tuned small BERT more than 0.95. The same arguments give the same bytes with Python 3.6 or later.
"""
import argparse
import os

# Each entry: words for all splits, then words for dev.tsv and test.tsv only.
TOPICS = {
    "film": {
        "noun": ("film movie drama comedy thriller", "documentary western musical sequel"),
        "aspect": ("plot acting dialogue pacing ending score", "script cast soundtrack cinematography"),
        "good": ("gripping witty touching suspenseful tender", "captivating heartfelt hilarious"),
        "bad": ("predictable plodding sentimental muddled long-winded", "incoherent contrived pretentious"),
    },
    "food": {
        "noun": ("meal dish lunch dinner snack", "breakfast supper feast buffet"),
        "aspect": ("soup bread sauce dessert salad fish", "curry steak broth pastry"),
        "good": ("tasty crisp juicy fragrant tender", "delicious mouthwatering flavorful"),
        "bad": ("greasy soggy burnt salty watery", "inedible disgusting tasteless"),
    },
    "gadget": {
        "noun": ("phone laptop tablet camera printer", "headset smartwatch router projector"),
        "aspect": ("screen battery keyboard speaker menu case", "touchpad charger microphone software"),
        "good": ("fast sturdy responsive handy quiet", "intuitive reliable durable"),
        "bad": ("slow flimsy laggy bulky noisy", "defective fragile useless"),
    },
}
COMMON = {
    "good": ("charming fresh lively stylish polished delightful elegant solid pleasant clever likable neat",
             "superb brilliant wonderful excellent impressive marvelous outstanding splendid"),
    "bad": ("dull bland clumsy tedious weak messy stale lifeless shallow annoying sloppy cheap tiresome",
            "awful dreadful horrible terrible mediocre disappointing lousy dismal"),
    "good verb": ("shines|delights|wins us over|holds up well", "impresses|exceeds all expectations"),
    "bad verb": ("fails|falls apart|drags us down|wears thin", "disappoints|ruins everything"),
}
INTENSIFIERS = ["", "", "", "very", "really", "truly", "quite", "rather", "utterly", "surprisingly"]
NEGATORS = ["not", "never", "hardly", "far from", "by no means", "anything but"]
NOUN_NEGATORS = ["not", "hardly", "by no means", "never"]
OPENERS = ["", "", "", "", "honestly ,", "in the end ,", "for the price ,", "to be fair ,",
           "on a second look ,", "i must say"]
CLOSERS = ["", "", "", "", "this time", "if you ask me", "all in all", "after all", "and that is that",
           "from start to finish"]
UNSEEN_SHARE = 0.25  # share of the words of dev and test that come from the held-out lists

SPLITS = ["train", "dev", "test"]
README = """Synthetic data: short reviews generated from a grammar (make_reviews.py --rows {rows} --seed {seed}).
They do not describe real films, meals or products. One review per line: sentence<TAB>label, label 1 = positive,
0 = negative, in equal numbers. Some words of dev.tsv and test.tsv do not occur in train.tsv.
"""


class Random:
    """SplitMix64 (Steele et al. 2014): the same numbers in every version of Python."""

    MASK = (1 << 64) - 1

    def __init__(self, seed):
        self.state = seed & self.MASK

    def below(self, limit):
        self.state = (self.state + 0x9E3779B97F4A7C15) & self.MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & self.MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & self.MASK
        return ((z ^ (z >> 31)) * limit) >> 64

    def chance(self, probability):
        return self.below(1 << 30) < probability * (1 << 30)

    def choice(self, items):
        return items[self.below(len(items))]

    def shuffle(self, items):
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]


def words(entry):
    return entry.split("|") if "|" in entry else entry.split()


def join(*parts):
    return " ".join(part for part in parts if part)


def with_article(phrase):
    return ("an " if phrase[0] in "aeiou" else "a ") + phrase


class Grammar:
    """Reviews of one topic. `good` says which way a phrase points."""

    def __init__(self, random, unseen_share):
        self.random = random
        self.unseen_share = unseen_share
        self.topic = TOPICS[random.choice(sorted(TOPICS))]

    def pick(self, entry):
        seen, unseen = entry
        return self.random.choice(words(unseen if self.random.chance(self.unseen_share) else seen))

    def adjective(self, good):
        kind = "good" if good else "bad"
        return self.pick(self.random.choice([self.topic, COMMON])[kind])

    def subject(self):
        kind = "aspect" if self.random.chance(0.75) else "noun"
        return "the " + self.pick(self.topic[kind])

    def plain_clause(self, good):
        if self.random.chance(0.25):
            return join(self.subject(), self.pick(COMMON["good verb" if good else "bad verb"]))
        return join(self.subject(), "is", self.random.choice(INTENSIFIERS), self.adjective(good))

    def negated_clause(self, good):
        intensifier = self.random.choice(["", "", "very", "really", "that"])
        negator = self.random.choice(NEGATORS)
        if negator not in ("not", "never"):
            intensifier = ""
        return join(self.subject(), "is", negator, intensifier, self.adjective(not good))

    def clause(self, good):
        return self.negated_clause(good) if self.random.chance(0.2) else self.plain_clause(good)

    def noun_phrase(self, good):
        if self.random.chance(0.25):
            return join(self.random.choice(NOUN_NEGATORS),
                        with_article(join(self.adjective(not good), self.pick(self.topic["noun"]))))
        return with_article(join(self.random.choice(INTENSIFIERS), self.adjective(good),
                                 self.pick(self.topic["noun"])))

    def contrast(self, good):
        form = self.random.below(5)
        if form == 0:
            return join("although", self.clause(not good), ",", self.clause(good))
        if form == 1:
            return join("despite the", self.adjective(not good), self.pick(self.topic["aspect"]), ",",
                        self.clause(good))
        if form == 2:
            expected = join(self.adjective(not good), self.pick(self.topic["noun"]))
            return join("we expected", with_article(expected), ", but", self.clause(good))
        return join(self.clause(not good), self.random.choice(["but", ", yet", ", but in the end"]),
                    self.clause(good))

    def review(self, good):
        form = self.random.below(20)
        if form < 5:
            body = self.noun_phrase(good)
        elif form < 13:
            body = self.clause(good)
        elif form < 16:
            body = join(self.plain_clause(good), "and", self.plain_clause(good))
        else:
            body = self.contrast(good)
        return join(self.random.choice(OPENERS), body, self.random.choice(CLOSERS), ".")


def make_split(random, rows, unseen_share, used):
    """Rows (sentence, label), as many of one label as of the other; adds the sentences to `used`."""
    split = []
    for row in range(rows):
        label = row % 2
        for _ in range(1000):
            sentence = Grammar(random, unseen_share).review(good=label == 1)
            if sentence not in used:
                break
        else:
            raise SystemExit("make_reviews.py: the grammar has too few sentences for --rows; ask for fewer")
        used.add(sentence)
        split.append((sentence, label))
    random.shuffle(split)
    return split


def write(path, text):
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)


def main():
    parser = argparse.ArgumentParser(description="Writes synthetic reviews: train.tsv, dev.tsv and test.tsv.")
    parser.add_argument("out_dir")
    parser.add_argument("--rows", type=int, default=3000,
                        help="rows of train.tsv; dev.tsv and test.tsv have a sixth")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.rows < 12:
        parser.error("--rows {}: at least 12 are needed".format(args.rows))

    os.makedirs(args.out_dir, exist_ok=True)
    used = set()
    for number, name in enumerate(SPLITS):
        rows = args.rows if name == "train" else args.rows // 6
        unseen_share = 0 if name == "train" else UNSEEN_SHARE
        split = make_split(Random(args.seed * len(SPLITS) + number), rows, unseen_share, used)
        write(os.path.join(args.out_dir, name + ".tsv"),
              "sentence\tlabel\n" + "".join("{}\t{}\n".format(*row) for row in split))
    write(os.path.join(args.out_dir, "README.txt"), README.format(rows=args.rows, seed=args.seed))


if __name__ == "__main__":
    main()
