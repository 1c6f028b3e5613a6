#!/usr/bin/env python3
"""check_version.py BUILD: the version of the project is the same everywhere. CMakeLists.txt defines it; the program, the CMake
package, the newest list of CHANGELOG.md and, where this commit has a tag, the tag must agree.
"""

import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def tag_of_this_commit():
    done = subprocess.run(["git", "-C", SOURCE, "describe", "--tags", "--exact-match", "--match", "v*"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.stdout.strip()


def versions(build):
    """(place, version) of each place that names the version."""
    yield "CMakeLists.txt", re.search(r"^project\(stretto VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
    said = subprocess.run([build / "bin/stretto", "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
    yield "stretto --version", said.strip()
    package = (build / "lib/cmake/stretto/stretto-config-version.cmake").read_text()
    yield "stretto-config-version.cmake", re.search(r'set\(PACKAGE_VERSION "(.*?)"\)', package)[1]
    yield "CHANGELOG.md", re.search(r"^## \[(.*?)\]", (SOURCE / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    if tag := tag_of_this_commit():
        yield "the tag of this commit", tag.removeprefix("v")


if __name__ == "__main__":
    found = list(versions(pathlib.Path(sys.argv[1])))
    if len({version for _, version in found}) > 1:
        sys.exit("the version differs:\n" + "\n".join(f"  {version}  {place}" for place, version in found))
