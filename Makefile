PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
LOCK := --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-package baton-facility

.PHONY: install demo up test quick check unit interop bench reference transcripts lock clean

install: $(INSTALLED)

$(INSTALLED): requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

demo: install
	$(BIN)/python -m baton.demo $(if $(filter-out 0,$(ONCE)),--once) $(ARGS)

up: install
	$(BIN)/baton up $(ARGS)

test: check unit

quick: check
	$(BIN)/python -m pytest -n auto -m "not server" $(ARGS)

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.checks

quick: export PROPERTY_EXAMPLES ?= 15
quick unit: export PYTHONDONTWRITEBYTECODE :=
quick unit: export PYTHONPYCACHEPREFIX := $(CURDIR)/.pytest_cache/bytecode

unit: install
	$(BIN)/python -m pytest -n auto --durations=10 $(ARGS)

# Tools and clients that others make, each in an environment of its own under .venv-interop.
interop: install
	$(PYTHON) -m venv .venv-interop
	.venv-interop/bin/python -m pip install --quiet openapi-spec-validator "openapi-python-client>=0.29,<0.30"
	$(PYTHON) -m venv .venv-interop/mcp1
	.venv-interop/mcp1/bin/python -m pip install --quiet "mcp==1.30.0"
	npm install --silent --no-audit --no-fund --prefix .venv-interop @modelcontextprotocol/sdk@1.32.2
	$(BIN)/python -m pytest tests/interop $(ARGS)

bench: install
	$(BIN)/python -m tests.bench $(ARGS)

reference: install
	$(BIN)/python -m tests.documents.reference
	$(BIN)/python -m tests.documents.client_stub

transcripts: install
	$(BIN)/python -m tests.documents.transcripts $(ARGS)

lock:
	uv pip compile $(LOCK) --extra demo --extra embedded --extra optimize --extra scans --extra server --extra test \
		--output-file requirements.lock pyproject.toml
	uv pip compile $(LOCK) --extra epics --extra optimize --extra otlp --extra scans --extra server --constraint requirements.lock \
		--output-file requirements.server.lock pyproject.toml

clean:
	rm -rf .venv .baton .baton-demo .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis bench-results.json
