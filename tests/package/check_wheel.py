#!/usr/bin/env python3
"""Checks the wheel of stretto in a new venv, with only the venv's programs and a shell on the PATH.

  check_wheel.py --build BUILD    makes a wheel; the venv's torch is a link to the build's (part of make test)
  check_wheel.py WHEEL            pip installs it with torch; also builds the project of `stretto new` and asks auditwheel
                                  about the tag (part of make wheel)

It must train a tiny classifier on two ranks with the libtorch of the package torch, contain no path of the build, refuse another
version of torch and a missing one, and be found by CMake. Ends with 77 (skipped) if this build has CUDA.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import check_package
from check_package import SKIPPED, SOURCE, require

CONSUMER = """cmake_minimum_required(VERSION 3.22)
project(consumer CXX)
find_package(stretto REQUIRED)
get_target_property(included stretto::torch INTERFACE_INCLUDE_DIRECTORIES)
message(STATUS "torch: ${included}")
"""


class Environment:
    """Creates a venv with the wheel, and a PATH without compiler and CMake."""

    def __init__(self, folder):
        self.folder = folder
        self.venv = folder / "venv"
        subprocess.run([sys.executable, "-m", "venv", self.venv], check=True)
        tools = folder / "tools"
        tools.mkdir()
        for tool in "sh", "env", "ldd", "readelf", "bash":
            (tools / tool).symlink_to(shutil.which(tool))
        self.path = f"{self.venv}/bin:{tools}"
        self.site_packages = next(self.venv.glob("lib/python3.*/site-packages"))

    def pip_install(self, *words):
        subprocess.run([self.venv / "bin/python", "-m", "pip", "-q", "--disable-pip-version-check", "install", *words], check=True)

    def stretto(self, *words, expected=0):
        done = subprocess.run(["stretto", *words], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True,
                              env={"PATH": self.path, "HOME": str(self.folder), "OMP_NUM_THREADS": "1"})
        require(done.returncode == expected, f"stretto {shlex.join(words)} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout


def check_installed(environment, wheel):
    version = environment.stretto("--version").strip()
    require(wheel.name.startswith(f"stretto-{version}-"), f"{wheel.name} contains stretto {version}")
    root = environment.site_packages / "stretto"
    require(environment.stretto("--cmake-prefix").strip() == str(root), "--cmake-prefix does not name the package")
    check_package.check_training(root, environment.folder, run=lambda *words: environment.stretto(*words))
    for program in root / "bin/stretto", root / "libexec/stretto/stretto-rank":
        for name, found in check_package.libraries(program, environment.folder):
            place = pathlib.Path(os.path.realpath(found))
            inside = place.is_relative_to(root) or place.is_relative_to((environment.site_packages / "torch").resolve())
            allowed = inside or check_package.GLIBC.fullmatch(pathlib.Path(name).name) or name.startswith(("libstdc++.", "libgcc_s."))
            require(allowed, f"{program} loads {name} from {found}, which neither the wheel nor torch contains")
    for text in (root / "lib/cmake").rglob("*.cmake"):
        require(str(SOURCE) not in text.read_text(), f"{text} contains a path of the build")


def check_other_torch(environment):
    """The package torch is moved away, then replaced by one of another version."""
    torch, kept = environment.site_packages / "torch", environment.site_packages / "kept"
    torch.rename(kept)
    words = ["predict", "--model", "run/model", "--text", "a film"]
    require("there is no Python package torch" in environment.stretto(*words, expected=2), "a missing torch is not reported")
    torch.mkdir()
    (torch / "version.py").write_text("__version__ = '2.1.0+cpu'\n")
    said = environment.stretto(*words, expected=2)
    require("this is torch 2.1.0" in said and "pip install torch==" in said, f"another torch is not refused:\n{said}")
    shutil.rmtree(torch)
    kept.rename(torch)


def cmake(*words):
    done = subprocess.run(["cmake", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    require(done.returncode == 0, f"cmake {' '.join(map(str, words))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def check_cmake(environment):
    source = environment.folder / "consumer"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(CONSUMER)
    prefix = environment.stretto("--cmake-prefix").strip()
    said = cmake("-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    require(f"{environment.site_packages}/torch/include" in said, f"CMake does not use the torch next to stretto:\n{said}")


def check_project(environment):
    environment.stretto("new", "spirals")
    project = environment.folder / "spirals"
    cmake("-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={environment.stretto('--cmake-prefix').strip()}")
    cmake("--build", project / "build")
    subprocess.run([project / "build/train", "recipe.yaml", "-N", "2"], cwd=project, check=True)


def check_tag(environment, wheel):
    """The tag of the wheel names the glibc that auditwheel finds in the symbols of its programs and libraries."""
    environment.pip_install("auditwheel")
    audit = json.loads(subprocess.run([environment.venv / "bin/auditwheel", "show", "--json", wheel], check=True,
                                      stdout=subprocess.PIPE, text=True).stdout)
    tag = audit["sym_tag"]
    require(wheel.stem.endswith(f"-{tag}"), f"{wheel.name}: auditwheel finds the symbols of {tag}")
    require(not audit["unsupported_isa"], f"{wheel.name}: auditwheel finds instructions that not every x86-64 processor has")


def check_build(build, folder):
    if (check_package.torch_of(build) / "lib/libtorch_cuda.so").exists():
        print("Skipped: this is a CUDA build, and wheels are made from CPU builds")
        sys.exit(SKIPPED)
    subprocess.run([sys.executable, SOURCE / "scripts/wheel.py", build, folder], check=True)
    environment = Environment(folder)
    wheel = next(folder.glob("*.whl"))
    environment.pip_install("--no-deps", "--no-index", wheel)
    (environment.site_packages / "torch").symlink_to(check_package.torch_of(build))
    check_installed(environment, wheel)
    check_other_torch(environment)
    check_cmake(environment)


def check_wheel(wheel, folder):
    environment = Environment(folder)
    torch = re.search(r"^Requires-Dist: (torch==\S+)", check_package.run_program("unzip", "-p", wheel, "*/METADATA", folder=folder),
                      re.MULTILINE)[1]
    environment.pip_install(torch, wheel)
    check_installed(environment, wheel)
    check_cmake(environment)
    check_project(environment)
    check_tag(environment, wheel)
    print(f"{wheel.name}: trains after `pip install {torch} {wheel.name}`, and its library builds a project")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, metavar="BUILD")
    parser.add_argument("wheels", nargs="*", type=pathlib.Path)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="stretto-wheel-") as folder:
        if options.build:
            check_build(options.build.resolve(), pathlib.Path(folder).resolve())
        for wheel in options.wheels:
            check_wheel(wheel.resolve(), pathlib.Path(folder).resolve())


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except AssertionError as error:
        print(error)
        sys.exit(1)
