# Needs only Python 3.11 or newer, make and git. Everything else is installed into .venv.
# Tests start hundreds of short commands, which take twice as long without compiled bytecode.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
UV := uv pip install --quiet --python $(BIN)/python
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-wheel lint format docs reference lock release bench bench-peers fuzz torture clean

help:  ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "echod needs Python 3.11 or newer; run make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Installing echod and its tools into .venv, which takes a minute the first time ..."
	@if command -v uv >/dev/null; then \
	  uv venv --quiet --clear --python $(PYTHON) .venv && $(UV) --require-hashes --requirement dev.lock && $(UV) --no-deps --editable .; \
	else \
	  $(PYTHON) -m venv .venv && $(PIP) --no-deps --require-hashes --requirement dev.lock && $(PIP) --no-deps --editable .; \
	fi
	@touch $(READY)

setup: $(READY)  ## create .venv and install everything into it

demo: $(READY)  ## watch the real service do its main job on a realistic project
	@$(BIN)/echod demo

test: $(READY)  ## run the tests
	$(BIN)/python -m pytest -n auto -m "not torture and not fuzz and not slow"

test-all: test  ## run the tests, then those that take long
	$(BIN)/python -m pytest -n auto -m "slow and not torture and not fuzz"

test-wheel: $(READY)  ## build the distributions, install each with every Python here, and use them
	$(BIN)/python -m tests.packaging.wheel

lint: $(READY)  ## check style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	if command -v actionlint >/dev/null; then actionlint; fi

docs: $(READY)  ## build the documentation site into build/site and check its links
	$(BIN)/zensical build --clean --strict

reference: $(READY)  ## write docs/commands.md and the manual page again from the help of the commands
	$(BIN)/python -m tests.cli.reference > docs/commands.md
	$(BIN)/python -m tests.cli.reference manual > docs/echod.1

lock: $(READY)  ## write dev.lock again: the versions and hashes of all dependencies, for every platform
	uv pip compile --quiet --universal --upgrade --python-version 3.11 --generate-hashes --no-header --no-annotate --all-extras --group dev \
	  pyproject.toml --output-file dev.lock

release: $(READY)  ## walk through the checklist of a release without publishing anything
	$(BIN)/python -m tests.packaging.release

format: $(READY)  ## rewrite the code in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)  ## measure every promise and print one table; JSON=FILE saves it, TOPICS="idle storm" selects
	$(BIN)/python -m tests.bench $(TOPICS) $(if $(JSON),--json $(JSON))

bench-peers: $(READY)  ## compare with other programs, installed below ECHOD_PEERS or the cache; JSON=FILE, IDLE=SECONDS, ENTRIES=N
	$(BIN)/python -m tests.bench.peers $(if $(JSON),--json $(JSON)) $(if $(IDLE),--idle $(IDLE)) $(if $(ENTRIES),--entries $(ENTRIES))

fuzz: $(READY)  ## search for failing input for minutes
	$(BIN)/python -m pytest -m fuzz

torture: $(READY)  ## run the durability proofs at full length
	$(BIN)/python -m pytest -n auto --dist worksteal -m torture -rP

clean:  ## remove everything that make created
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
