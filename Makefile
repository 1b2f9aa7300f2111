# `make demo` and `make test` each work alone on a fresh clone: both install into .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
READY_DEV := $(VENV)/.ready-dev

.PHONY: demo test docs bench clean

demo: $(READY)
	$(BIN)/gemmspec lint specs/v9.gemmspec
	$(BIN)/gemmspec compile specs/v9.gemmspec --out build

test: $(READY_DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/pytest -n 2

docs: $(READY_DEV)
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/pictures.py
	$(BIN)/python bench/predict.py --write

bench: $(READY_DEV)
	$(BIN)/python bench/cli.py

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(READY): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

# torch first and pinned: a range would let pip fetch a CUDA build of several gigabytes.
$(READY_DEV): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@ $(READY)

clean:
	rm -rf build $(VENV)
