#!/usr/bin/env python3
"""Checks that transformers gives equal results for what other tests wrote: model folders, logits, predictions of pipelines.

    transformers_test.py FOLDER PYTHON...

FOLDER contains the folders of classification_test.py, folders_test.py, language_models_test.py, questions_test.py and
tokens_test.py. Runs compare.py, one process for all, as importing transformers takes longer than comparing, with the first
PYTHON that has torch and transformers. Ends with 77 (skipped) if none has.
"""

import pathlib
import subprocess
import sys

SKIPPED = 77
HAS_THEM = "import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, ['torch', 'transformers'])))"


def has_transformers(python):
    try:
        return subprocess.run([python, "-c", HAS_THEM]).returncode == 0
    except OSError:
        return False


def main(folder, candidates):
    for python in candidates:
        if has_transformers(python):
            return subprocess.run([python, pathlib.Path(__file__).with_name("compare.py"), folder]).returncode
    print("Skipped: no Python with torch and transformers (looked for " + ", ".join(candidates) + ")")
    return SKIPPED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
