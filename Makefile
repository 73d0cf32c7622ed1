# Everything a bare machine needs is set up by these targets: python3 with venv, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help setup demo docs test test-slow test-fast lint coverage bench bench-quality bench-report reproduce clean

help:
	@echo "make demo       fit a built-in example: formulas and a report page"
	@echo "make test       set up, lint, and run the test suite"
	@echo "make test-slow  run the long statistical tests as well"
	@echo "make docs       build the documentation into docs/_build/html"
	@echo "make bench      measure speed against other tools (installs them, about half an hour)"
	@echo "make bench-quality SWEEP=classic  find formulas, beside other tools (hours; continues where it stopped)"
	@echo "make bench-report  write docs/benchmark.md from the results of bench-quality"
	@echo "make reproduce  do the paper's experiments again (hours; continues where it stopped)"
	@echo "make setup      only create $(VENV) and install symbayes into it"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[test]"
	@touch $@

setup: $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/symbayes demo

test: lint test-fast

# Kernels are compiled once before, on all cores, and not by every worker for itself.
test-fast: $(VENV)/.installed-test
	$(BIN)/python -c "from symbayes.kernels.units import load; load('tempered', True); load('paper')"
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Kernels run as plain Python here: coverage cannot see into compiled code.
coverage: $(VENV)/.installed-test
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest -m "not slow" -o addopts="" tests/kernels
	$(BIN)/coverage report --include='src/symbayes/kernels/*' --fail-under=95

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[docs]"
	@touch $@

docs: $(VENV)/.installed-docs
	$(BIN)/sphinx-build -W --keep-going -n -q docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks.run

SWEEP ?= paper classic feynman peers real columns calibration

bench-quality: $(VENV)/.installed
	for sweep in $(SWEEP); do $(BIN)/python -m benchmarks.quality.run --sweep $$sweep || exit 1; done

bench-report: $(VENV)/.installed
	$(BIN)/python -m benchmarks.quality.report

$(VENV)/.installed-reproduce: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[reproduce]"
	@touch $@

reproduce: $(VENV)/.installed-reproduce
	$(BIN)/symbayes reproduce all

clean:
	rm -rf $(VENV) build dist docs/_build .pytest_cache .ruff_cache .mypy_cache .coverage symbayes-demo
