# Two commands do everything: `make demo` and `make test`. Both set up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help setup demo test coverage check format bench clean services

help:
	@echo "make setup   prepare $(VENV)"
	@echo "make demo    PPO, TermPG and an oracle side by side (writes demo/index.html)"
	@echo "make test    run all tests"
	@echo "make coverage  the same with branch coverage (at least 90%)"
	@echo "make check   formatter, linter, types, import layers, spelling, file sizes"
	@echo "make format  rewrite the sources in the project's format"
	@echo "make bench   steps per second of every game, against gymnax and MinAtar"

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

demo: setup
	$(BIN)/python -m termdp demo --out demo

services:
	@tools/install_test_services

test: setup services
	$(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)

coverage: setup services
	$(BIN)/python -m pytest -n 2 --dist loadfile --cov --cov-report=term:skip-covered $(ARGS)

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell src tests docs benchmarks tools *.md
	$(BIN)/python tools/check_sizes.py

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup
	$(BIN)/python benchmarks/environments.py

clean:
	rm -rf $(VENV) demo .pytest_cache .ruff_cache .mypy_cache .hypothesis
