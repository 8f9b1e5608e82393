# make demo and make test set up a fresh machine by themselves.
export UV_HTTP_TIMEOUT ?= 600
export OMP_NUM_THREADS ?= 1
BIN := .venv/bin
OUT := outputs
WEIGHTS := $(OUT)/weights
SOURCES := robot policies values sim hardware configs tests benchmarks

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint check-slow bench weights lock

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

setup: ## Python environment from the lock, libraries for rendering
	@.ci/setup

demo: setup ## evaluate the shipped weights (plain, random, best of 8); report in outputs/demo
	$(BIN)/ambidex eval experiment=demo out=$(OUT)/demo

test: lint ## all gates: style, types, import contracts, tests
	$(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/pyright
	$(BIN)/lint-imports

check-slow: setup ## tests that need more than seconds: memory, kills, Ray
	$(BIN)/python -m pytest -m slow --timeout 1800

bench: setup ## measure; numbers are printed, not checked
	@for bench in benchmarks/bench_*.py; do \
		echo "== $$bench"; $(BIN)/python -m benchmarks.$$(basename $$bench .py) || exit 1; \
	done

weights: setup ## make the shipped weights from nothing: under two hours on 2 cores
	$(BIN)/ambidex collect experiment=demo_demonstrations out=$(WEIGHTS)/demonstrations
	$(BIN)/ambidex train experiment=demo_policy datasets=[$(WEIGHTS)/demonstrations] \
		out=$(WEIGHTS)/policy resume=true
	$(BIN)/ambidex label experiment=demo_siblings checkpoint=$(WEIGHTS)/policy/checkpoint \
		out=$(WEIGHTS)/siblings
	$(BIN)/ambidex train experiment=demo_value datasets=[$(WEIGHTS)/demonstrations] \
		learner.siblings=[$(WEIGHTS)/siblings/lift,$(WEIGHTS)/siblings/slide] \
		learner.policy=$(WEIGHTS)/policy/checkpoint out=$(WEIGHTS)/value resume=true
	mkdir -p weights/demo/policy weights/demo/value
	cp $(WEIGHTS)/policy/checkpoint/* weights/demo/policy/
	cp $(WEIGHTS)/value/checkpoint/* weights/demo/value/

lock: setup ## resolve dependencies anew
	$$(command -v uv || echo .venv-tools/bin/uv) pip compile pyproject.toml --all-extras --group dev --python-version 3.12 \
		--generate-hashes --no-emit-index-url --custom-compile-command "make lock" \
		--quiet --output-file requirements.lock
