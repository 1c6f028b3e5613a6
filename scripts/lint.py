#!/usr/bin/env python3
"""lint.py BUILD [--since REVISION | FILE...]: clang-tidy on the project's sources, as many processes at a time as JOBS says (default:
all cores).

BUILD is a unity build: libtorch's headers, which take most of the time, are read once per target. Given files, sources or headers,
only the translation units that include them are read, and only findings in these files are reported. --since takes the files
that differ from REVISION; --since "" from the last release: the newest tag before the current commit, or, in a clone without tags,
the commit that began the current version.
"""

import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("stretto", "tests", "examples", "bench")
TIDY = pathlib.Path(os.environ.get("STRETTO_DEPS") or ROOT / ".deps") / "venv/bin/clang-tidy"
# Sources are included files in a unity build.
ARGUMENTS = ["--quiet", "--checks=-bugprone-suspicious-include", "--extra-arg=-Wno-deprecated-declarations",
             "--extra-arg=-Wno-deprecated-literal-operator", "--extra-arg=-Wno-unused-value",
             "--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-unused-command-line-argument"]


def git(*arguments):
    """Lines that git prints; None if it fails."""
    done = subprocess.run(["git", "-C", ROOT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else None


def last_release():
    """The revision to compare with; None if the history that git knows does not reach it."""
    tag = git("describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^")
    begun = tag or git("log", "-1", "--format=%h", "-G", r"^project\(stretto VERSION", "HEAD", "--", "CMakeLists.txt")
    return begun[0] if begun and git("rev-parse", "--verify", "--quiet", f"{begun[0]}^") else None


def changed_files(revision):
    """Files that differ from a revision in more than their names, and those that git does not know yet. None: all."""
    revision = revision or last_release()
    if revision is None:
        print("lint: the history ends before the last release (git fetch --tags --unshallow completes a shallow clone); "
              "all files are linted")
        return None
    rows = git("diff", "-M", "--name-status", "--diff-filter=d", revision, "--")
    if rows is None:
        sys.exit(f"lint: {revision!r} is not a revision of this repository")
    kinds_and_paths = [row.split("\t") for row in rows]
    files = [paths[-1] for kind, *paths in kinds_and_paths if kind not in ("R100", "C100")]
    files += git("ls-files", "--others", "--exclude-standard")
    files = sorted(file for file in files if file.startswith(FOLDERS) and file.endswith((".cpp", ".h")))
    print(f"lint: {len(files)} sources and headers differ from {revision}")
    return files


def translation_units(build):
    """Those that are compiled, without the ones that only contain precompiled headers."""
    commands = json.loads((build / "compile_commands.json").read_text())
    return sorted({pathlib.Path(entry["file"]) for entry in commands if "_pch.dir/" not in entry["file"]})


@functools.cache
def included(path):
    """The project's files that a file includes."""
    names = re.findall(r'^#include "(.+)"', path.read_text(), re.MULTILINE)
    return {ROOT / name for name in names if (ROOT / name).is_file()}


def reached(unit):
    """The project's files that a translation unit reads, itself included."""
    seen, ahead = set(), [unit]
    while ahead:
        path = ahead.pop()
        if path not in seen:
            seen.add(path)
            ahead += included(path)
    return seen


def units_with(files, units):
    """A few units that together read all files. Sources come first: the units of most headers are chosen with theirs."""
    contents = {unit: reached(unit) for unit in units}
    chosen, read = [], set()
    for path in sorted(files, key=lambda path: path.suffix == ".h"):
        if path in read:
            continue
        candidates = [unit for unit in units if path in contents[unit]]
        if not candidates:
            print(f"lint: {path.relative_to(ROOT)} is not compiled in this build and is left out")
            continue
        chosen.append(min(candidates, key=lambda unit: len(contents[unit])))
        read |= contents[chosen[-1]]
    return chosen


def name_of(unit):
    target = re.search(r"CMakeFiles/(.*)\.dir/Unity/", str(unit))
    return target[1] if target else str(unit.relative_to(ROOT))


def tidy(build, header_filter, unit):
    """Exit status, findings, seconds."""
    start = time.monotonic()
    done = subprocess.run([TIDY, *ARGUMENTS, "-p", build, f"--header-filter={header_filter}", unit],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    findings = re.sub(r"^\d+ warnings?( and \d+ errors?)? generated\.\n", "", done.stdout, flags=re.MULTILINE)
    return done.returncode, findings, time.monotonic() - start


def lint(build, files):
    units = translation_units(build)
    header_filter = f"^{re.escape(str(ROOT))}/({'|'.join(FOLDERS)})/"
    if files is not None:
        paths = [(ROOT / file).resolve() for file in files]
        units = units_with(paths, units)
        header_filter = "^(" + "|".join(re.escape(str(path)) for path in paths) + ")$"
    print(f"lint: clang-tidy on {len(units)} translation units", flush=True)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count())) as pool:
        runs = {pool.submit(tidy, build, header_filter, unit): unit for unit in units}
        for done, run in enumerate(concurrent.futures.as_completed(runs), 1):
            status, findings, seconds = run.result()
            failed += status != 0
            print(f"[{done}/{len(units)}] {name_of(runs[run])} ({seconds:.0f} s){': FAILED' if status else ''}")
            print(findings, end="", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--since", metavar="REVISION")
    parser.add_argument("files", nargs="*", metavar="FILE")
    arguments = parser.parse_args()
    files = arguments.files or None
    if missing := [file for file in arguments.files if not (ROOT / file).is_file()]:
        sys.exit(f"lint: no such file: {', '.join(missing)}")
    if arguments.since is not None:
        files = changed_files(arguments.since)
    if failed := lint((ROOT / arguments.build).resolve(), files):
        sys.exit(f"lint: clang-tidy reports problems in {failed} translation unit(s)")


if __name__ == "__main__":
    main()
