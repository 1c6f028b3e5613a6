#!/usr/bin/env python3
"""Checks that every row of the tables in docs/migrating.md names tests that exist.

    check_migrating.py ROOT

The last column of a row lists names of GoogleTest tests ("LoopTest.StopsAtThresholds", further tests of the same suite without it),
of whole suites ("MaskTokens"), files below tests/, or links.
"""

import pathlib
import re
import sys


def tests_of(root):
    """Suite -> names of its tests."""
    suites = {}
    for folder in ("stretto", "tests"):
        for source in (root / folder).rglob("*.cpp"):
            text = source.read_text(errors="replace")
            for suite, name in re.findall(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", text, re.MULTILINE):
                suites.setdefault(suite, set()).add(name)
    return suites


def mistakes(root, page, suites):
    rows = 0
    for number, line in enumerate(page.splitlines(), 1):
        if not line.startswith("|") or re.match(r"^\|[-| ]+\|$", line) or line.rstrip().endswith("| test |"):
            continue
        rows += 1
        cell = line.rstrip().rstrip("|").rsplit("|", 1)[1]
        named = [word.strip() for word in re.sub(r"\(\[[^)]*\)\)", "", cell).split(",") if word.strip()]
        if not named:
            yield f"docs/migrating.md:{number}: the row names no test"
        suite = ""
        for name in named:
            if name.startswith(("tests/", "stretto/")):
                if not (root / name).exists():
                    yield f"docs/migrating.md:{number}: there is no {name}"
                continue
            suite, _, test = name.rpartition(".") if "." in name else ("", "", name) if name in suites else (suite, "", name)
            if not suite and test in suites:
                suite = test
            elif test not in suites.get(suite, ()):
                yield f"docs/migrating.md:{number}: there is no test {name}" + (f" in {suite}" if suite else "")
    if rows < 20:
        yield f"docs/migrating.md: {rows} rows found; expected more: has the layout of its tables changed?"


def main():
    root = pathlib.Path(sys.argv[1])
    found = list(mistakes(root, (root / "docs" / "migrating.md").read_text(), tests_of(root)))
    print("\n".join(found) or "every row names tests that exist")
    return 1 if found else 0


sys.exit(main())
