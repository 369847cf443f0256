# Everything a developer or CI does, one word each. Needs make and Python 3.11 or newer, no more.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

BIN := .venv/bin
# Written last, so that an interrupted install is not taken for a finished one.
INSTALLED := .venv/installed

# The first interpreter that is new enough and able to make an environment; PYTHON=... overrules it.
FITS := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))
FIND_PYTHON = for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
		if "$$python" -c '$(FITS)' 2>/dev/null; then echo "$$python"; exit; fi; \
	done; \
	echo 'Tidegate needs Python 3.11 or newer with its venv module: make PYTHON=/path/to/python3' >&2; \
	exit 1

.PHONY: help .venv demo test golden lint bench clean

help:  ## print this list
	@sed -n 's/^\([a-z.]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

.venv: $(INSTALLED)  ## the environment of every other target, pinned by constraints.txt

$(INSTALLED): pyproject.toml constraints.txt
	@python="$$($(FIND_PYTHON))" && "$$python" -m venv --clear .venv
	@$(BIN)/python -m pip install --quiet -c constraints.txt hatchling editables setuptools wheel
	@$(BIN)/python -m pip install --quiet -c constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@

demo: .venv  ## a storm on this machine, predicted, live, and stopped by a guard; 75 seconds
	@mkdir -p demo
	@$(BIN)/tidegate lab storm --html demo/storm.html

test: .venv  ## every test but the long ones
	@$(BIN)/pytest --no-header -n 2 -m 'not golden'

golden: .venv  ## the long runs that reproduce published figures
	@$(BIN)/pytest --no-header -n 2 -m golden

lint: .venv  ## style, types, layers, spelling
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy --no-error-summary
	@if command -v node >/dev/null; then $(BIN)/pyright --level error --pythonpath $(BIN)/python tests/typing; \
		else echo 'lint: no node, so pyright did not read tests/typing'; fi
	@report="$$($(BIN)/lint-imports --no-cache)" || { echo "$$report"; exit 1; }
	@$(BIN)/codespell

bench: .venv  ## our simulator beside its peers, in CPU time; takes minutes
	@$(BIN)/python benchmarks/run.py

clean:  ## remove the environments and every cache
	@rm -rf .venv .venv-peers .venv-guards .venv-spools .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	@find src tests docs benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +
