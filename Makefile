# The two commands: `make demo` and `make test`. Each sets up what it needs from nothing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
export OMP_NUM_THREADS ?= 1

.PHONY: demo test lint types laws bench clean

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "ginio needs Python 3.11 or newer; PYTHON=/path/to/python3 make ...")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.run: $(VENV)/.created pyproject.toml constraints.txt
	$(PIP) --editable '.[cli,plot]'
	touch $@

$(VENV)/.dev: $(VENV)/.run
	$(PIP) --editable '.[cli,plot,dev]'
	touch $@

demo: $(VENV)/.run
	$(BIN)/ginio demo

test: lint types laws

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/typos
	$(BIN)/deptry src

types: $(VENV)/.dev
	$(BIN)/pyright

# With the shape hook, then the tests it would stand in the way of.
laws: $(VENV)/.dev
	$(BIN)/pytest -n 2 -m "not bare" --jaxtyping-packages=ginio,beartype.beartype
	$(BIN)/pytest -n 2 -m bare

bench: $(VENV)/.run
	$(BIN)/python benchmarks/networks.py

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis
