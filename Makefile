# What people do with stretto, in one word each; CMake does the building. `make` alone lists the words.
SETUP := scripts/setup.sh
SOURCES := find $(wildcard stretto tests examples bench) -name '*.h' -o -name '*.cpp'
DEPS = $(abspath $(or $(STRETTO_DEPS),.deps))
# A sanitizer that finds something must fail the test; leaks inside libtorch are not ours to report.
ASAN_ENV := ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
TSAN_ENV := TSAN_OPTIONS=halt_on_error=1:ignore_noninstrumented_modules=1

.PHONY: help setup build package test test-data test-asan test-tsan chaos bench demo format format-check lint check-torch-2.11 check-cuda clean

help:  ## list these targets
	@sed -n 's/^\([a-z][a-z0-9.-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 26

setup:  ## install what a build needs (packages, a private libtorch)
	@$(SETUP)

build: setup  ## build/release/bin/stretto
	@cmake --preset release >/dev/null
	@cmake --build build/release

package: build  ## build/package/: a .tar.gz that runs anywhere, a .deb; both are unpacked and tried
	@rm -rf build/package
	@scripts/package.sh build/release build/package
	@python3 tests/package/check_package.py build/package/*

test: build  ## build and run every test that needs no outside data
	@$(SETUP) tests
	@env -u STRETTO_DATA scripts/test.sh build/release

test-data: build  ## the tests on real data too: STRETTO_DATA=/folder make test-data
	@test -n "$(STRETTO_DATA)" || { echo "STRETTO_DATA is not set: name the folder that holds the data sets" >&2; exit 1; }
	@$(SETUP) tests
	@scripts/test.sh build/release

test-asan: setup  ## the tests with address and undefined-behaviour sanitizers
	@cmake --preset asan >/dev/null
	@cmake --build build/asan
	@$(SETUP) tests
	@$(ASAN_ENV) scripts/test.sh build/asan

test-tsan: setup  ## the tests with the thread sanitizer
	@cmake --preset tsan >/dev/null
	@cmake --build build/tsan
	@$(SETUP) tests
	@$(TSAN_ENV) scripts/test.sh build/tsan

chaos: build  ## kill a training run 1,000 times (KILLS=n) at random moments; the weights must come out the same
	@STRETTO_KILLS=$(or $(KILLS),1000) build/release/tests/train_program_test --gtest_filter='Kills.*'

demo:  ## fine-tune a small BERT on two ranks and print its accuracy
	@$(SETUP) demo
	@$(MAKE) --no-print-directory build
	@scripts/demo.sh

bench:  ## measure stretto against its peers, in turns, and print the table (half an hour; ONLY="start train"; QUICK=1: a round each)
	@$(SETUP) bench
	@cmake --preset release -DSTRETTO_BENCH=ON >/dev/null
	@cmake --build build/release
	@"$(DEPS)/peers/bin/python" bench/run.py $(if $(QUICK),--quick) $(ONLY)

format:  ## rewrite all sources in the project's style
	@$(SETUP) lint
	@$(SOURCES) | xargs clang-format-14 -i

format-check:  ## name the sources that `make format` would change
	@$(SETUP) lint
	@$(SOURCES) | xargs clang-format-14 --dry-run -Werror

lint:  ## clang-tidy on all sources, or on FILES="a.cpp b.cpp"
	@$(SETUP) lint
	@cmake --preset dev -B build/lint -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
	@scripts/lint.sh build/lint $(FILES)

check-torch-2.11:  ## compile (not link) everything against the oldest torch that is supported
	@$(SETUP) torch-2.11
	@STRETTO_TORCH="$(DEPS)/torch-2.11.0/torch" cmake --preset dev -B build/torch-2.11 >/dev/null
	@ninja -C build/torch-2.11 -t targets all | sed -n 's/^\(.*\.o\): CXX_COMPILER.*/\1/p' | \
	  xargs cmake --build build/torch-2.11 --target
	@echo "everything compiles against torch 2.11"

check-cuda:  ## compile (not link, not run) the CUDA parts against the headers of CUDA and of the CUDA build of torch
	@$(SETUP) cuda
	@STRETTO_TORCH="$(DEPS)/cuda-headers/torch" cmake --preset dev -B build/check-cuda >/dev/null
	@test -s build/check-cuda/cuda_objects.txt || { echo "this build has chosen no CUDA parts" >&2; exit 1; }
	@xargs cmake --build build/check-cuda --target <build/check-cuda/cuda_objects.txt
	@echo "the CUDA parts compile: $$(wc -l <build/check-cuda/cuda_objects.txt) file(s)"

clean:  ## remove build/ (what setup brought stays in .deps/)
	rm -rf build
