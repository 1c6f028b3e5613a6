#!/usr/bin/env python3
"""check_version.py BUILD: the version of the project is the same everywhere. CMakeLists.txt defines it; the program, the CMake
package, the newest list of CHANGELOG.md and, where this commit has a tag, the tag must agree. Commits after a tag have a newer
version. check_package.py and check_wheel.py compare the packages and the wheel with the program.
"""

import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def newest_tag(*options):
    """The version of the newest tag, "" if there is none."""
    done = subprocess.run(["git", "-C", SOURCE, "describe", "--tags", "--match", "v*", *options],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.stdout.strip().removeprefix("v")


def numbers(version):
    return [int(part) for part in version.split(".")]


def versions(build):
    """(place, version) of each place that names the version."""
    yield "CMakeLists.txt", re.search(r"^project\(stretto VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
    said = subprocess.run([build / "bin/stretto", "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
    yield "stretto --version", said.strip()
    package = (build / "lib/cmake/stretto/stretto-config-version.cmake").read_text()
    yield "stretto-config-version.cmake", re.search(r'set\(PACKAGE_VERSION "(.*?)"\)', package)[1]
    yield "CHANGELOG.md", re.search(r"^## \[(.*?)\]", (SOURCE / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    if tag := newest_tag("--exact-match"):
        yield "the tag of this commit", tag


if __name__ == "__main__":
    found = list(versions(pathlib.Path(sys.argv[1])))
    if len({version for _, version in found}) > 1:
        sys.exit("the version differs:\n" + "\n".join(f"  {version}  {place}" for place, version in found))
    earlier, version = newest_tag("--abbrev=0"), found[0][1]
    if earlier and not newest_tag("--exact-match") and numbers(version) <= numbers(earlier):
        sys.exit(f"the version is {version}, but v{earlier} has been released")
