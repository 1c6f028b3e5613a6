#!/usr/bin/env python3
"""Checks that the C++ snippets of a page are parts of files that are compiled.

    check_snippets.py ROOT

A snippet is a ```cpp fence after a line <!-- from: FILE -->. Its lines are consecutive lines of FILE, apart from indentation and
empty lines; a line "..." stands for any lines. A page with one such mark marks each of its C++ snippets.
"""

import pathlib
import re
import sys

MARK = re.compile(r"<!--\s*from:\s*(\S+)\s*-->$")


def stripped(lines):
    return [line.strip() for line in lines if line.strip()]


def follows(lines, part, begin):
    """The index after the first place at or after `begin` where the part's lines are consecutive; None: there is none."""
    for index in range(begin, len(lines) - len(part) + 1):
        if lines[index:index + len(part)] == part:
            return index + len(part)
    return None


def missing_line(source, snippet):
    """The first line of the first part of a snippet that its source does not contain, in order; None: it has all."""
    lines, begin, part = stripped(source), 0, []
    for line in stripped(snippet) + ["..."]:
        if line != "...":
            part.append(line)
            continue
        begin = follows(lines, part, begin)
        if begin is None:
            return part[0]
        part = []
    return None


def mistakes(root, name, text):
    lines = text.splitlines()
    marks = any(MARK.match(line.strip()) for line in lines)
    for index, line in enumerate(lines):
        if line.strip() != "```cpp" or not marks:
            continue
        place = f"{name}:{index + 1}"
        mark = MARK.match(lines[index - 1].strip())
        if not mark:
            yield f"{place}: this snippet has no <!-- from: FILE -->, unlike others of the page"
            continue
        if not (root / mark[1]).is_file():
            yield f"{place}: there is no {mark[1]}"
            continue
        end = lines.index("```", index)
        missing = missing_line((root / mark[1]).read_text().splitlines(), lines[index + 1:end])
        if missing is not None:
            yield f'{place}: {mark[1]} does not contain the lines from "{missing}"'


def main():
    root = pathlib.Path(sys.argv[1])
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    found = [mistake for page in pages for mistake in mistakes(root, str(page.relative_to(root)), page.read_text())]
    print("\n".join(found) or "every marked snippet is part of its file")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
