# Everything here needs make and a Python of 3.11 or newer, nothing else. PYTHON=... chooses another one.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
KILLS ?= 1000
# Most tests wait more than they work, so two processors have work for three. All must collect the same tests in the same order, also where
# a set gives them: hence the hash seed.
WORKERS ?= 3
PEERS := a2a03 adk

.DEFAULT_GOAL := help
.PHONY: help demo test fast lint format types peers bench faults dist lock clean

help:  ## what can be made
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 10

demo: $(VENV)/.base  ## see it work: a server, two people, a bot that streams, a reader that resumes
	$(BIN)/bubble demo

test: lint types peers  ## everything that CI checks
	PYTHONHASHSEED=0 $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

fast: $(VENV)/.dev  ## the tests that take moments
	$(BIN)/python -m pytest -m "not slow"

lint: $(VENV)/.dev  ## style
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: $(VENV)/.dev  ## put the style right where a program can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: $(VENV)/.dev  ## static types, strict
	$(BIN)/mypy src tests $(wildcard bench)

peers: $(PEERS:%=$(VENV)/peers/%/.done)  ## environments of their own for the agents that tests talk to

bench: $(VENV)/.dev  ## the figures
	$(BIN)/python -m bench

faults: $(VENV)/.dev  ## kill the server and connectors KILLS times at random moments; nothing may be lost or doubled
	BUBBLE_KILLS=$(KILLS) BUBBLE_REEF_KILLS=$(KILLS) $(BIN)/python -m pytest \
		tests/faults tests/amphibian/test_faults.py tests/reef/test_recovery.py --timeout 0 --session-timeout 864000

dist: $(VENV)/.dev  ## the wheel and the source archive, in dist/
	$(BIN)/python -m build --no-isolation

# One resolution for all platforms and Pythons; the smaller sets take their versions from the largest.
COMPILE = $(BIN)/python -m uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-annotate --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

lock: $(VENV)/.base  ## choose the newest versions that pyproject.toml allows, with their hashes
	$(PIP) install uv
	$(COMPILE) --all-extras --group dev -o requirements/dev.lock pyproject.toml
	$(COMPILE) -c requirements/dev.lock --group pyproject.toml:build -o requirements/build.lock
	$(COMPILE) -c requirements/dev.lock --extra a2a -o requirements/base.lock pyproject.toml
	for peer in $(PEERS); do $(COMPILE) -o requirements/peers/$$peer.lock requirements/peers/$$peer.in || exit; done

clean:  ## remove what was made here, the environment too
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .schemathesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment is made once and changed when a lock or the package's metadata does. `demo` needs the small half, which has the extra
# `a2a` for the agent that plays along.

$(VENV)/.base: requirements/base.lock requirements/build.lock pyproject.toml
	@scripts/make-venv $(VENV) $(PYTHON)
	$(PIP) install --require-hashes -r requirements/base.lock -r requirements/build.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.base requirements/dev.lock
	$(PIP) install --require-hashes -r requirements/dev.lock
	@touch $@

# Agents with other versions of what is in the environment above, which only tests start.

$(VENV)/peers/%/.done: requirements/peers/%.lock
	@scripts/make-venv $(@D) $(PYTHON)
	$(@D)/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes -r $<
	@touch $@
