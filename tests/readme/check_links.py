#!/usr/bin/env python3
"""Checks what the pages of the documentation refer to.

    check_links.py ROOT

A relative link must lead to a file of the repository, and its fragment to a heading of that page. A source that a
page names in `backticks` must exist: relative to the page, the repository or stretto/, or, in a layer's README.md,
anywhere below its folder. CHANGELOG.md also names sources that are gone.
"""

import pathlib
import re
import sys

SOURCE = re.compile(r"`([\w./-]+/)?([\w-]+\.(?:h|cpp|py|sh|cmake))`")


def pages(root):
    yield from (page for page in sorted(root.glob("*.md")))
    for folder in ("docs", "stretto", "bench", "recipes", "tests", "examples", "deploy"):
        yield from sorted((root / folder).rglob("*.md"))


def without_code(text):
    """The lines of a page; those of fenced blocks are empty."""
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
            yield ""
        else:
            yield "" if fenced else line


def anchors(text):
    """The fragments by which GitHub names the headings of a page."""
    for line in without_code(text):
        if heading := re.match(r"#+ +(.*?) *#*$", line):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            yield re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def mistakes(root, page):
    for number, line in enumerate(without_code(page.read_text()), 1):
        where = f"{page.relative_to(root)}:{number}"
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, fragment = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists():
                yield f"{where}: the link {target} leads to no file"
            elif fragment and fragment not in anchors(file.read_text()):
                yield f"{where}: the link {target} leads to no heading of {file.relative_to(root)}"
        if page.name == "CHANGELOG.md":
            continue
        for folder, name in SOURCE.findall(line):
            bases = [page.parent, root, root / "stretto"]
            if folder and not any((base / folder / name).exists() for base in bases):
                yield f"{where}: there is no {folder}{name}"
            elif not folder and page.is_relative_to(root / "stretto") and not any(page.parent.rglob(name)):
                yield f"{where}: there is no {name} in {page.parent.relative_to(root)}"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    found = [mistake for page in pages(root) for mistake in mistakes(root, page)]
    print("\n".join(found) or "every link, heading and source that a page names exists")
    return 1 if found else 0


sys.exit(main())
