# `make test` sets everything up in a fresh clone and runs every check and test; `make demo` shows the product.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: test demo up setup lint types layers unit soak bench format generate clean

test: lint types layers unit

setup: $(STAMP)

$(STAMP): pyproject.toml requirements-dev.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements-dev.lock -e '.[dev]'
	sh tools/ensure_kubectl.sh
	touch $(STAMP)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/lint-imports

unit: setup
	$(BIN)/pytest -n auto -m 'not soak'

soak: setup
	$(BIN)/pytest -m soak --timeout 3600

demo: setup
	@$(BIN)/python examples/demo.py

up: setup
	$(BIN)/dray up --nodes 4 --profile gpu-8

bench: setup
	$(BIN)/python -m bench

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: setup
	$(BIN)/python -m tools.generate_api
	$(BIN)/python -m tools.generate_protos

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
