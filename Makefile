# The front door. Every target sets up what it needs first (tools/setup) and does nothing twice.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help run test build bench first-run eval-parity check format asan tsan fuzz neon mutate clean distclean

ARGS ?=
FILTER ?=
export PYTHON TORCH_INDEX JOBS CMAKE_ARGS

help:
	@cat tools/help.txt

run: build
	@build/bin/xsa compare $(ARGS)

build:
	@tools/setup build

test:
	@tools/setup test asan
	@.setup/python tools/test.py build build-asan $(if $(FILTER),--filter '$(FILTER)')

asan:
	@tools/setup asan
	@.setup/python tools/test.py build-asan $(if $(FILTER),--filter '$(FILTER)')

tsan:
	@tools/setup tsan
	@tools/tsan $(if $(FILTER),'*$(FILTER)*')

fuzz:
	@tools/setup fuzz
	@tools/fuzz $(ARGS)

bench:
	@tools/setup bench
	@tools/bench $(ARGS)

first-run:
	@tools/setup python
	@.setup/python tools/first_run.py $(ARGS)

eval-parity:
	@tools/setup build peers
	@.setup/peer/bin/python bench/requests_parity.py
	@.setup/peer/bin/python bench/eval_parity.py $(ARGS)

check:
	@tools/setup lint
	@tools/check

format:
	@tools/setup python
	@tools/check --write

neon:
	@tools/neon $(if $(FILTER),'*$(FILTER)*')

mutate:
	@tools/setup build
	@.setup/python tools/mutate.py $(ARGS)

clean:
	rm -rf build build-asan build-mutate build-dev build-tsan build-fuzz build-neon build-first

distclean: clean
	rm -rf .setup .venv
