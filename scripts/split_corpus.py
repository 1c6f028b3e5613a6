#!/usr/bin/env python3
"""Divides a CoNLL file of documents without a split into train, dev and test files.

    split_corpus.py FILE FOLDER

Documents begin at lines with -DOCSTART-. Of each five, in the order of the file, the first three are training data, the fourth is dev and
the fifth test: FOLDER/{train,dev,test}.txt. Prints the sentences and words of each.
"""
import pathlib
import sys


def is_marker(line):
    return line.startswith("-DOCSTART-")


def documents_of(text):
    documents = [[]]
    for line in text.splitlines():
        if is_marker(line) and documents[-1]:
            documents.append([])
        documents[-1].append(line)
    return [document for document in documents if any(line.strip() and not is_marker(line) for line in document)]


def counts(lines):
    words = [bool(line.strip()) and not is_marker(line) for line in lines]
    return sum(word and not before for word, before in zip(words, [False, *words])), sum(words)


def main(file, folder):
    documents = documents_of(pathlib.Path(file).read_text(encoding="utf-8"))
    if len(documents) < 5:
        sys.exit(f"{file}: found {len(documents)} documents between -DOCSTART- lines; expected at least 5")
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    for name, places in (("train", (0, 1, 2)), ("dev", (3,)), ("test", (4,))):
        lines = [line for i, document in enumerate(documents) if i % 5 in places for line in document]
        pathlib.Path(folder, f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print("{}: {} sentences, {} words".format(name, *counts(lines)))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
