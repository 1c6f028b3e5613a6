#!/usr/bin/env python3
"""Runs the shell blocks of a page (README.md, a guide) that are marked as tests, in order.

A marked block is a ```sh fence after a comment line <!-- test: name -->. A ```text fence after <!-- output: name -->
must be the output of that block. All blocks of a page share a new empty folder, so a
block can use the files of earlier ones. `stretto` is on PATH, STRETTO_ROOT is the repository, STRETTO_BUILD the build folder,
STRETTO_DATA is unset, and STRETTO_ENCODER is a tiny encoder with random weights in place of the pre-trained one: commands run
as shown, but their results are meaningless. Ends with 1 if a block fails, with 77 (skipped) if there is no page or no marked
block.
"""

import argparse
import dataclasses
import difflib
import os
import pathlib
import re
import shutil
import string
import subprocess
import sys
import tempfile

SKIPPED = 77
MARK = re.compile(r"\s*<!--\s*(test|output):\s*(\S+)\s*-->\s*$")
TIMEOUT_SECONDS = 300


@dataclasses.dataclass
class Block:
    name: str
    line: int  # of the block's first command
    script: str
    output: str = None  # None: any


def fence(lines, index, kind, mark, file):
    """The first line and the text of the ```kind fence that follows a mark."""
    begin = index + 1
    while begin < len(lines) and not lines[begin].strip():
        begin += 1
    if begin == len(lines) or lines[begin].strip() != f"```{kind}":
        raise ValueError(f'{file}:{index + 1}: the mark "{mark}" is not followed by a ```{kind} block')
    end = next((i for i in range(begin + 1, len(lines)) if lines[i].strip() == "```"), None)
    if end is None:
        raise ValueError(f"{file}:{begin + 1}: this ```{kind} block has no end")
    return begin + 2, "\n".join(lines[begin + 1:end]) + "\n"


def marked_blocks(text, file):
    """The marked blocks of a markdown text; ValueError if a mark has no ```sh block or a name is used twice."""
    lines = text.splitlines()
    blocks = []
    for index, line in enumerate(lines):
        match = MARK.match(line)
        if not match:
            continue
        what, name = match.groups()
        line, content = fence(lines, index, "sh" if what == "test" else "text", name, file)
        named = [block for block in blocks if block.name == name]
        if what == "output":
            if not named or named[0].output is not None:
                raise ValueError(f'{file}:{index + 1}: there is no block "{name}" before this output, or it has one')
            named[0].output = content
            continue
        if named:
            raise ValueError(f'{file}:{index + 1}: the mark "{name}" is used twice')
        blocks.append(Block(name, line, content))
    return blocks


def make_encoder(root, folder):
    """Writes an encoder in Hugging Face layout to `folder`: committed random weights, and letters as vocabulary."""
    golden = root / "tests/golden/bert/old_names"
    folder.mkdir()
    for name in ["config.json", "model.safetensors"]:
        shutil.copy(golden / name, folder / name)
    letters = string.ascii_lowercase
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "?", ".", ","]
    vocabulary += list(letters) + ["##" + letter for letter in letters]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")


def run_block(block, folder, environment):
    """Exit status and complete output of a block."""
    try:
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.script], cwd=folder, env=environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired as expired:
        return 124, (expired.stdout or b"").decode(errors="replace") + f"\nstill running after {TIMEOUT_SECONDS} s\n"
    return done.returncode, done.stdout


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("readme", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="the folder of the program stretto")
    parser.add_argument("--root", type=pathlib.Path, required=True, help="the repository")
    options = parser.parse_args(arguments)

    if not options.readme.exists():
        print(f"Skipped: there is no {options.readme.name}")
        return SKIPPED
    try:
        blocks = marked_blocks(options.readme.read_text(), options.readme.name)
    except ValueError as error:
        print(error)
        return 1
    if not blocks:
        print(f"Skipped: {options.readme.name} has no block marked <!-- test: name -->")
        return SKIPPED

    with tempfile.TemporaryDirectory(prefix="stretto-readme-") as temporary:
        folder, encoder = pathlib.Path(temporary) / "here", pathlib.Path(temporary) / "encoder"
        folder.mkdir()
        make_encoder(options.root, encoder)
        environment = dict(os.environ, STRETTO_ROOT=str(options.root.resolve()), STRETTO_ENCODER=str(encoder),
                           STRETTO_BUILD=str(options.bin.resolve().parent),
                           PATH=f"{options.bin.resolve()}{os.pathsep}{os.environ['PATH']}")
        environment.pop("STRETTO_DATA", None)
        for block in blocks:
            status, output = run_block(block, folder, environment)
            if status != 0:
                print(f'{options.readme.name}:{block.line}: block "{block.name}" ended with {status}:\n{block.script}\n'
                      f"its output:\n{output}")
                return 1
            if block.output is not None and output != block.output:
                difference = difflib.unified_diff(block.output.splitlines(), output.splitlines(), "the page", "the output", lineterm="")
                print(f'{options.readme.name}:{block.line}: block "{block.name}" has another output:', *difference, sep="\n")
                return 1
            print(f'{options.readme.name}:{block.line}: block "{block.name}" passed')
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
