#!/usr/bin/env python3
"""scripts/wheel.py BUILD FOLDER: writes FOLDER/stretto-VERSION-py3-none-manylinux_G_MACHINE.whl from a build: the programs, the
C++ headers, static libraries and the CMake package, as the Python package `stretto`. It contains the shared libraries that
manylinux does not promise, but not libtorch: the programs load that of the package torch, next to which pip installs it. G is
the version of the glibc of this machine, the oldest on which the wheel runs.
"""

import argparse
import base64
import hashlib
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[1]

MODULE = '''"""The programs and the C++ library of stretto. `stretto`, installed next to Python, runs program()."""

import os
import pathlib
import sys


def program():
    """Path of the program `stretto`, which needs no Python."""
    return str(pathlib.Path(__file__).resolve().parent / "bin" / "stretto")


def main():
    os.execv(program(), [program(), *sys.argv[1:]])
'''

METADATA = '''Metadata-Version: 2.1
Name: stretto
Version: {version}
Summary: Distributed training of language models in C++
License: Apache-2.0
Requires-Python: >=3.10
Requires-Dist: torch=={torch}
Description-Content-Type: text/markdown

{readme}'''

WHEEL = '''Wheel-Version: 1.0
Generator: stretto
Root-Is-Purelib: false
Tag: py3-none-{platform}
'''


def torch_version(build):
    folder = re.search(r"^STRETTO_TORCH_INCLUDE:PATH=(.*)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE)[1]
    text = (pathlib.Path(folder) / "torch/headeronly/version.h").read_text()
    return ".".join(re.search(rf"TORCH_VERSION_{part} (\d+)", text)[1] for part in ("MAJOR", "MINOR", "PATCH"))


def platform():
    major, minor = os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")[:2]
    return f"manylinux_{major}_{minor}_{os.uname().machine}"


class Wheel:
    """A wheel in the making: members with their hashes."""

    def __init__(self, path):
        self.archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self.record = []

    def add(self, name, content, executable=False):
        member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same bytes for the same content
        member.compress_type = zipfile.ZIP_DEFLATED
        member.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
        self.archive.writestr(member, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}")

    def close(self, record):
        self.add(record, "\n".join([*self.record, f"{record},,", ""]).encode())
        self.archive.close()


def pack(staged, path, version, torch):
    wheel = Wheel(path)
    for file in sorted(path for path in staged.rglob("*") if path.is_file()):
        if file.is_symlink():
            raise SystemExit(f"wheel: {file} is a symbolic link, which a wheel cannot contain")
        wheel.add(f"stretto/{file.relative_to(staged)}", file.read_bytes(), executable=os.access(file, os.X_OK))
    wheel.add("stretto/__init__.py", MODULE.encode())
    wheel.add("stretto/__main__.py", b"from stretto import main\n\nmain()\n")
    info = f"stretto-{version}.dist-info"
    readme = (SOURCE / "README.md").read_text()
    wheel.add(f"{info}/METADATA", METADATA.format(version=version, torch=torch, readme=readme).encode())
    wheel.add(f"{info}/WHEEL", WHEEL.format(platform=platform()).encode())
    wheel.add(f"{info}/entry_points.txt", b"[console_scripts]\nstretto = stretto:main\n")
    wheel.add(f"{info}/LICENSE", (SOURCE / "LICENSE").read_bytes())
    wheel.close(f"{info}/RECORD")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args(arguments)
    build, folder = options.build.resolve(), options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([build / "bin/stretto", "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    path = folder / f"stretto-{version}-py3-none-{platform()}.whl"
    with tempfile.TemporaryDirectory(prefix="wheel-", dir=folder) as work:
        staged, unfinished = pathlib.Path(work) / "staged", pathlib.Path(work) / "wheel"
        subprocess.run([SOURCE / "scripts/stage.sh", build, staged, "wheel"], check=True)
        pack(staged, unfinished, version, torch_version(build))
        unfinished.rename(path)
    print(f"wheel: {path} ({path.stat().st_size / 2**20:.0f} MiB); runs with torch {torch_version(build)} and glibc "
          f"{platform().split('_')[1]}.{platform().split('_')[2]} or newer")


if __name__ == "__main__":
    main(sys.argv[1:])
