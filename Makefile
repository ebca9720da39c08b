# `make quick PYTHON=python3.13` works in an environment of its own, `.venv-3.13`.
PYTHON ?= python3
VERSION := $(if $(filter-out python3,$(PYTHON)),$(shell $(PYTHON) -c 'import sys; print("-%d.%d" % sys.version_info[:2])'))
ENVIRONMENT := .venv$(VERSION)
BIN := $(ENVIRONMENT)/bin
INSTALLED := $(ENVIRONMENT)/.installed
GENERATED := src/api/openapi.json
LOCK := --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-package baton-facility

# Modules are compiled once, whatever the environment says, and not in every process.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/.bytecode

# One process of tests more than there are cores, since many wait for servers, processes and clocks.
WORKERS := $(shell echo $$(($$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN) + 1)))
CHECKS := lint types imports names

.PHONY: install demo up test quick serverless check $(CHECKS) unit soak interop interop-clients interop-epics bench reference \
	transcripts lock clean

install: $(INSTALLED) $(GENERATED)

# Packages are compiled when they are first imported, which most of their modules never are.
$(INSTALLED): requirements.lock pyproject.toml setup.py
	$(PYTHON) -m venv $(ENVIRONMENT)
	$(BIN)/python -m pip install --quiet --no-compile --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

# Files of the package that are made from its declarations, all with the first of them; building a wheel makes them too.
$(GENERATED): $(INSTALLED) $(shell find src -name '*.py' -o -name 'examples.json')
	$(BIN)/python -m baton.cli.generated_files
	touch $(GENERATED)

# What beamlines run beside us, for tests: blueapi, queueserver and Tiled, whose requirements are not ours.
OUTSIDE := $(ENVIRONMENT)-bluesky

$(OUTSIDE)/.installed: requirements.bluesky.lock
	$(PYTHON) -m venv $(OUTSIDE)
	$(OUTSIDE)/bin/python -m pip install --quiet --no-compile --no-deps --require-hashes --requirement requirements.bluesky.lock
	touch $@

demo: install
	$(BIN)/python -m baton.demo $(if $(filter-out 0,$(ONCE)),--once) $(ARGS)

up: install
	$(BIN)/baton up $(ARGS)

test: check unit

quick: install
	$(MAKE) --no-print-directory --jobs $(CHECKS) serverless

check: install
	$(MAKE) --no-print-directory --jobs $(CHECKS)

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/mypy

imports:
	$(BIN)/lint-imports

names:
	$(BIN)/python -m tests.checks

serverless: export PROPERTY_EXAMPLES ?= 10

serverless:
	$(BIN)/python -m pytest --workers $(WORKERS) -m "not server and not slow" $(ARGS)

unit: install $(OUTSIDE)/.installed
	$(BIN)/python -m pytest --workers $(WORKERS) --ignore tests/interop --durations=10 $(ARGS)

# What multiplies: twenty minutes of matrices, random conducts and kills, in an order that its printed seed gives again.
soak: install
	$(BIN)/python -m tests.soak $(ARGS)

# Tools, clients and servers that others make, each in an environment of its own under .venv-interop.
interop: interop-clients interop-epics

interop-clients: install
	$(PYTHON) -m venv .venv-interop
	.venv-interop/bin/python -m pip install --quiet openapi-spec-validator "openapi-python-client>=0.29,<0.30"
	$(PYTHON) -m venv .venv-interop/mcp1
	.venv-interop/mcp1/bin/python -m pip install --quiet "mcp==1.30.0"
	npm install --silent --no-audit --no-fund --prefix .venv-interop @modelcontextprotocol/sdk@1.32.2
	$(BIN)/python -m pytest tests/interop --ignore tests/interop/epics $(ARGS)

# The compiled EPICS libraries, with which an IOC of EPICS base comes. One without a wheel for this machine is built once, after
# those it is built with, and kept in the user's cache.
EPICS := .venv-interop/epics
WHEELS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/baton/wheels
EPICS_PACKAGES := $(foreach name,epicscorelibs pvxslibs p4p aioca,$(shell grep -o '^$(name)==[^ ]*' requirements.server.lock))

$(EPICS)/.installed: export PIP_FIND_LINKS := $(WHEELS)
$(EPICS)/.installed: requirements.lock requirements.server.lock pyproject.toml
	$(PYTHON) -m venv $(EPICS)
	$(EPICS)/bin/python -m pip install --quiet --require-hashes --requirement requirements.lock
	for package in $(EPICS_PACKAGES); do \
		$(EPICS)/bin/python -m pip wheel --quiet --no-deps --wheel-dir $(WHEELS) $$package || exit; done
	$(EPICS)/bin/python -m pip install --quiet $(EPICS_PACKAGES)
	$(EPICS)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

interop-epics: install $(EPICS)/.installed
	$(EPICS)/bin/python -m pytest tests/infrastructure/control tests/interop/epics $(ARGS)

bench: install
	$(BIN)/python -m tests.bench $(ARGS)

reference: install
	$(BIN)/python -m tests.documents.reference

transcripts: install
	$(BIN)/python -m tests.documents.transcripts $(ARGS)

lock: # aioca has no wheel for every machine, and blueapi imports it only for Channel Access
	printf '%s\n' "blueapi>=1.21" "bluesky-queueserver>=0.0.25" "tiled[server]" bluesky-tiled-plugins | uv pip compile $(LOCK) \
		--override <(echo 'aioca ; sys_platform == "never"') --output-file requirements.bluesky.lock -
	uv pip compile $(LOCK) --extra demo --extra embedded --extra optimize --extra scans --extra server --extra test \
		--output-file requirements.lock pyproject.toml
	uv pip compile $(LOCK) --extra epics --extra optimize --extra otlp --extra scans --extra server --constraint requirements.lock \
		--output-file requirements.server.lock pyproject.toml

clean:
	rm -rf .venv .venv-3.* .venv-bluesky .baton .baton-demo .bytecode .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis bench-results.json
