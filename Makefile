# Two commands do all set-up on a fresh machine: `make demo` and `make test`.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

# Everything that is downloaded or built lives outside the work tree and survives it.
export STOKER_CACHE ?= $(HOME)/.cache/stoker
VENV := $(STOKER_CACHE)/venv/$(shell cat requirements/dev.txt | sha256sum | cut -c1-16)
PYTHON := .venv/bin/python
export PYTHONPATH := operator:.
export PYTHONDONTWRITEBYTECODE := 1

.PHONY: help
help: ## Show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

# ---- Python environment -------------------------------------------------------------------------------------------
PIN = .venv/bin/uv pip compile --quiet --upgrade --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --custom-compile-command "make requirements"

.PHONY: venv requirements
venv: $(VENV)/.done ## Create the pinned Python environment
	@ln -sfn $(VENV) .venv

$(VENV)/.done: requirements/dev.txt
	@echo "Python environment: installing pinned requirements into $(VENV)"
	@rm -rf $(VENV)
	@python3 -m venv $(VENV)
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@

requirements: venv ## Pin the requirements anew, with hashes
	@$(PIN) -o requirements/operator.txt requirements/operator.in
	@$(PIN) -o images/llama-cpp/requirements.txt images/llama-cpp/requirements.in
	@$(PIN) -c requirements/operator.txt -o requirements/dev.txt requirements/dev.in

# ---- Checks --------------------------------------------------------------------------------------------------------
.PHONY: lint unit generate
lint: venv ## Style, types, import directions
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports --no-cache

unit: venv ## Tests of pure code: seconds
	@$(PYTHON) -m pytest tests/unit -q

generate: venv ## Write all that follows from the API's models: CRD, chart copy, reference
	@$(PYTHON) -m tools.generate
