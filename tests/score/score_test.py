#!/usr/bin/env python3
"""`stretto score` prints the reference tools' numbers, to the last bit.

    score_test.py STRETTO PYTHON...

Runs compare.py with the first PYTHON that has seqeval and numpy; ends with 77 (skipped) if none has.
"""

import pathlib
import subprocess
import sys

SKIPPED = 77
COMPARE = pathlib.Path(__file__).with_name("compare.py")


def has_packages(python):
    # seqeval needs scikit-learn only for the type of one warning, so it is optional.
    check = "import importlib.util, numpy, sys; sys.exit(importlib.util.find_spec('seqeval') is None)"
    try:
        return subprocess.run([python, "-c", check], stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def main(stretto, candidates):
    for python in candidates:
        if has_packages(python):
            return subprocess.run([python, COMPARE, stretto]).returncode
    print("Skipped: no Python with seqeval and numpy (looked for " + ", ".join(candidates) + ")")
    return SKIPPED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
