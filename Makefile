# Two commands do everything: `make demo` and `make test`. Both set up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help setup demo test test-quick coverage check format bench clean docs services soak lock hashes release

help:
	@echo "make setup   prepare $(VENV)"
	@echo "make demo    PG (plain PPO), TermPG and an oracle drive (writes demo/index.html)"
	@echo "make test    run all tests"
	@echo "make test-quick  formulas, properties, documents: those that take no time"
	@echo "make coverage  the same with branch coverage (at least 90%)"
	@echo "make check   formatter, linter, types, import layers, spelling, file sizes"
	@echo "make format  rewrite the sources in the project's format"
	@echo "make docs    the documentation site, in site/"
	@echo "make soak    kills, damaged files, bad input and attacks, for half an hour"
	@echo "make lock    write requirements-dev.lock; make hashes compares what pip fetches"
	@echo "make release sdist, wheel and bill of materials, in dist/"
	@echo "make bench   steps per second of every game, against gymnax and MinAtar"

setup: $(STAMP)

# What the lock names is compared with its hashes; torch and stable-baselines3 are not in it
# (tools/supply_chain.py says why). The lock is complete, so pip need not look for more: it
# would try newer versions of requirements with extras, which have no hash here.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
$(STAMP): pyproject.toml constraints.txt requirements-dev.lock
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) --require-hashes --no-deps -r requirements-dev.lock
	$(PIP_INSTALL) -c constraints.txt -e ".[dev]"
	@touch $@

demo: setup
	$(BIN)/python -m termdp demo --out demo

services:
	@tools/install_test_services

# Workers that are done take tests from the other: no long file is waited for at the end.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

test: setup services
	$(PYTEST) $(ARGS)

# Everything but browsers, servers, commands and whole trainings; what takes seconds all the
# same is marked `slow` where it is written, and the list at the end shows what should be.
test-quick: setup services
	$(PYTEST) -m "not slow" --durations=5 tests/unit tests/tabular tests/docs $(ARGS)

coverage: setup services
	$(PYTEST) --cov --cov-report=term:skip-covered $(ARGS)

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell src tests docs benchmarks tools *.md
	$(BIN)/python tools/check_sizes.py
	$(BIN)/python tools/supply_chain.py licences

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --site-dir site

bench: setup
	$(BIN)/python benchmarks/environments.py

# Half an hour on two cores; docs/reliability.md says what each part shows.
SOAK := tests/unit/test_files.py tests/unit/test_folder_lock.py \
  tests/unit/runs/test_checkpoint.py tests/unit/runs/test_folder.py \
  tests/unit/bench/test_sweep_folder.py tests/contracts/test_resume.py \
  tests/contracts/test_bench.py tests/contracts/test_bench_ray.py \
  tests/contracts/test_bad_input.py tests/contracts/test_bad_numbers.py \
  tests/contracts/test_bench_input.py tests/people/test_disasters.py tests/people/test_fuzz.py
FUZZ_EXAMPLES ?= 400

soak: setup services
	$(BIN)/python -m pytest -n 2 --dist loadfile $(SOAK)
	TERMDP_LONG_TESTS=1 $(BIN)/python -m pytest tests/learning/test_recorded_costs.py \
	  tests/contracts/test_bench.py
	TERMDP_FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) \
	  $(BIN)/python -m pytest -n 2 tests/contracts/test_fuzz_files.py tests/people/test_study_files.py
	$(BIN)/python benchmarks/kills.py --kills 20
	$(BIN)/python benchmarks/server_attack.py

lock: setup
	$(BIN)/python tools/supply_chain.py lock

hashes: setup
	$(BIN)/python tools/supply_chain.py hashes

release: setup hashes
	$(BIN)/python -m venv $(VENV)/build
	$(VENV)/build/bin/python -m pip install --quiet --disable-pip-version-check hatchling
	$(VENV)/build/bin/python -m hatchling build -d dist
	$(BIN)/python tools/supply_chain.py sbom dist/termdp.cdx.json

clean:
	rm -rf $(VENV) demo site .cache .pytest_cache .ruff_cache .mypy_cache .hypothesis
