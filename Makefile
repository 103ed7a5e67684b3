# The front door: each target installs what is missing, configures and builds what is out of date, and then does its work.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
# Debian's Python, where its torch and numpy are, whatever comes first in PATH.
PYTHON ?= /usr/bin/python3
ORTHANT := build/release/bin/orthant

.DEFAULT_GOAL := build
.PHONY: build demo test test-long dev asan tsan fuzz bench install lint format clean help \
  build-dependencies test-dependencies lint-dependencies

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

build: build/release/build.ninja  ## the program build/release/bin/orthant, and lib/liborthant_dnnl.so for other programs
	@cmake --build build/release --parallel $(JOBS) --target orthant orthant_dnnl

demo: build  ## make universes, train CosmoFlow on two ranks, predict others; one or two minutes
	@scripts/demo.sh $(ORTHANT)

test: test-dependencies build/release/build.ninja  ## build everything and run the tests
	@cmake --build build/release --parallel $(JOBS)
	@ctest --preset release --parallel $(JOBS)

test-long: test-dependencies build/release/build.ninja  ## all tests, the long ones included
	@cmake --build build/release --parallel $(JOBS)
	@ctest --preset release-long --parallel $(JOBS)

dev asan tsan: test-dependencies  ## the tests with assertions, or under sanitizers
	@$(MAKE) --no-print-directory build/$@/build.ninja
	@cmake --build build/$@ --parallel $(JOBS)
	@ctest --preset $@ --parallel $(JOBS)

fuzz:  ## the parsers under libFuzzer: ORTHANT_FUZZ=npy build/fuzz/bin/fuzz fuzz/corpus/npy
	@scripts/install_dependencies.sh build fuzz
	@$(MAKE) --no-print-directory build/fuzz/build.ninja
	@cmake --build build/fuzz --parallel $(JOBS) --target fuzz

bench: build  ## seconds per training step of the three reference networks
	@scripts/bench.sh $(ORTHANT)

install: build  ## program, library and CMake package under PREFIX (default /usr/local)
	@cmake --install build/release --prefix $(PREFIX)

lint: lint-dependencies build/lint/build.ninja  ## clang-format and clang-tidy over the tree
	@scripts/lint.sh $(JOBS)

format: test-dependencies  ## clang-format all sources
	@git ls-files '*.cpp' '*.hpp' | xargs clang-format -i

clean:  ## remove build/
	@rm -rf build

build/%/build.ninja: CMakePresets.json | build-dependencies
	@cmake --preset $* --log-level=WARNING

build-dependencies:
	@scripts/install_dependencies.sh build

test-dependencies:
	@scripts/install_dependencies.sh build test

lint-dependencies:
	@scripts/install_dependencies.sh build test lint
