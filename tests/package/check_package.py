#!/usr/bin/env python3
"""Checks packages of stretto.

  check_package.py --stage BUILD     the tree of a package, moved after installation (part of make test)
  check_package.py PACKAGE...        .tar.gz and .deb files, unpacked (part of make package)

Each is unpacked into a new folder and must find all libraries there or in the system, contain no path of the build, and
train a tiny classifier on two ranks. Ends with 77 (skipped) if a tool for the check is missing.
"""

import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/readme"))
import run_readme  # noqa: E402 (its tiny encoder)

SKIPPED = 77
GLIBC = re.compile(r"(libc|libm|libdl|libpthread|librt)\.so\.\d|ld-linux.*|linux-vdso\..*")
RECIPE = """
model: {config: encoder/config.json}
tokenizer: {path: encoder}
data: {train: train.tsv, validation: train.tsv, max_length: 16}
training: {max_steps: 3, global_batch_size: 4, device: cpu}
evaluate: {every: epoch}
output: run
"""


def require(condition, message):
    if not condition:
        raise AssertionError(message)


def run_program(*command, folder, **variables):
    """Returns the output of a command, in an environment without another stretto or libtorch."""
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run([str(word) for word in command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    require(done.returncode == 0, f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def libraries(program, folder):
    """(name, path) of each shared library that a program loads."""
    return re.findall(r"^\t(\S+) => (.*?)(?: \(0x\w+\))?$", run_program("ldd", program, folder=folder), re.MULTILINE)


def check_libraries(root, brings_all):
    for program in root / "bin/stretto", root / "libexec/stretto/stretto-rank":
        path = re.search(r"R(?:UN)?PATH.*\[(.*)\]", run_program("readelf", "-d", program, folder=root))
        require(path and all(part.startswith("$ORIGIN/") for part in path[1].split(":")),
                f"{program} searches for libraries in {path and path[1]}; expected only folders relative to itself")
        for name, found in libraries(program, root):
            inside = pathlib.Path(os.path.realpath(found)).is_relative_to(root)
            system = found.startswith(("/lib", "/usr/lib"))
            allowed = inside or GLIBC.fullmatch(pathlib.Path(name).name) or (system and not brings_all)
            require(allowed, f"{program} loads {name} from {found}, which is not part of the package")
            require("torch" not in name or inside, f"{program} loads {name} from {found}, not from the package")


def check_texts(root, build_paths):
    """CMake and pkg-config files must contain no path of the build."""
    texts = [*(root / "lib/cmake").rglob("*.cmake"), *(root / "lib/pkgconfig").glob("*.pc")]
    require(len(texts) >= 4, f"{root} contains no CMake package or no pkg-config file")
    for text in texts:
        for path in build_paths:
            require(str(path) not in text.read_text(), f"{text} contains {path}, a folder of the build")
    for link in filter(pathlib.Path.is_symlink, root.rglob("*")):
        require(link.resolve().is_relative_to(root) or os.readlink(link).startswith("/usr/include/"),
                f"{link} points to {os.readlink(link)}, outside the package")


def check_training(root, folder, run=None):
    """`run(*words)` runs stretto in `folder`; default: the program in `root`."""
    run = run or (lambda *words: run_program(root / "bin/stretto", *words, folder=folder))
    run_readme.make_encoder(SOURCE, folder / "encoder")
    rows = ["sentence\tlabel"] + ["a good film\t1", "a bad film\t0"] * 4
    (folder / "train.tsv").write_text("\n".join(rows) + "\n")
    (folder / "recipe.yaml").write_text(RECIPE)
    require("Usage" in run("--help"), "stretto --help explains nothing")
    said = run("train", "recipe.yaml", "-N", "2", "--no-pin")
    require("over 2 ranks" in said and (folder / "run/model/model.safetensors").exists(), f"no model was trained:\n{said}")
    said = run("predict", "--model", "run/model", "--text", "a film")
    require('"label"' in said, f"predict said {said}")
    require((root / "bin/stretto").stat().st_mode & 0o111 == 0o111, "bin/stretto is not executable for all")
    said = run("new", "project")
    require(f"-DCMAKE_PREFIX_PATH={shlex.quote(str(root))}" in said, f"stretto new does not name this installation:\n{said}")


def check_control(control, version):
    """The fields of a .deb: MPI is loaded at run time if it is installed, so it is suggested only."""
    fields = dict(re.findall(r"^(\S+): (.*)$", control, re.MULTILINE))
    require("openmpi-bin" in fields["Suggests"].split(", "), f"Open MPI is not suggested: {fields['Suggests']}")
    for field in "Depends", "Recommends":
        require(not re.search("openmpi|mpich|libmpi", fields[field]), f"{field} has {fields[field]}; expected no MPI")
    require(fields["Version"] == version, f"Version has {fields['Version']}; expected {version}")
    require("libc6 " in fields["Depends"], f"Depends has {fields['Depends']}; expected the C library")


def check_tree(root, brings_all, build_paths):
    with tempfile.TemporaryDirectory(prefix="stretto-package-") as folder:
        check_libraries(root, brings_all)
        check_texts(root, build_paths)
        check_training(root, pathlib.Path(folder))


def torch_of(build):
    cache = (build / "CMakeCache.txt").read_text()
    return pathlib.Path(re.search(r"^STRETTO_TORCH_INCLUDE:PATH=(.*)/include$", cache, re.MULTILINE)[1])


def check_stage(build):
    with tempfile.TemporaryDirectory(prefix="package-", dir=build / "tests") as folder:
        staged, moved = pathlib.Path(folder) / "staged", pathlib.Path(folder).resolve() / "moved to/here"
        subprocess.run([SOURCE / "scripts/stage.sh", build, staged, "own"], check=True)
        moved.parent.mkdir()
        staged.rename(moved)
        if shutil.which("dpkg-query"):
            (moved.parent / "usr").symlink_to(moved)
            check_control(run_program(SOURCE / "scripts/deb_control.sh", moved.parent, "0.0.0", folder=moved), "0.0.0")
        check_tree(moved, True, [staged, build / "stretto", SOURCE / "stretto", torch_of(build)])


def unpack(package, folder):
    if package.suffix == ".deb":
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
        return folder / "usr"
    subprocess.run(["tar", "-xzf", package, "-C", folder], check=True)
    return next(folder.iterdir())


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stage", type=pathlib.Path, metavar="BUILD")
    parser.add_argument("packages", nargs="*", type=pathlib.Path)
    options = parser.parse_args(arguments)
    for tool in "ldd", "readelf":
        if not shutil.which(tool):
            print(f"Skipped: {tool} is not installed")
            return SKIPPED
    if options.stage:
        build = options.stage.resolve()
        if (torch_of(build) / "lib/libtorch_cuda.so").exists():
            print("Skipped: this is a CUDA build, and packages are made from CPU builds")
            return SKIPPED
        check_stage(build)
    for package in options.packages:
        if package.suffix == ".deb" and not shutil.which("dpkg-deb"):
            print(f"Skipped: dpkg-deb, which unpacks {package.name}, is not installed")
            continue
        with tempfile.TemporaryDirectory(prefix="stretto-unpacked-") as folder:
            root = unpack(package, pathlib.Path(folder).resolve())
            version = run_program(root / "bin/stretto", "--version", folder=root).strip()
            require(re.match(rf"stretto[-_]{re.escape(version)}[-_]", package.name), f"{package.name} contains stretto {version}")
            check_tree(root, package.suffix != ".deb", [SOURCE])
            if package.suffix == ".deb":
                check_control(run_program("dpkg-deb", "-f", package.resolve(), folder=root), version)
        print(f"{package.name}: finds its libraries and trains after unpacking")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except AssertionError as error:
        print(error)
        sys.exit(1)
