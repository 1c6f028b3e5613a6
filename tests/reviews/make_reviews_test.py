"""make_reviews_test.py SCRIPT: the properties of the data that scripts/make_reviews.py writes."""
import collections
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import unittest

SCRIPT = sys.argv.pop() if len(sys.argv) > 1 else None
SPLITS = ("train", "dev", "test")
DEFAULT_SHA256 = "89ba39c4d168fa6c70368b45c918d2a444e3b36ba50c4685fe8f78941b558168"


def generate(folder, *arguments):
    subprocess.run([sys.executable, SCRIPT, folder, *arguments], check=True)
    splits = {}
    for name in SPLITS:
        with open(os.path.join(folder, name + ".tsv"), encoding="utf-8", newline="") as file:
            splits[name] = file.read()
    return splits


def rows(text):
    header, *lines = text.split("\n")[:-1]
    assert header == "sentence\tlabel", header
    return [tuple(line.split("\t")) for line in lines]


class MakeReviews(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.splits = generate(os.path.join(cls.folder.name, "a"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_same_bytes_each_time_and_with_any_python(self):
        again = generate(os.path.join(self.folder.name, "b"))
        self.assertEqual(again, self.splits)
        content = "".join(again[name] for name in SPLITS).encode()
        self.assertEqual(hashlib.sha256(content).hexdigest(), DEFAULT_SHA256)

    def test_the_seed_counts(self):
        other = generate(os.path.join(self.folder.name, "c"), "--rows", "600", "--seed", "2")
        self.assertEqual([len(rows(other[name])) for name in SPLITS], [600, 100, 100])
        common = set(rows(other["train"])) & set(rows(self.splits["train"]))
        self.assertLess(len(common), 60)

    def test_sizes_and_balance(self):
        for name, size in (("train", 3000), ("dev", 500), ("test", 500)):
            labels = collections.Counter(label for _, label in rows(self.splits[name]))
            self.assertEqual(labels, {"0": size // 2, "1": size // 2}, name)

    def test_no_sentence_twice(self):
        sentences = [sentence for name in SPLITS for sentence, _ in rows(self.splits[name])]
        self.assertEqual(len(sentences), len(set(sentences)))

    def test_held_out_words(self):
        words = {name: {word for sentence, _ in rows(self.splits[name]) for word in sentence.split()}
                 for name in SPLITS}
        for name in ("dev", "test"):
            self.assertGreater(len(words[name] - words["train"]), 30, name)
        for word in ("brilliant", "awful", "soundtrack", "impresses"):
            self.assertNotIn(word, words["train"])
            self.assertIn(word, words["dev"] | words["test"])

    def labels_of(self, pattern):
        train = [row for row in rows(self.splits["train"]) if re.search(pattern, row[0])]
        self.assertGreater(len(train), 10, pattern)
        return {label for _, label in train}

    def test_the_last_clause_decides(self):
        self.assertEqual(self.labels_of(r"(but|yet|although) .* (shines|delights|holds up well) \.$"), {"1"})
        self.assertEqual(self.labels_of(r"(but|yet|although) .* (fails|falls apart|wears thin) \.$"), {"0"})

    def test_negation_inverts_a_word(self):
        self.assertEqual(self.labels_of(r"(not|hardly|never) an? (dull|bland|tedious|weak|messy) "), {"1"})
        self.assertEqual(self.labels_of(r"(not|hardly|never) an? (fresh|lively|clever|neat|solid) "), {"0"})

    def test_it_states_that_it_is_synthetic(self):
        with open(os.path.join(self.folder.name, "a", "README.txt"), encoding="utf-8") as file:
            self.assertIn("Synthetic", file.read())

    def test_too_few_rows_are_refused(self):
        run = subprocess.run([sys.executable, SCRIPT, self.folder.name, "--rows", "5"],
                             stderr=subprocess.PIPE)
        self.assertEqual(run.returncode, 2)
        self.assertIn(b"--rows 5: at least 12 are needed", run.stderr)


if __name__ == "__main__":
    unittest.main()
