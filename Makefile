.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/bash

PYTHON ?= python3.12
BIN := .venv/bin
UV := $(BIN)/uv
READY := .venv/.ready

export UV_PYTHON_DOWNLOADS := never

.PHONY: help setup demo test slow bench lint format clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Install everything into .venv (8 GB; done by the other targets when needed)

demo: $(READY) ## Make a LeRobot dataset of round-peg insertions in out/demo
	$(BIN)/demomill generate $(addprefix --task peg_round_,4mm 8mm 12mm 16mm) --out out/demo

test: lint ## Lint, types and all tests but the slow ones
	$(BIN)/pytest

slow: $(READY) ## Tests that record hundreds of episodes
	$(BIN)/pytest -m slow

bench: $(READY) ## Speed and memory against the alternatives on this machine
	$(BIN)/python -m bench

lint: $(READY) ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY) ## Format, and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove the environment and all caches; runs and datasets stay
	rm -rf .venv .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(UV):
	@$(PYTHON) -c 'import ensurepip, venv' || { \
	  echo "$(PYTHON) does not run here: install Python 3.12 with venv (Debian: python3.12-venv;" \
	       "pyenv: pyenv install 3.12), or name it: make PYTHON=/path/to/python3.12 setup" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

$(READY): pyproject.toml uv.lock tools/opengl.sh | $(UV)
	@sh tools/opengl.sh
	$(UV) sync --frozen
	@touch $@
